"""What a slave's hooks raise to refuse, and its work to fail."""

from collections.abc import Mapping
from http import HTTPStatus

from ding.interaction.base.app import ResponsibleException
from ding.interaction.exception.slave import SlaveErrorCode


class _Refusal(ResponsibleException):
    _refused: tuple[SlaveErrorCode, str]

    def __init__(self, data: Mapping[str, object] | None = None) -> None:
        super().__init__(*self._refused, data, HTTPStatus.FORBIDDEN)


class ConnectionRefuse(_Refusal):
    """Raise it in ``_before_connection``: this slave does not want that master."""

    _refused = SlaveErrorCode.SLAVE_CONNECTION_REFUSED, "the slave refuses to connect"


class DisconnectionRefuse(_Refusal):
    """Raise it in ``_before_disconnection``: this slave wants to stay connected."""

    _refused = SlaveErrorCode.SLAVE_DISCONNECTION_REFUSED, "the slave refuses to disconnect"


class TaskRefuse(_Refusal):
    """Raise it in ``_before_task``: this slave does not take that task."""

    _refused = SlaveErrorCode.TASK_REFUSED, "the slave refuses the task"


class TaskFail(Exception):
    """Raise it in ``_process_task``: the task failed, for a reason that is foreseen.

    Args:
        result: What the master gets as result, JSON.
        message: Why it failed.
    """

    def __init__(
        self, result: Mapping[str, object] | None = None, message: str | None = None
    ) -> None:
        super().__init__(message or "")
        self.result: Mapping[str, object] = result or {}
        self.message = message
