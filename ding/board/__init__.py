"""The board: a web page that shows runs from their folders (``ding board``, or a coordinator)."""
