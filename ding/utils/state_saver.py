"""Saves the state of a run at intervals, and handles failed saves."""

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from .disk_writes import reporting_stall
from .errors import CheckpointWriteError

_logger = logging.getLogger(__name__)

State = TypeVar("State")
#: Errors of a save: full disk, too little memory for the copy, objects that cannot be stored.
SAVE_ERRORS = (CheckpointWriteError, OSError, MemoryError, TypeError)


class StateSaver(Generic[State]):
    """Saves a state at intervals, less often if a save takes long.

    After a failed save, the previous one is unchanged, the save is retried later, and the run
    continues. A save that waits for a disk is reported with the file's name.

    Args:
        take: Returns a copy of the state, which must not change during the call.
        write: Writes the copy atomically.
        on_failure: Called with the error of each failed save.
        interval: Seconds between saves.
        max_share: Maximum share of the time that is spent on saving.
        retry: Seconds until the next save after a failure; by default the interval.
        in_background: Whether to write in a thread.
        on_stall: Called in a thread, with one line about a write that makes no progress.

    Attributes:
        error: Error of the latest save; ``None`` if it succeeded.
    """

    def __init__(
        self,
        take: Callable[[], State],
        write: Callable[[State], object],
        on_failure: Callable[[Exception], object],
        interval: float,
        max_share: float,
        retry: float | None = None,
        in_background: bool = False,
        on_stall: Callable[[str], object] = _logger.warning,
    ) -> None:
        self.error: Exception | None = None
        self._take, self._write, self._on_failure = take, write, on_failure
        self._interval, self._max_share = interval, max_share
        self._retry = interval if retry is None else retry
        self._in_background, self._on_stall = in_background, on_stall
        self._writer: threading.Thread | None = None
        self._outcome: tuple[float, Exception | None] = (0.0, None)
        self._due = time.monotonic() + interval

    def save_if_due(self) -> bool:
        """Save if a save is due; returns whether one was begun."""
        if self._writer is not None:
            if self._writer.is_alive():
                return False
            self.close()
        return time.monotonic() >= self._due and self._begin()

    def save(self) -> None:
        """Save, and wait until the save is complete."""
        self.close()
        self._begin()
        self.close()

    def close(self) -> None:
        """Wait for a running save."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
            self._end(*self._outcome)

    def _begin(self) -> bool:
        """Begin a save; returns whether the state could be copied."""
        begin = time.monotonic()
        try:
            state = self._take()
        except SAVE_ERRORS as error:
            self._end(0.0, error)
            return False
        taken = time.monotonic() - begin
        if not self._in_background:
            problem = self._written(state)
            self._end(time.monotonic() - begin, problem)
            return True

        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1

        def write() -> None:
            cpu = time.thread_time()
            problem = self._written(state)
            # The thread runs concurrently with training, on another core if there is one.
            self._outcome = taken + (time.thread_time() - cpu) / cores, problem

        # A daemon: a disk that does not respond must not prevent the end of the process.
        self._writer = threading.Thread(target=write, name="save-state", daemon=True)
        self._writer.start()
        return True

    def _written(self, state: State) -> Exception | None:
        try:
            with reporting_stall(self._on_stall):
                self._write(state)
        except Exception as error:
            if self._in_background or isinstance(error, SAVE_ERRORS):
                return error  # the edge of the thread: all errors are reported
            raise
        return None

    def _end(self, cost: float, error: Exception | None) -> None:
        self.error = error
        if error is None:
            self._due = time.monotonic() + self._pause(cost)
        else:
            self._due = time.monotonic() + self._retry
            self._on_failure(error)

    def _pause(self, cost: float) -> float:
        """Seconds until the next save, from the duration of the last one."""
        return max(self._interval, cost / self._max_share if self._max_share else math.inf)
