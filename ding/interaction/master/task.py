"""A task that a master sends to a slave."""

import logging
import threading
from collections.abc import Callable, Mapping
from enum import IntEnum, unique
from typing import Any
from uuid import UUID, uuid4

from ding.interaction.base.common import default_func
from ding.interaction.base.messages import TaskMessage
from ding.interaction.base.network import HttpEngine
from ding.utils.errors import InteractionError

from .base import _AFTER_HOOK_TYPE, _BEFORE_HOOK_TYPE, _ERROR_HOOK_TYPE

_logger = logging.getLogger(__name__)
_CALLBACK_TYPE = Callable[[Mapping[str, Any], Mapping[str, Any]], object]


@unique
class TaskResultType(IntEnum):
    COMPLETED = 1
    FAILED = 2


@unique
class TaskStatus(IntEnum):
    """Status of a task: ``IDLE -> STARTING -> STARTED -> COMPLETED | FAILED``.

    A task that the slave did not accept is ``START_FAILED``.
    """

    IDLE = 0x00
    STARTING = 0x11
    STARTED = 0x12
    START_FAILED = 0x13
    COMPLETED = 0x21
    FAILED = 0x22


_ENDED = frozenset({TaskStatus.START_FAILED, TaskStatus.COMPLETED, TaskStatus.FAILED})


class Task:
    """A task on a slave, with callbacks for its end.

    Args:
        http_engine: Client for the slave.
        data: Data of the task, JSON.
        task_id: The id, by default a new one.
        before_task_start: Called with the id before the task is sent.
        after_task_start: Called with the id after the slave has accepted the task.
        error_task_start: Called with the id and the error if the task could not be started.
        submit: Calls a function that calls the callbacks; by default, the thread that ends the task
            calls them.
    """

    def __init__(
        self,
        http_engine: HttpEngine,
        data: Mapping[str, object],
        task_id: UUID | None = None,
        before_task_start: _BEFORE_HOOK_TYPE | None = None,
        after_task_start: _AFTER_HOOK_TYPE | None = None,
        error_task_start: _ERROR_HOOK_TYPE | None = None,
        *,
        submit: Callable[[Callable[[], object]], object] | None = None,
    ) -> None:
        self._engine = http_engine
        self._data = data
        self._id = task_id or uuid4()
        hooks = before_task_start, after_task_start, error_task_start
        self._before_start, self._after_start, self._error_start = map(default_func(), hooks)
        self._submit = submit or (lambda func: func())
        self._lock = threading.Lock()
        self._status = TaskStatus.IDLE
        self._result: Any = None
        self._cause: str | None = None
        self._callbacks: list[tuple[TaskStatus, _CALLBACK_TYPE]] = []
        self._ended = threading.Event()
        self._caller: threading.Thread | None = None

    @property
    def id(self) -> UUID:
        return self._id

    @property
    def status(self) -> TaskStatus:
        return self._status

    @property
    def task(self) -> Mapping[str, Any]:
        """The data of the task."""
        return self._data

    @property
    def result(self) -> Any:
        """The slave's result; ``None`` before the end."""
        return self._result

    @property
    def cause(self) -> str | None:
        """Cause of a failure, one line; ``None`` without a failure."""
        return self._cause

    def start(self) -> "Task":
        """Send the task to the slave.

        Raises:
            SlaveResponseException: The slave refuses the task.
            requests.RequestException: The slave cannot be reached.
            InteractionError: The task was started before, its data is not JSON, or the slave is not
                connected.
        """
        if not self._move(TaskStatus.IDLE, TaskStatus.STARTING):
            raise InteractionError(f"task {self._id} was started before; make a new one")
        try:
            self._before_start(self._id)
            message = TaskMessage(self._id, self._data)
            self._engine.request("POST", "task/new", message.body())
        except Exception as err:
            if self._move(TaskStatus.STARTING, TaskStatus.START_FAILED):
                self._cause = f"it could not be started: {type(err).__name__}: {err}"
                self._ended.set()
                self._error_start(self._id, err)
                raise
            return self  # the task ended during its start: see its status and cause
        self._move(TaskStatus.STARTING, TaskStatus.STARTED)
        self._after_start(self._id)
        return self

    def join(self, timeout: float | None = None) -> "Task":
        """Wait until the task has ended and its callbacks were called; a callback does not wait.

        Args:
            timeout: Maximum seconds to wait; `status` shows whether the task has ended.

        Raises:
            InteractionError: The task was not started.
        """
        if self._status is TaskStatus.IDLE:
            raise InteractionError(f"task {self._id} was not started, so it will not end")
        if self._caller is not threading.current_thread():
            self._ended.wait(timeout)
        return self

    def on_complete(self, callback: _CALLBACK_TYPE) -> "Task":
        """Call ``callback(data, result)`` when the task is completed; at once if it already is."""
        return self._on(TaskStatus.COMPLETED, callback)

    def on_fail(self, callback: _CALLBACK_TYPE) -> "Task":
        """Call ``callback(data, result)`` when the task has failed; at once if it already has."""
        return self._on(TaskStatus.FAILED, callback)

    def end(self, kind: TaskResultType, result: object, cause: str | None = None) -> None:
        """Record the end of the task, and call the callbacks; only the first call counts."""
        status = TaskStatus[kind.name]
        with self._lock:
            if self._status in _ENDED:
                return
            self._status, self._result, self._cause = status, result, cause
            callbacks = [callback for when, callback in self._callbacks if when is status]
        if not callbacks:
            self._ended.set()
            return
        try:
            self._submit(lambda: self._finish(callbacks))
        except RuntimeError as error:  # no thread can be started
            _logger.warning("callbacks of task %s run where it ended: %s", self._id, error)
            self._finish(callbacks)

    def _on(self, status: TaskStatus, callback: _CALLBACK_TYPE) -> "Task":
        with self._lock:
            self._callbacks.append((status, callback))
            late = self._status is status
        if late:
            self._call(callback)
        return self

    def _finish(self, callbacks: list[_CALLBACK_TYPE]) -> None:
        self._caller = threading.current_thread()
        try:
            for callback in callbacks:
                self._call(callback)
        finally:
            self._caller = None
            self._ended.set()

    def _call(self, callback: _CALLBACK_TYPE) -> None:
        try:
            callback(self._data, self._result)
        except Exception:
            _logger.exception("a callback of task %s failed", self._id)

    def _move(self, old: TaskStatus, new: TaskStatus) -> bool:
        with self._lock:
            moved = self._status is old
            if moved:
                self._status = new
        return moved
