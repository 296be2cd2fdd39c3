"""Every answer of every server of this process, and of those it forks, takes half a second more."""

import time

from ding.interaction.base._http_handler import HttpHandler

DELAY = 0.5

_flush = HttpHandler.flush


def _flush_late(self):
    time.sleep(DELAY)
    _flush(self)


HttpHandler.flush = _flush_late
