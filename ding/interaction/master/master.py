"""A master connects to slaves, sends them tasks and receives the results."""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus

from werkzeug import Request

from ding.interaction.base.messages import AnswerMessage
from ding.interaction.base.network import split_http_address, with_scheme
from ding.interaction.base.service import Handler, HttpService, parsed, refusal, same_secret
from ding.interaction.config import (
    DEFAULT_HEARTBEAT_CHECK_SPAN,
    DEFAULT_HEARTBEAT_TOLERANCE,
    DEFAULT_MASTER_PORT,
    MIN_HEARTBEAT_CHECK_SPAN,
)
from ding.interaction.exception.master import MasterErrorCode as Code
from ding.utils import durations
from ding.utils.errors import NameTakenError
from ding.utils.system_helper import ReportingThread

from .connection import SlaveConnection, SlaveConnectionProxy
from .task import TaskResultType

_logger = logging.getLogger(__name__)


class Master(HttpService):
    """Manages connections to slaves by name.

    Args:
        host: Address to listen on, by default the loopback address.
        port: Port to listen on, by default 7235; 0 for a free port.
        heartbeat_tolerance: Seconds without a sign of life until a slave is lost, by default 17.
            With a key and many slaves it is longer, because they send fewer heartbeats.
        heartbeat_check_span: Minimum seconds between checks of the slaves, by default 1.
        request_retries: Number of retries of a request to a slave.
        request_retry_waiting: Seconds between tries.
        channel: Channel number, which must be equal on both sides.
        my_address: Address at which slaves reach this master, by default host and port.
        key: The run's key. If given, slaves need a certificate of the run.
        request_timeout: Time limit for an answer of a slave in seconds.
        max_body: Maximum size of a request's body in bytes.
        on_death: Called with the cause if the server fails; by default the cause is logged.
        on_warning: Called with each problem, and once per host that connects without the run's key;
            by default the problems are logged.
    """

    _role = "master"
    _peer_codes = Code.SLAVE_TOKEN_NOT_GIVEN, Code.SLAVE_TOKEN_INVALID

    def __init__(
        self,
        host: str | None = None,
        port: int | None = None,
        heartbeat_tolerance: float | None = None,
        heartbeat_check_span: float | None = None,
        request_retries: int | None = None,
        request_retry_waiting: float | None = None,
        channel: int | None = None,
        my_address: str | None = None,
        *,
        key: str | None = None,
        request_timeout: float | None = None,
        max_body: int | None = None,
        on_death: Callable[[str], object] | None = None,
        on_warning: Callable[[str], object] | None = None,
    ) -> None:
        port = DEFAULT_MASTER_PORT if port is None else port
        trying, hooks = (request_retries, request_retry_waiting), (on_death, on_warning)
        super().__init__(host, port, *trying, channel, key, request_timeout, max_body, *hooks)
        tolerance, span = heartbeat_tolerance, heartbeat_check_span
        self._tolerance = DEFAULT_HEARTBEAT_TOLERANCE if tolerance is None else tolerance
        span = DEFAULT_HEARTBEAT_CHECK_SPAN if span is None else span
        self._check_span = max(span, MIN_HEARTBEAT_CHECK_SPAN)
        self._given_address = my_address
        self._lock = threading.Lock()
        self._slaves: dict[str, SlaveConnectionProxy] = {}
        self._by_token: dict[bytes, SlaveConnection] = {}
        self._ending: list[threading.Thread] = []  # threads of callbacks of removed slaves
        self._watch: threading.Thread | None = None
        self._watch_ends = threading.Event()

    @property
    def my_address(self) -> str:
        """The address at which slaves reach this master."""
        return self._given_address or with_scheme(super().my_address)

    def _ports(self) -> set[int]:
        return {self.port, split_http_address(self.my_address)[1]}

    def new_connection(
        self, name: str, host: str, port: int | None = None, https: bool = False
    ) -> SlaveConnectionProxy:
        """Create a connection to a slave; call its ``connect`` next.

        Args:
            name: Name of the connection, ``master[name]``, until the slave is disconnected or lost.
            port: The slave's port, by default 7236.

        Raises:
            NameTakenError: Another connection has this name; also a `KeyError`.
            InteractionError: The master must be started first, to know its port.
        """
        connection = SlaveConnection(
            host,
            port,
            https,
            self._channel,
            self.my_address,
            request_retries=self._retries,
            request_retry_waiting=self._retry_waiting,
            key=self._key,
            request_timeout=self._timeout,
            name=name,
            on_open=lambda _: self._register(name, proxy),
            on_end=self._forget,
        )
        proxy = SlaveConnectionProxy(connection)
        self._register(name, proxy)
        return proxy

    def __getitem__(self, name: str) -> SlaveConnectionProxy:
        if name not in self._slaves:
            known = ", ".join(map(repr, sorted(self._slaves))) or "none"
            raise KeyError(f"no connection is called {name!r}; there are: {known}")
        return self._slaves[name]

    def __delitem__(self, name: str) -> None:
        """Disconnect a slave, and remove its connection."""
        self.__getitem__(name).disconnect()

    def __contains__(self, name: str) -> bool:
        return name in self._slaves

    def lose(self, name: str, cause: str) -> bool:
        """Mark a slave as lost, without a request; returns whether it was connected.

        Its open tasks fail, and its name becomes available.
        """
        proxy = self._slaves.get(name)
        if proxy is None:
            return False
        was_connected = proxy.connection.lose(cause)
        self._forget(proxy.connection)
        return was_connected

    def tolerate(self, name: str, seconds: float) -> None:
        """Set the heartbeat tolerance of one slave."""
        if (proxy := self._slaves.get(name)) is not None:  # it may have been removed
            proxy.connection.tolerance = seconds

    def _lost_connection(self, name: str, cause: str) -> None:
        """Hook for subclasses: called when a slave was lost, after its open tasks have failed."""

    def _register(self, name: str, proxy: SlaveConnectionProxy) -> None:
        with self._lock:
            if self._slaves.get(name, proxy) is not proxy:
                raise NameTakenError(
                    f"there is a connection called {name!r}: choose another name, or disconnect it "
                    "first"
                )
            self._slaves[name] = proxy
            self._by_token[_digest(proxy.connection.token)] = proxy.connection

    def _forget(self, connection: SlaveConnection) -> None:
        with self._lock:
            name = connection.known_as
            if name in self._slaves and self._slaves[name].connection is connection:
                del self._slaves[name], self._by_token[_digest(connection.token)]
            self._ending = [thread for thread in self._ending if thread.is_alive()]
            if (thread := connection.end_callbacks()) is not None:
                self._ending.append(thread)

    def _routes(self) -> Mapping[str, Handler]:
        return {
            **super()._routes(),
            "GET /slave/heartbeat": self._handle_heartbeat,
            "PUT /slave/task/complete": lambda r: self._end_task(r, TaskResultType.COMPLETED),
            "PUT /slave/task/fail": lambda r: self._end_task(r, TaskResultType.FAILED),
        }

    def _check_slave(self, request: Request) -> SlaveConnection:
        token = self._peer_token(request)
        connection = self._by_token.get(_digest(token))
        # Not `is_connected`: the first heartbeat may arrive before the slave's answer to `connect`.
        if connection is None or not (connection.is_open and same_secret(token, connection.token)):
            raise refusal(Code.SLAVE_TOKEN_INVALID, "no slave has this token", HTTPStatus.FORBIDDEN)
        connection.last_seen = time.monotonic()
        return connection

    def _handle_heartbeat(self, request: Request) -> str | Mapping[str, object]:
        connection, span = self._check_slave(request), self._crowd_span
        connection.asked_span = span if span >= durations.HEARTBEAT else 0.0
        return {"heartbeat_span": span} if connection.asked_span else "alive"

    @property
    def _crowd_span(self) -> float:
        """Seconds between heartbeats per slave, so that all slaves together do not send too many; 0
        without a key, since foreign slaves do not support it."""
        return 0.0 if self._key is None else durations.HEARTBEAT_EACH * len(self._slaves)

    def _end_task(self, request: Request, kind: TaskResultType) -> str:
        connection = self._check_slave(request)
        code, status = Code.TASK_DATA_INVALID, HTTPStatus.FORBIDDEN
        answer = parsed(request, AnswerMessage.parse, code, status)
        if not connection.end_task(kind, answer):
            raise refusal(code, f"task {answer.id} is not waited for", status)
        return "noted"

    def _connections(self) -> list[SlaveConnection]:
        with self._lock:
            return [proxy.connection for proxy in self._slaves.values()]

    def _on_start(self) -> None:
        # Without this thread, the master would wait for lost slaves.
        self._watch_ends.clear()
        self._watch = ReportingThread(self._watch_slaves, "heartbeat-watch", self._on_death)
        self._watch.start()

    def _watch_slaves(self) -> None:
        """Mark connected slaves as lost after too long a time without a sign of life."""
        # A slave that connects during a wait cannot be lost within `tolerance` seconds.
        due = time.monotonic() + min(self._check_span, self._tolerance)
        while not self._watch_ends.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            # If this process was suspended, it received no heartbeats: restart all tolerances.
            stalled = now - due > max(0.5, self._tolerance / 2)
            earliest = now + self._tolerance
            for connection in filter(lambda one: one.is_connected, self._connections()):
                if stalled:
                    connection.last_seen = now
                silent = now - connection.last_seen
                tolerance = connection.tolerance or self._tolerance
                # Two heartbeats may be lost, and the requested span may be from a time with more
                # slaves.
                tolerance = max(tolerance, 3 * max(connection.asked_span, self._crowd_span))
                if silent > tolerance:
                    cause = f"no sign of life for {silent:.1f} s, {tolerance:g} s are tolerated"
                    if connection.lose(cause):
                        _logger.warning("slave %s is lost: %s", connection.name, cause)
                        try:
                            self._lost_connection(connection.known_as, cause)
                        except Exception:
                            _logger.exception("_lost_connection failed")
                else:
                    earliest = min(earliest, connection.last_seen + tolerance)
            due = max(earliest, now + self._check_span)

    def _on_stop(self) -> None:
        self._watch_ends.set()
        if self._watch is not None:
            self._watch.join(durations.MASTER_STOP)
        connections = self._connections()
        leaving = [
            ReportingThread(connection.disconnect_now, f"leave-{connection.name}", connection.lose)
            for connection in connections
            if connection.is_connected
        ]
        for thread in leaving:
            thread.start()
        deadline = time.monotonic() + durations.MASTER_STOP
        for thread in leaving:
            thread.join(max(0.0, deadline - time.monotonic()))
        ending = [connection.end_callbacks() for connection in connections]
        for callbacks in [*ending, *self._ending]:
            if callbacks is not None and callbacks is not threading.current_thread():
                callbacks.join(max(0.0, deadline - time.monotonic()))


def _digest(token: str) -> bytes:
    """The dict key of a token: hashed, so that look-up times reveal nothing about the token."""
    return hashlib.sha256(token.encode(errors="backslashreplace")).digest()
