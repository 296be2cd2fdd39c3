"""Exceptions that hooks of a slave raise to refuse, and tasks raise to fail."""

from collections.abc import Mapping
from http import HTTPStatus

from ding.interaction.base.app import ResponsibleException
from ding.interaction.exception.slave import SlaveErrorCode


class _Refusal(ResponsibleException):
    _refused: tuple[SlaveErrorCode, str]

    def __init__(self, data: Mapping[str, object] | None = None) -> None:
        super().__init__(*self._refused, data, HTTPStatus.FORBIDDEN)


class ConnectionRefuse(_Refusal):
    """Raise it in ``_before_connection`` to refuse a master."""

    _refused = SlaveErrorCode.SLAVE_CONNECTION_REFUSED, "the slave refuses to connect"


class DisconnectionRefuse(_Refusal):
    """Raise it in ``_before_disconnection`` to stay connected."""

    _refused = SlaveErrorCode.SLAVE_DISCONNECTION_REFUSED, "the slave refuses to disconnect"


class TaskRefuse(_Refusal):
    """Raise it in ``_before_task`` to refuse a task."""

    _refused = SlaveErrorCode.TASK_REFUSED, "the slave refuses the task"


class TaskFail(Exception):
    """Raise it in ``_process_task`` to fail the task for an expected reason.

    Args:
        result: The result that is sent to the master, JSON.
        message: The cause of the failure.
    """

    def __init__(
        self, result: Mapping[str, object] | None = None, message: str | None = None
    ) -> None:
        super().__init__(message or "")
        self.result: Mapping[str, object] = result or {}
        self.message = message
