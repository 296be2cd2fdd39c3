"""Delays each answer of all servers in this process and its forks by half a second."""

import time

from ding.interaction.base._http_handler import HttpHandler

DELAY = 0.5

_flush = HttpHandler.flush


def _flush_late(self):
    time.sleep(DELAY)
    _flush(self)


HttpHandler.flush = _flush_late
