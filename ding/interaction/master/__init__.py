"""Masters, which send tasks to slaves."""

from .connection import SlaveConnection, SlaveConnectionProxy
from .master import Master
from .task import Task, TaskResultType, TaskStatus

__all__ = [
    "Master",
    "SlaveConnection",
    "SlaveConnectionProxy",
    "Task",
    "TaskResultType",
    "TaskStatus",
]
