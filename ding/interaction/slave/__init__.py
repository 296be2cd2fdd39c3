"""The side that works."""

from .action import ConnectionRefuse, DisconnectionRefuse, TaskFail, TaskRefuse
from .slave import Slave

__all__ = ["ConnectionRefuse", "DisconnectionRefuse", "Slave", "TaskFail", "TaskRefuse"]
