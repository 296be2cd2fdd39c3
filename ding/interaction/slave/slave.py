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

import requests
from werkzeug import Request

from ding.interaction.base.app import ResponsibleException, get_values_from_response
from ding.interaction.base.messages import (
    AnswerMessage,
    ConnectMessage,
    DisconnectMessage,
    TaskMessage,
)
from ding.interaction.base.network import HttpEngine, split_http_address
from ding.interaction.base.service import (
    Handler,
    HttpService,
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
from ding.interaction.exception.master import (
    MasterResponseException,
    MasterSystemShuttingDown,
    MasterTaskDataInvalid,
    get_master_exception_by_error,
)
from ding.interaction.exception.slave import SlaveErrorCode as Code
from ding.utils import durations
from ding.utils.errors import InteractionError, NotJsonError
from ding.utils.system_helper import ReportingThread

from .action import ConnectionRefuse, DisconnectionRefuse, TaskFail, TaskRefuse

_logger = logging.getLogger(__name__)

#: Maximum number of characters of a traceback that is sent to the master.
TRACEBACK_LIMIT = 4000


class _MasterSession:
    """A connection to the master: sends heartbeats until it is closed or lost, and answers.

    Args:
        address: The master's address.
        token: Token that authenticates both sides.
        engine: Client for the master; if it cannot reach the master, the master is lost.
        span: Seconds between heartbeats; a master with many slaves requests a longer span.
        all_count: Whether the master counts all messages, in both directions, as signs of life. If
            so, heartbeats are only sent after ``span`` seconds without a message.
        on_lost: Called once, with the cause, when the master is lost.
    """

    def __init__(
        self,
        address: str,
        token: str,
        engine: HttpEngine,
        span: float,
        all_count: bool,
        on_lost: "Callable[[_MasterSession, Exception], object]",
    ) -> None:
        self.address, self.token = address, token
        self._engine, self._span, self._all_count = engine, span, all_count
        self.asked_span = 0.0  # the span that a master with many slaves requests
        self._on_lost = on_lost
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self.heard = time.monotonic()  # the master's last sign of life
        self.last_sign = self.heard  # this side's last sign of life
        self.was_late = False  # whether the master may have timed out before the answer
        self.thread = ReportingThread(
            self._beat, f"heartbeat-{address}", lambda cause: self._lose(InteractionError(cause))
        )

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def close(self) -> bool:
        """Stop the heartbeats, without waiting; returns whether the session was open."""
        with self._lock:
            was_open = not self.closed
            self._closed.set()
        self._engine.close()
        return was_open

    def answer(self, kind: str, message: AnswerMessage, *, last: bool = False) -> None:
        """Report the end of a task to the master; if it cannot be reached, it is lost.

        Args:
            kind: ``complete`` or ``fail``.
            last: Whether to send the answer only once, with a short timeout.

        Raises:
            NotJsonError: The result cannot be converted to JSON.
            MasterResponseException: The answer is larger than the master accepts.
        """
        hasty: dict[str, Any] = dict(retries=0, timeout=durations.LAST_REQUEST) if last else {}
        try:
            self._engine.request("PUT", f"slave/task/{kind}", message.body(), **hasty)
            self.heard = self.last_sign = time.monotonic()
        except NotJsonError:
            raise
        except (MasterTaskDataInvalid, MasterSystemShuttingDown) as err:
            _logger.info("the answer to task %s is not taken: %s", message.id, err)
        except Exception as err:
            # The master is not lost: the caller sends a smaller answer.
            if getattr(err, "status_code", None) == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise
            self._lose(err)

    def _beat(self) -> None:
        # Not at once: some masters accept heartbeats only after the slave's answer to `connect`.
        due, span = time.monotonic() + self._span, self._span
        while not self._closed.wait(max(0.0, due - time.monotonic())):
            if self._all_count and self.last_sign + span > time.monotonic():
                due = self.last_sign + span
                continue
            due = time.monotonic() + span
            try:
                timeout = max(2.0, span)
                response = self._engine.request("GET", "slave/heartbeat", timeout=timeout)
                self.heard = time.monotonic()
                if self._all_count:
                    self.asked_span = _asked_span(response)
                    span = max(self._span, self.asked_span)
            except MasterSystemShuttingDown:
                continue  # the master will disconnect; if it does not, the next heartbeats fail
            except Exception as err:
                self._lose(err)

    def _lose(self, err: Exception) -> None:
        if self.close():
            self._on_lost(self, err)


def _asked_span(response: requests.Response) -> float:
    """Seconds between heartbeats that a master with many slaves requests; 0 for other masters."""
    data = get_values_from_response(response)[4]
    span = data.get("heartbeat_span") if isinstance(data, Mapping) else None
    return min(float(span), durations.IDLE_TIMEOUT / 2) if isinstance(span, int | float) else 0.0


@dataclass
class _Assignment:
    """An accepted task."""

    message: TaskMessage
    session: _MasterSession
    answered: bool = False  # whether a thread (the worker, or the shutdown) reports its end


class Slave(HttpService):
    """Waits for a master to connect, and works on its tasks; subclasses implement the work.

    Args:
        host: Address to listen on, by default the loopback address.
        port: Port to listen on, by default 7236; 0 for a free port.
        heartbeat_span: Seconds between heartbeats to the master, by default 3. With a key, tasks
            and answers count as heartbeats as well.
        request_retries: Number of retries of a request before the master counts as lost.
        request_retry_waiting: Seconds between tries.
        channel: Channel number, which must be equal on both sides.
        key: The run's key. If given, masters without a certificate of the run are refused.
        request_timeout: Time limit for an answer of the master in seconds.
        max_body: Maximum size of a request's body in bytes.
        on_death: Called with the cause if the server fails; by default the cause is logged.
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
        self._requests = threading.Lock()  # serialises `connect`, `disconnect` and `task/new`
        self._changed = threading.Condition()  # guards the attributes below
        self._session: _MasterSession | None = None
        self._task: _Assignment | None = None
        self._last_task: UUID | None = None
        self._worker: threading.Thread | None = None

    def in_touch(self, tolerance: float) -> bool:
        """Whether the master gave a sign of life in the last ``tolerance`` seconds, or in twice the
        span between heartbeats that it requests, if that is longer."""
        session = self._session
        if session is None or session.closed:
            return False
        return time.monotonic() - session.heard <= max(tolerance, 2 * session.asked_span)

    # Methods for subclasses

    @abstractmethod
    def _process_task(self, task: Mapping[str, Any]) -> Any:
        """Work on a task; the result must be JSON. Runs in a separate thread.

        Raises:
            TaskFail: The task failed. The master is notified of other exceptions as well.
        """

    def _before_task(self, task: Mapping[str, Any]) -> object:
        """Called before a task is accepted; may raise `TaskRefuse`. Must be fast."""

    def _before_connection(self, data: Mapping[str, Any]) -> object:
        """Called before a master is accepted; may raise `ConnectionRefuse`."""

    def _before_disconnection(self, data: Mapping[str, Any]) -> object:
        """Called before a master is disconnected; may raise `DisconnectionRefuse`."""

    def _lost_connection(self, master_address: str, err: Exception) -> object:
        """Called when the master does not answer, or no longer accepts this slave."""

    # Requests

    def _routes(self) -> Mapping[str, Handler]:
        return {
            **super()._routes(),
            "POST /connect": self._handle_connect,
            "DELETE /disconnect": self._handle_disconnect,
            "POST /task/new": self._handle_task,
        }

    def _check_master(self, request: Request) -> _MasterSession:
        token, session = self._peer_token(request), self._session
        if session is None or session.closed:
            raise refusal(Code.SLAVE_NOT_CONNECTED, "no master is connected")
        if not same_secret(token, session.token):
            raise refusal(Code.MASTER_TOKEN_INVALID, "wrong master token", HTTPStatus.FORBIDDEN)
        session.heard = time.monotonic()
        return session

    def _handle_connect(self, request: Request) -> str:
        token = self._peer_token(request)
        refused = Code.SLAVE_CONNECTION_REFUSED
        message = parsed(request, ConnectMessage.parse, refused, max_body=SMALL_BODY)
        began = time.monotonic()
        with self._requests:
            old = self._session
            if old is not None and not old.closed:
                if old.was_late and same_secret(token, old.token):
                    return "connected"  # the master has not received the answer, and retries
                raise refusal(
                    Code.SLAVE_ALREADY_CONNECTED, f"the master at {old.address} is connected"
                )
            _call(self._before_connection, message.data, ConnectionRefuse)
            address = split_http_address(message.address)
            engine = self._client(address, "master", token, get_master_exception_by_error)
            # A foreign master, which has no key, may only count heartbeats.
            all_count = self._key is not None
            session = _MasterSession(
                message.address, token, engine, self._span, all_count, self._lost_master
            )
            session.was_late = time.monotonic() - began > durations.LAST_REQUEST
            with self._changed:
                self._check_open()  # `_on_stop` may have read the session just before
                self._session = session
                session.thread.start()
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
                return "the task was accepted before"  # the answer was lost, and the master retries
            if running is not None:
                raise refusal(
                    Code.TASK_ALREADY_EXIST, f"task {running.message.id} is being worked on"
                )
            _call(self._before_task, message.data, TaskRefuse)
            with self._changed:
                self._task = _Assignment(message, session)
                session.last_sign = time.monotonic()
                self._changed.notify_all()
        return "accepted"

    def _lost_master(self, session: _MasterSession, err: Exception) -> None:
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
        # The task's thread may hang, and the master waits for an answer.
        if task is not None and not task.session.closed and self._claim(task):
            cause = "the slave was shut down while it worked on the task"
            answer = AnswerMessage(task.message.id, {"type": "SlaveShutDown"}, cause)
            task.session.answer("fail", answer, last=True)
        deadline = time.monotonic() + durations.SLAVE_STOP
        if session is not None:
            session.close()
            if session.thread is not threading.current_thread():
                session.thread.join(durations.SLAVE_STOP)
        if self._worker is not None:
            self._worker.join(max(0.0, deadline - time.monotonic()))
            if self._worker.is_alive():
                _logger.warning("a task is still worked on after %g s", durations.SLAVE_STOP)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._task or self._shutting_down.is_set())
                task = self._task
            if task is None or self._shutting_down.is_set():
                return
            kind, answer = "", None
            if not task.session.closed:
                kind, answer = self._run(task.message)
            with self._changed:
                # Before the answer: the master may send the next task as soon as it receives it.
                self._task, self._last_task = None, task.message.id
            if answer is not None and self._claim(task):
                try:
                    task.session.answer(kind, answer)
                except (NotJsonError, MasterResponseException) as err:
                    task.session.answer("fail", _failure(task.message.id, err))

    def _claim(self, task: _Assignment) -> bool:
        """Claim the report of a task's end; returns whether the caller has to send it."""
        with self._changed:
            first, task.answered = not task.answered, True
        return first and not task.session.closed

    def _run(self, task: TaskMessage) -> tuple[str, AnswerMessage]:
        try:
            return "complete", AnswerMessage(task.id, self._process_task(task.data))
        except TaskFail as err:
            return "fail", AnswerMessage(task.id, err.result, err.message)
        except BaseException as err:  # the edge of the task: the error is reported to the master
            _logger.exception("task %s failed", task.id)
            return "fail", _failure(task.id, err)


def _failure(task_id: UUID, err: BaseException) -> AnswerMessage:
    """The answer for an unexpected exception."""
    summary = "".join(traceback.format_exception(err))[-TRACEBACK_LIMIT:]
    kind, text = type(err).__name__, str(err)[:TRACEBACK_LIMIT]
    result = {"type": kind, "message": text, "traceback": summary}
    return AnswerMessage(task_id, result, f"{kind}: {text}")


def _call(
    hook: Callable[[Mapping[str, object]], object],
    data: Mapping[str, object],
    refuse: Callable[[Mapping[str, object]], ResponsibleException],
) -> None:
    """Call a hook of the subclass; any exception becomes a refusal."""
    try:
        hook(data)
    except ResponsibleException:
        raise
    except Exception as err:
        _logger.exception("a hook of the slave failed")
        raise refuse({"type": type(err).__name__, "message": str(err)}) from err
