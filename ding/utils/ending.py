"""The status with which a run, or a part of it, ended, and the resulting exit status."""

import signal
from typing import NamedTuple

from .errors import RunError

#: Names of the signals that end a run, by number.
SIGNALS: dict[int, str] = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class _Verdict(NamedTuple):
    status: str
    reason: str


class Ending(_Verdict):
    """Result of a run: a pair of status and reason, with the signal that interrupted the run.

    Attributes:
        status: ``converged``, ``finished``, ``interrupted`` or ``failed``.
        reason: Readable reason, one line.
        signal: Number of the signal that interrupted the run, or None.
    """

    signal: int | None

    def __new__(cls, status: str, reason: str, signal: int | None = None) -> "Ending":
        self = super().__new__(cls, status, reason)
        self.signal = signal
        return self

    def __getnewargs__(self) -> tuple[str, str, int | None]:  # type: ignore[override]
        return self.status, self.reason, self.signal

    @classmethod
    def by_signal(cls, number: int) -> "Ending":
        return cls("interrupted", SIGNALS[number], number)

    def because(self, reason: str) -> "Ending":
        """The same status and signal with another reason."""
        return Ending(self.status, reason, self.signal)

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}"

    @property
    def exit_status(self) -> int:
        """Exit status of the process; 128 plus the signal's number if a signal interrupted it."""
        if self.signal is not None and self.status == "interrupted":
            return 128 + self.signal
        return 0 if self.status in ("converged", "finished") else 1

    def raise_if_bad(self) -> None:
        """Raise if the run did not end well; its result must have been printed.

        Raises:
            RunError: The run failed.
            SystemExit: The run was interrupted.
        """
        if self.status == "failed":
            raise RunError(self.reason, printed=True)
        if self.exit_status:
            raise SystemExit(self.exit_status)
