"""An error in a thread of a worker, kept until it can be reported to the master."""

import traceback
from dataclasses import asdict, dataclass

from ding.interaction.slave import TaskFail
from ding.utils import pytorch_ddp_dist_helper as dist_helper

#: Characters of a traceback that the master is sent; its end names the place.
TRACEBACK_LIMIT = 4000


@dataclass(frozen=True)
class ErrorReport:
    """An error as text that can be sent."""

    type: str
    message: str
    traceback: str = ""
    #: Whether it came out of work that several processes do together, so that another one may be
    #: the first that failed.
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
        """What to raise in a slave's task."""
        return TaskFail(asdict(self), str(self))
