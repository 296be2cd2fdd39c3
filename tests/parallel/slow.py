"""Every answer of every server of this process, and of those it forks, takes half a second more."""

import time

from ding.interaction.base import server

DELAY = 0.5

_reply = server._Handler._reply


def _reply_late(self, *args):
    time.sleep(DELAY)
    _reply(self, *args)


server._Handler._reply = _reply_late
