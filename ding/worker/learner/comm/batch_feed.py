"""Passes permits for batches from the serving thread to the training thread."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from ding.utils import durations


class BatchFeed:
    """Counts permitted batches, and requests more when half of them are used up.

    The training thread iterates; the serving thread calls the other methods.

    Args:
        capacity: Number of batches to hold permits for.
        most: Maximum number of permits if updates are quick or permits arrive slowly;
            ``capacity`` if not given.
        between: Called in the training thread between two batches, with whether it has to wait.
    """

    def __init__(
        self,
        capacity: int,
        most: int | None = None,
        between: Callable[[bool], object] | None = None,
    ) -> None:
        self._least, self._most = capacity, most or capacity
        self._between = between
        self._step_seconds = durations.BATCHES_AHEAD / capacity
        self.longest_step = 0.0  # longest time of training on a batch, in seconds
        self._asked: float | None = None
        self._latency = 0.0
        self._ready = 0
        self._changed = threading.Condition()
        self.closed = False  # whether no further batch will be trained on
        self._draining = False
        self._taken = 0
        self.finished = 0  # batches that were trained on, or could not be used
        self._began_waiting: float | None = None
        self._lacks = 0  # how often a taken batch had to wait for data
        self._waited = 0.0
        self._created = time.monotonic()
        self._step_began: float | None = None

    def __iter__(self) -> "BatchFeed":
        return self

    def __next__(self) -> int:
        """The number of the next batch; the iteration ends when the feed is closed."""
        self._note_trained()
        if self._between is not None:
            self._between(not self._ready)
        with self._changed:
            if not self._ready:
                self._wait()
            if self.closed or not self._ready:
                raise StopIteration
            self._taken += 1
            self._step_began = time.monotonic()
            self._ready -= 1
            self._changed.notify_all()
            return self._taken

    def finish(self) -> None:
        """Count the last batch as trained on, and close."""
        self._note_trained()
        self.close()

    def _note_trained(self) -> None:
        with self._changed:
            if self._step_began is not None:
                took = time.monotonic() - self._step_began
                # A moving mean: the first update takes longer, as it compiles and allocates.
                self._step_seconds += 0.1 * (took - self._step_seconds)
                self.longest_step = max(self.longest_step, took)
            self.finished, self._step_began = self._taken, None
            self._changed.notify_all()

    def _wait(self) -> None:
        # No deadline: close() always ends this wait.
        self._began_waiting = time.monotonic()
        self._changed.wait_for(lambda: self._ready or self.closed or self._draining)
        self._waited += time.monotonic() - self._began_waiting
        self._began_waiting = None

    @contextlib.contextmanager
    def waiting_within(self) -> Iterator[None]:
        """Context in which the training thread waits for the data of a batch that it has taken."""
        with self._changed:
            self._step_began, self._began_waiting = None, time.monotonic()
            self._lacks += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._waited += time.monotonic() - self._began_waiting
                self._step_began, self._began_waiting = time.monotonic(), None

    def demand(self, timeout: float) -> int:
        """Number of batches wanted. Waits until it is positive, or until training begins to wait
        for data, which the coordinator must learn."""
        with self._changed:
            known = self._lacks
            self._changed.wait_for(lambda: self._is_wanting() or self._lacks != known, timeout)
            wanted = self._wanted()
            self._asked = time.monotonic() if wanted else None
            return wanted

    def put(self, number: int) -> None:
        """Permit a number of batches."""
        with self._changed:
            if number and self._asked is not None:
                # Requests without permits (collectors are behind) do not measure latency.
                self._latency += 0.3 * (time.monotonic() - self._asked - self._latency)
                self._asked = None
            if not self.closed:
                self._ready += number
            self._changed.notify_all()

    def close(self, drain: bool = False) -> None:
        """End the iteration, at once or (``drain``) after all permits; may be called twice."""
        with self._changed:
            self._draining = True
            if not drain:
                self.closed, self._ready = True, 0
            self._changed.notify_all()

    def _is_wanting(self) -> bool:
        return self._draining or 2 * self._ready <= self._capacity()

    def _wanted(self) -> int:
        return 0 if self._draining else max(0, self._capacity() - self._ready)

    def _capacity(self) -> int:
        # More are requested when half of them are used up.
        enough = (durations.BATCHES_AHEAD + 2 * self._latency) / self._step_seconds
        return min(max(self._least, int(enough)), self._most)

    @property
    def waiting(self) -> bool:
        """Whether training waits for a batch."""
        return self._began_waiting is not None

    @property
    def step_seconds(self) -> float:
        """Seconds of training on the current batch so far; 0 if there is none."""
        began = self._step_began
        return 0.0 if began is None else time.monotonic() - began

    @property
    def wait_share(self) -> float:
        """Fraction of the feed's lifetime in which training waited for batches."""
        now, began = time.monotonic(), self._began_waiting
        waited = self._waited + (0.0 if began is None else now - began)
        return waited / max(now - self._created, 1e-9)
