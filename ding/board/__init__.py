"""A web page of runs that reads their folders: ``ding board``, and a coordinator's address."""
