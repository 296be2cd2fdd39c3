"""Slaves, which work on the tasks of a master."""

from .action import ConnectionRefuse, DisconnectionRefuse, TaskFail, TaskRefuse
from .slave import Slave

__all__ = ["ConnectionRefuse", "DisconnectionRefuse", "Slave", "TaskFail", "TaskRefuse"]
