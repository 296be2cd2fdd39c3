"""How a parallel run, or a part of it, ended."""

from typing import NamedTuple

from ding.entry.stop_signal import SIGNALS
from ding.utils.errors import RunError

_EXIT_STATUSES = {"converged": 0, "finished": 0}


class Ending(NamedTuple):
    """How it ended.

    Attributes:
        status: ``converged``, ``finished``, ``interrupted`` or ``failed``.
        reason: One line for a human.
        signal: Number of the signal that interrupted it, if one did.
    """

    status: str
    reason: str
    signal: int | None = None

    @classmethod
    def by_signal(cls, number: int) -> "Ending":
        return cls("interrupted", SIGNALS[number], number)

    @property
    def exit_status(self) -> int:
        """Exit status of the process; after a signal the one by which a shell knows it."""
        if self.signal is not None and self.status == "interrupted":
            return 128 + self.signal
        return _EXIT_STATUSES.get(self.status, 1)

    def raise_if_bad(self) -> None:
        """Nothing if it came to a good end; it was printed how it ended.

        Raises:
            RunError: It failed.
            SystemExit: It was interrupted.
        """
        if self.status == "failed":
            raise RunError(self.reason, told=True)
        if self.exit_status:
            raise SystemExit(self.exit_status)
