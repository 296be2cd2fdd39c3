"""A slave works on one task at a time for one master at a time."""

import logging
import threading
import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from werkzeug import Request

from ding.interaction.base.app import ResponsibleException
from ding.interaction.base.messages import (
    AnswerMessage,
    ConnectMessage,
    DisconnectMessage,
    TaskMessage,
)
from ding.interaction.base.network import split_http_address
from ding.interaction.base.service import (
    Handler,
    HttpService,
    make_engine,
    parsed,
    refusal,
    same_secret,
)
from ding.interaction.config import (
    DEFAULT_HEARTBEAT_SPAN,
    DEFAULT_SLAVE_PORT,
    MIN_HEARTBEAT_SPAN,
    SMALL_BODY,
)
from ding.interaction.exception.master import get_master_exception_by_error
from ding.interaction.exception.slave import SlaveErrorCode as Code
from ding.utils import durations
from ding.utils.errors import InteractionError, NotJsonError
from ding.utils.system_helper import ReportingThread

from ._session import MasterSession
from .action import ConnectionRefuse, DisconnectionRefuse, TaskFail, TaskRefuse

_logger = logging.getLogger(__name__)

#: Characters of a traceback that the master is told.
TRACEBACK_LIMIT = 4000


@dataclass
class _Assignment:
    """A task that was accepted.

    Attributes:
        answered: Whether somebody has undertaken to tell the master how it ended.
    """

    message: TaskMessage
    session: MasterSession
    answered: bool = False


