"""How a run, or a part of one, ended: its verdict, and from that its exit status."""

import signal
from typing import NamedTuple

from .errors import RunError

#: The signals that end a run, by number, in words.
SIGNALS: dict[int, str] = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
#: There is nothing to go on with.
AT_GOAL = ("converged", "finished")


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

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}"

    @property
    def exit_status(self) -> int:
        """Exit status of the process; after a signal the one by which a shell knows it."""
        if self.signal is not None and self.status == "interrupted":
            return 128 + self.signal
        return 0 if self.status in AT_GOAL else 1

    def raise_if_bad(self) -> None:
        """Nothing if it came to a good end; it was printed how it ended.

        Raises:
            RunError: It failed.
            SystemExit: It was interrupted.
        """
        if self.status == "failed":
            raise RunError(self.reason, printed=True)
        if self.exit_status:
            raise SystemExit(self.exit_status)
