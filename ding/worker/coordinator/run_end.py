"""How a run ends: once, and for a reason."""

import threading

from ding.utils.ending import Ending


class RunEnd:
    """The verdict on a run, and those who wait for it.

    Attributes:
        verdict: ``None`` while the run goes on.
    """

    def __init__(self) -> None:
        self.verdict: Ending | None = None
        self._lock = threading.Lock()
        self._given = threading.Event()

    def give(self, status: str, reason: str) -> None:
        """End the run; the first verdict counts."""
        with self._lock:
            if self.verdict is None:
                self.verdict = Ending(status, reason)
        self._given.set()

    def wait(self, timeout: float | None) -> Ending | None:
        """The verdict, if there is one within so many seconds."""
        self._given.wait(timeout)
        return self.verdict
