"""An error in a worker's thread, stored until it is reported to the coordinator."""

import traceback
from dataclasses import asdict, dataclass

from ding.interaction.slave import TaskFail
from ding.utils import pytorch_ddp_dist_helper as dist_helper

#: Maximum length of a reported traceback, in characters; its end names the place.
TRACEBACK_LIMIT = 4000


@dataclass(frozen=True)
class ErrorReport:
    """An error as text, ready to be sent."""

    type: str
    message: str
    traceback: str = ""
    #: Whether the error occurred in joint work of several processes, so that another process may
    #: have failed first.
    of_group: bool = False

    @classmethod
    def of(cls, error: BaseException) -> "ErrorReport":
        summary = "".join(traceback.format_exception(error))[-TRACEBACK_LIMIT:]
        frames = traceback.walk_tb(error.__traceback__)
        of_group = any(f.f_globals.get("__name__") == dist_helper.__name__ for f, _ in frames)
        return cls(type(error).__name__, str(error)[:TRACEBACK_LIMIT], summary, of_group)

    @classmethod
    def from_detail(cls, detail: object, cause: str) -> "ErrorReport":
        """The report that `task_fail` sent, as far as it is complete.

        Args:
            detail: The result of a task that failed.
            cause: The message if the detail has none.
        """
        fields = detail if isinstance(detail, dict) else {}
        return cls(
            str(fields.get("type", "TaskFail")),
            str(fields.get("message", cause)),
            str(fields.get("traceback", "")),
            bool(fields.get("of_group")),
        )

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"

    def task_fail(self) -> TaskFail:
        """The exception to raise in a worker's task."""
        return TaskFail(asdict(self), str(self))
