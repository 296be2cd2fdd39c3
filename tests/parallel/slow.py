"""Every answer of every server of this process, and of those it forks, takes half a second more."""

import time

from ding.interaction.base._http_handler import HttpHandler

DELAY = 0.5

_reply = HttpHandler._reply


def _reply_late(self, *args):
    time.sleep(DELAY)
    _reply(self, *args)


HttpHandler._reply = _reply_late