class Slave(HttpService):
    """Waits for a master to connect, and works on its tasks; subclasses do the work.

    Args:
        host: Address to listen on, the loopback address if not given.
        port: 7236 if not given, 0 for any free one.
        heartbeat_span: Seconds between signs of life to the master, 3 if not given.
        request_retries: How often a request to the master is tried again before the master counts
            as lost.
        request_retry_waiting: Seconds between the tries.
        channel: Number that both sides have to agree on.
        key: The run's key. If given, masters without a certificate of the run are refused.
        request_timeout: Seconds that the master may take for an answer.
        max_body: Greatest size of a request's body in bytes.
        on_death: Told why the server cannot go on, though nobody has asked it to end; the cause
            is logged if not given.
    """

    _role = "slave"
    _peer_codes = Code.MASTER_TOKEN_NOT_FOUND, Code.MASTER_TOKEN_INVALID

    def __init__(
        self,
        host: str | None = None,
        port: int | None = None,
        heartbeat_span: float | None = None,
        request_retries: int | None = None,
        request_retry_waiting: float | None = None,
        channel: int | None = None,
        *,
        key: str | None = None,
        request_timeout: float | None = None,
        max_body: int | None = None,
        on_death: Callable[[str], object] | None = None,
    ) -> None:
        port = DEFAULT_SLAVE_PORT if port is None else port
        trying = request_retries, request_retry_waiting
        super().__init__(host, port, *trying, channel, key, request_timeout, max_body, on_death)
        span = DEFAULT_HEARTBEAT_SPAN if heartbeat_span is None else heartbeat_span
        self._span = max(span, MIN_HEARTBEAT_SPAN)
        self._requests = threading.Lock()  # connecting, disconnecting and new tasks go one by one
        self._changed = threading.Condition()  # guards what follows
        self._session: MasterSession | None = None
        self._task: _Assignment | None = None
        self._last_task: UUID | None = None
        self._worker: threading.Thread | None = None

    @property
    def master_silence(self) -> float | None:
        """Seconds since the master gave a sign of life; ``None`` without a master."""
        session = self._session
        return None if session is None or session.closed else session.silence

    # What subclasses may define

    @abstractmethod
    def _process_task(self, task: Mapping[str, Any]) -> Any:
        """Do the work of a task; the result is JSON. Runs in a thread of its own.

        Raises:
            TaskFail: The task failed. Other exceptions fail it, too, and the master is told.
        """

    def _before_task(self, task: Mapping[str, Any]) -> object:
        """Told of a task before it is accepted; may raise `TaskRefuse`. Has to be quick."""

    def _before_connection(self, data: Mapping[str, Any]) -> object:
        """Told of a master before it is accepted; may raise `ConnectionRefuse`."""

    def _before_disconnection(self, data: Mapping[str, Any]) -> object:
        """Told before a master leaves; may raise `DisconnectionRefuse`."""

    def _lost_connection(self, master_address: str, err: Exception) -> object:
        """Told when the master does not answer or does not know this slave any more."""

    # Requests

    def _routes(self) -> Mapping[str, Handler]:
        return {
            **super()._routes(),
            "POST /connect": self._handle_connect,
            "DELETE /disconnect": self._handle_disconnect,
            "POST /task/new": self._handle_task,
        }

    def _check_master(self, request: Request) -> MasterSession:
        token, session = self._peer_token(request), self._session
        if session is None or session.closed:
            raise refusal(Code.SLAVE_NOT_CONNECTED, "no master is connected")
        if not same_secret(token, session.token):
            raise refusal(Code.MASTER_TOKEN_INVALID, "wrong master token", HTTPStatus.FORBIDDEN)
        session.heard()
        return session

    def _handle_connect(self, request: Request) -> str:
        token = self._peer_token(request)
        refused = Code.SLAVE_CONNECTION_REFUSED
        message = parsed(request, ConnectMessage.parse, refused, max_body=SMALL_BODY)
        with self._requests:
            old = self._session
            if old is not None and not old.closed:
                raise refusal(
                    Code.SLAVE_ALREADY_CONNECTED, f"the master at {old.address} is connected"
                )
            _call(self._before_connection, message.data, ConnectionRefuse)
            engine = make_engine(
                {"Channel": str(self._channel), "Token": token},
                split_http_address(message.address),
                self._timeout,
                self._retries,
                self._retry_waiting,
                get_master_exception_by_error,
                key=self._key,
                role="master",
            )
            session = MasterSession(message.address, token, engine, self._span, self._lost_master)
            with self._changed:
                self._check_open()  # `_on_stop` may have looked for a session just before
                self._session = session
                session.start()
        return "connected"

    def _handle_disconnect(self, request: Request) -> str:
        session = self._check_master(request)
        refused = Code.SLAVE_DISCONNECTION_REFUSED
        message = parsed(request, DisconnectMessage.parse, refused, max_body=SMALL_BODY)
        with self._requests:
            _call(self._before_disconnection, message.data, DisconnectionRefuse)
            session.close()
        return "disconnected"

    def _handle_task(self, request: Request) -> str:
        session = self._check_master(request)
        message = parsed(request, TaskMessage.parse, Code.TASK_REFUSED)
        with self._requests:
            running = self._task
            if message.id in (running.message.id if running else None, self._last_task):
                return "the task was accepted before"  # its answer got lost, and it is asked again
            if running is not None:
                raise refusal(
                    Code.TASK_ALREADY_EXIST, f"task {running.message.id} is being worked on"
                )
            _call(self._before_task, message.data, TaskRefuse)
            with self._changed:
                self._task = _Assignment(message, session)
                self._changed.notify_all()
        return "accepted"

    def _lost_master(self, session: MasterSession, err: Exception) -> None:
        _logger.warning("lost the master at %s: %s", session.address, err)
        try:
            self._lost_connection(session.address, err)
        except Exception:
            _logger.exception("_lost_connection failed")

    # Work

    def start(self) -> None:
        if self._worker is not None and self._worker.is_alive() and self._shutting_down.is_set():
            raise InteractionError("a task from before the shutdown is still being worked on")
        super().start()

    def _on_start(self) -> None:
        self._worker = ReportingThread(self._work, "slave-work", self._die)
        self._worker.start()

    def _on_stop(self) -> None:
        with self._changed:
            self._changed.notify_all()
            session, task = self._session, self._task
        if task is not None and not task.session.closed and self._claim(task):
            cause = "the slave was shut down while it worked on the task"
            answer = AnswerMessage(task.message.id, {"type": "SlaveShutDown"}, cause)
            task.session.answer("fail", answer, last=True)
        deadline = time.monotonic() + durations.SLAVE_STOP
        if session is not None:
            session.close()
            session.join(durations.SLAVE_STOP)
        if self._worker is not None:
            self._worker.join(max(0.0, deadline - time.monotonic()))
            if self._worker.is_alive():
                _logger.warning(
                    "a task is still being worked on %g s after the end", durations.SLAVE_STOP
                )

    def _work(self) -> None:
        while (task := self._next_task()) is not None:
            kind, answer = "", None
            if not task.session.closed:
                kind, answer = self._run(task.message)
            with self._changed:
                # Before the master knows: it may send the next task as soon as it does.
                self._task, self._last_task = None, task.message.id
            if answer is not None and self._claim(task):
                try:
                    task.session.answer(kind, answer)
                except NotJsonError as err:
                    task.session.answer("fail", _failure(task.message.id, err))

    def _next_task(self) -> _Assignment | None:
        with self._changed:
            self._changed.wait_for(lambda: self._task or self._shutting_down.is_set())
            return None if self._shutting_down.is_set() else self._task

    def _claim(self, task: _Assignment) -> bool:
        """Whether the caller is the one to tell the master how a task ended."""
        with self._changed:
            first, task.answered = not task.answered, True
        return first and not task.session.closed

    def _run(self, task: TaskMessage) -> tuple[str, AnswerMessage]:
        try:
            return "complete", AnswerMessage(task.id, self._process_task(task.data))
        except TaskFail as err:
            return "fail", AnswerMessage(task.id, err.result, err.message)
        except BaseException as err:
            _logger.exception("task %s failed", task.id)
            return "fail", _failure(task.id, err)


def _failure(task_id: UUID, err: BaseException) -> AnswerMessage:
    """The answer for an exception that was not foreseen."""
    summary = "".join(traceback.format_exception(err))[-TRACEBACK_LIMIT:]
    kind, text = type(err).__name__, str(err)[:TRACEBACK_LIMIT]
    result = {"type": kind, "message": text, "traceback": summary}
    return AnswerMessage(task_id, result, f"{kind}: {text}")


def _call(
    hook: Callable[[Mapping[str, object]], object],
    data: Mapping[str, object],
    refuse: Callable[[Mapping[str, object]], ResponsibleException],
) -> None:
    """Call a hook of the subclass; what it raises is a refusal."""
    try:
        hook(data)
    except ResponsibleException:
        raise
    except Exception as err:
        _logger.exception("a hook of the slave failed")
        raise refuse({"type": type(err).__name__, "message": str(err)}) from err
