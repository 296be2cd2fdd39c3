"""A web page of runs that only reads their folders: ``ding board``, and a coordinator's address."""
