"""Child processes that one parent watches over together."""

import contextlib
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import wait
from typing import Any

from ding.entry.children import Child
from ding.entry.stop_signal import StopSignal
from ding.utils import durations


class ChildGroup:
    """Waits for what children tell and for their deaths, and ends them all.

    Subclasses take the words (`_heed_word`). The parent needs no thread for it.
    """

    def __init__(self, children: list[Child]) -> None:
        self._group = children
        self._method = start_method()
        self._lifeline = multiprocessing.Pipe(duplex=False)
        self._alarm = -1

    def _heed_word(self, child: Child, word: str, facts: list[Any]) -> None:
        raise NotImplementedError

    def _heed(self, child: Child) -> None:
        for word, *facts in child.heard():
            self._heed_word(child, word, facts)

    def _step(self, until: float) -> None:
        """Wait for words, deaths or signals, and take the words."""
        sources: list[Any] = [self._alarm]
        for child in self._group:
            sources += child.sources
        left = None if until == math.inf else max(0.0, until - time.monotonic())
        if self._alarm in wait(sources, left):
            os.read(self._alarm, 64)
        for child in self._group:
            self._heed(child)

    def _await(
        self, children: list[Child], deadline: float, stop: StopSignal, told: int | None
    ) -> None:
        """Wait until these have ended, or the deadline; a signal brings that nearer."""
        while any(child.alive for child in children) and time.monotonic() < deadline:
            self._step(deadline)
            for child in self._group:
                if child.is_dead:
                    self._heed(child)
                    child.reap()
            if stop.number != told:
                told = stop.number
                deadline = min(deadline, time.monotonic() + durations.PART_STOP)

    def _kill_all(self) -> None:
        for child in self._group:
            child.end(signal.SIGKILL)
        for child in self._group:
            child.reap()
        for end in self._lifeline:
            end.close()


def start_method() -> str:
    """``fork`` where it is safe: children start at once, and know what the caller registered."""
    import torch

    is_safe = sys.platform == "linux" and not torch.cuda.is_initialized()
    return "fork" if is_safe else "spawn"


@contextlib.contextmanager
def woken_by_signals() -> Iterator[int]:
    """A descriptor that can be read as soon as a signal has come."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False) if is_main else -1
    try:
        yield read
    finally:
        if is_main:
            signal.set_wakeup_fd(before)
        os.close(read)
        os.close(write)
