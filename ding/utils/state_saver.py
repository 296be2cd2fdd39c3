"""When the state of a run is saved, and what happens if it cannot be."""

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
#: What a save may fail of: a full disk, no memory for the copy, a part that cannot be stored.
SAVE_ERRORS = (CheckpointWriteError, OSError, MemoryError, TypeError)


class StateSaver(Generic[State]):
    """Saves a state at an interval in seconds, less often if a save takes long.

    A save that fails leaves the earlier one as it was; it is tried again, and the run continues. A
    save that waits for a disk is reported by the file's name.

    Args:
        take: Copies the state; what it is of stands still meanwhile.
        write: Writes the copy, whole or not at all.
        on_failure: Called with why a save failed, each time.
        interval: Seconds from save to save.
        max_share: Share of the time that saving may take.
        retry: Seconds after a failure, rather than the interval.
        in_background: Whether a thread writes.
        on_stall: Called, in a thread, with one line about a write that makes no progress.

    Attributes:
        error: Why the latest save failed; ``None`` if it did not.
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
        """Save if it is time to; whether one was begun."""
        if self._writer is not None:
            if self._writer.is_alive():
                return False
            self.close()
        return time.monotonic() >= self._due and self._begin()

    def save(self) -> None:
        """Save, and wait until that is done."""
        self.close()
        self._begin()
        self.close()

    def close(self) -> None:
        """Wait for a save that is under way."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
            self._end(*self._outcome)

    def _begin(self) -> bool:
        """Whether the state could be taken."""
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
            # It runs concurrently with the work, on another core if there is one.
            self._outcome = taken + (time.thread_time() - cpu) / cores, problem

        # A daemon: a disk that does not answer must not keep the process from its end.
        self._writer = threading.Thread(target=write, name="save-state", daemon=True)
        self._writer.start()
        return True

    def _written(self, state: State) -> Exception | None:
        try:
            with reporting_stall(self._on_stall):
                self._write(state)
        except Exception as error:
            if self._in_background or isinstance(error, SAVE_ERRORS):
                return error  # the edge of a thread reports everything
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
