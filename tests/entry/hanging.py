"""An environment, and a policy's updates, that hang where ``HANG`` says."""

import ctypes
import os
import time

from ding.policy.dqn import DQNPolicy
from tests.entry.runs import WalkEnv

#: ``where`` and ``how`` it hangs, from the ``at``-th step, reset or update on.
HANG = {"where": "", "how": "", "at": 60}


def hang(where: str, count: int) -> None:
    if HANG["where"] != where or count != HANG["at"]:
        return
    with open("hangs", "w"):
        pass
    if HANG["how"] == "sleep":
        time.sleep(1000)
    elif HANG["how"] == "loop":
        while True:
            pass
    elif HANG["how"] in ("pause", "hold"):  # to hold: with the interpreter's lock
        sleep = ctypes.PyDLL(None).sleep if HANG["how"] == "hold" else time.sleep
        sleep(3)
        with open("goes_on", "w"):
            pass
    else:  # waits in C, also after a signal; "locked" keeps the interpreter's lock
        lock = ctypes.create_string_buffer(128)
        libc = ctypes.PyDLL(None) if HANG["how"] == "locked" else ctypes.CDLL(None)
        libc.pthread_mutex_init(lock, None)
        libc.pthread_mutex_lock(lock)
        libc.pthread_mutex_lock(lock)


class HangingEnv(WalkEnv):
    def __new__(cls, cfg: dict) -> "HangingEnv":
        if cfg.get("number") == 1:
            hang("making", 0)
        return super().__new__(cls)

    def __init__(self, cfg: dict) -> None:
        super().__init__(cfg)
        self._closed_once = False
        self._hangs = cfg.get("number") == 1
        self._maybe_hang("init", 0)

    def _maybe_hang(self, where: str, count: int) -> None:
        if self._hangs:
            hang(where, count)
        elif self._cfg.get("judge") and where == "step":
            hang("evaluation", count)

    def step(self, action):
        self._maybe_hang("step", self._steps)
        return super().step(action)

    def reset(self):
        self._maybe_hang("reset", 10 * self._resets)
        return super().reset()

    def close(self) -> None:
        if HANG["where"] == "close" and self._hangs:
            time.sleep(1000)


forward_learn, updates = DQNPolicy._forward_learn, [0]


def _forward_learn(self, data):
    updates[0] += 1
    hang("update", updates[0])
    if HANG["where"] == "close":
        hang("close", -1)
        if updates[0] == 60:
            with open("hangs", "w"):
                pass
    return forward_learn(self, data)


DQNPolicy._forward_learn = _forward_learn

fsync = os.fsync


def _fsync(handle):
    """The disk of the run's state hangs from the second state on."""
    is_state = "resume.pth.tar" in os.readlink(f"/proc/self/fd/{handle}")
    if HANG["where"] == "disk" and is_state and os.path.exists("run/ckpt/resume.pth.tar"):
        with open("hangs", "w"):
            pass
        time.sleep(1000)
    fsync(handle)


os.fsync = _fsync
