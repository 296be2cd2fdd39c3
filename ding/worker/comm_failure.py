"""What went wrong in a thread of a worker, kept until the master can be told."""

import traceback
from dataclasses import dataclass

from ding.interaction.slave import TaskFail

#: Characters of a traceback that the master is told; its end names the place.
TRACEBACK_LIMIT = 4000


@dataclass(frozen=True)
class Failure:
    """An error, in words that can be sent."""

    type: str
    message: str
    traceback: str = ""

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        summary = "".join(traceback.format_exception(error))[-TRACEBACK_LIMIT:]
        return cls(type(error).__name__, str(error)[:TRACEBACK_LIMIT], summary)

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"

    def task_fail(self) -> TaskFail:
        """What to raise in a slave's task."""
        result = {"type": self.type, "message": self.message, "traceback": self.traceback}
        return TaskFail(result, str(self))
