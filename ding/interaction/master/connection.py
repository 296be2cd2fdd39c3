"""A master's connection to a slave."""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from uuid import UUID

import requests

from ding.interaction.base.common import ControllableContext, default_func, random_token
from ding.interaction.base.messages import AnswerMessage, ConnectMessage, DisconnectMessage
from ding.interaction.base.network import HttpEngine
from ding.interaction.base.threading import SerialExecutor
from ding.interaction.config import (
    DEFAULT_CHANNEL,
    DEFAULT_MASTER_PORT,
    DEFAULT_SLAVE_PORT,
    LOCAL_HOST,
)
from ding.interaction.exception.base import ResponseException
from ding.interaction.exception.slave import (
    SlaveSlaveDisconnectionRefused,
    get_slave_exception_by_error,
)
from ding.utils import durations
from ding.utils.errors import InteractionError

from .task import Task, TaskResultType

_logger = logging.getLogger(__name__)


class SlaveConnection(ControllableContext):
    """Connects to one slave and sends it tasks.

    Args:
        host: The slave's host.
        port: The slave's port, by default 7236.
        https: Whether the slave has a certificate of a public authority.
        channel: Channel number, which must be equal on both sides.
        my_address: Address to which the slave sends its answers.
        token: Token that authenticates both sides; by default a new one.
        request_retries: Number of retries of a request.
        request_retry_waiting: Seconds between tries.
        key: The run's key, which the slave must have as well; ``https`` is then ignored.
        request_timeout: Time limit for an answer of the slave in seconds.
        name: The master's name for the slave.
        on_open: Called before the slave is connected; if it raises, the slave is not connected.
        on_end: Called after the slave was disconnected or lost.

    Attributes:
        name: Name of the slave in messages.
        known_as: The argument ``name``, by default `name`.
        tolerance: Seconds without a sign of life until the slave is lost; ``None`` for the master's
            default.
        asked_span: Seconds between heartbeats that the master has requested; 0 if it has not.
    """

    def __init__(
        self,
        host: str,
        port: int | None = None,
        https: bool = False,
        channel: int | None = None,
        my_address: str | None = None,
        token: str | None = None,
        request_retries: int | None = None,
        request_retry_waiting: float | None = None,
        *,
        key: str | None = None,
        request_timeout: float | None = None,
        name: str | None = None,
        on_open: Callable[["SlaveConnection"], object] | None = None,
        on_end: Callable[["SlaveConnection"], object] | None = None,
    ) -> None:
        port = DEFAULT_SLAVE_PORT if port is None else port
        self.name = f"{host}:{port}" if name is None else f"{name} ({host}:{port})"
        self.known_as = name or self.name
        self._on_open, self._on_end = default_func()(on_open), default_func()(on_end)
        self.token = token or random_token()
        channel = DEFAULT_CHANNEL if channel is None else channel
        self._new_engine = lambda: HttpEngine(
            host,
            port,
            https,
            key=key,
            role="slave",
            headers={"Channel": str(channel), "Token": self.token},
            error_of=get_slave_exception_by_error,
            timeout=request_timeout,
            retries=request_retries,
            retry_waiting=request_retry_waiting,
        )
        self._my_address = my_address or f"{LOCAL_HOST}:{DEFAULT_MASTER_PORT}"
        self._lock = threading.Lock()
        self._engine: HttpEngine | None = None  # set from the start of `connect` until the end
        self._is_connected = False
        self._tasks: dict[UUID, Task] = {}
        self._callbacks = SerialExecutor(f"callbacks-{self.name}")
        self.last_seen = time.monotonic()
        self.tolerance: float | None = None
        self.asked_span = 0.0

    @property
    def is_connected(self) -> bool:
        return self._is_connected

    @property
    def is_open(self) -> bool:
        """Whether requests of the slave are accepted: it is connected or connecting."""
        return self._engine is not None

    def connect(self) -> None:
        """Connect the slave to this master.

        Raises:
            SlaveResponseException: The slave refuses.
            NotAuthenticError: The slave has no certificate of the run.
            requests.RequestException: The slave cannot be reached.
            InteractionError: The slave is connected or connecting.
            NameTakenError: Another connection has got its name in the meantime.
        """
        self._on_open(self)
        with self._lock:
            if self._engine is not None:
                raise InteractionError(f"slave {self.name} is connected already, or about to be")
            self.last_seen = time.monotonic()
            # A new engine: a closed one does not retry requests.
            engine = self._engine = self._new_engine()
        try:
            engine.request("POST", "connect", ConnectMessage(self._my_address).body())
        except BaseException:
            self.lose("it could not be connected")
            raise
        with self._lock:
            # The connection may have been lost while the slave answered.
            if self._engine is engine:
                self._is_connected, self.last_seen = True, time.monotonic()

    def disconnect(self) -> None:
        """Disconnect the slave, even if it does not answer; its open tasks fail.

        Raises:
            SlaveSlaveDisconnectionRefused: The slave refuses, and stays connected.
        """
        self._disconnect()

    start, close = connect, disconnect

    def new_task(self, data: Mapping[str, object] | None = None) -> Task:
        """Create a task for this slave, to be started."""
        engine = self._engine
        if engine is None or not self.is_connected:
            raise InteractionError(f"slave {self.name} is not connected; connect it first")

        def open_task() -> None:
            task = known()
            assert task is not None  # it is being started
            with self._lock:
                if engine is not self._engine:
                    raise InteractionError(f"slave {self.name} is not connected any more")
                self._tasks[task.id] = task

        task = Task(
            engine,
            {} if data is None else data,
            # Not the task itself: a reference cycle would keep its data until garbage collection.
            before_task_start=lambda _: open_task(),
            after_task_start=lambda _: self._note_sign(),
            error_task_start=lambda task_id, _: self._tasks.pop(task_id, None),
            submit=self._callbacks.submit,
        )
        known = weakref.ref(task)
        return task

    def _note_sign(self) -> None:
        """Record a sign of life of the slave."""
        self.last_seen = time.monotonic()

    # What the master calls

    def end_task(self, kind: TaskResultType, answer: AnswerMessage) -> bool:
        """Record the slave's answer; returns whether the task was open."""
        with self._lock:
            task = self._tasks.pop(answer.id, None)
        if task is None:
            return False
        has_failed = kind is TaskResultType.FAILED
        cause = (answer.message or "the slave says that it failed") if has_failed else None
        task.end(kind, answer.result, cause)
        return True

    def disconnect_now(self) -> None:
        """Disconnect within about a second, even if the slave refuses."""
        try:
            self._disconnect(timeout=durations.LAST_REQUEST)
        except ResponseException as err:
            self.lose(f"the master shuts down; the slave said: {err}")

    def end_callbacks(self) -> threading.Thread | None:
        """End the thread of callbacks after the submitted ones; returns it, to be joined."""
        return self._callbacks.close()

    def _disconnect(self, timeout: float | None = None) -> None:
        engine = self._engine
        if engine is None or not self.is_connected:
            self._on_end(self)
            return
        try:
            body = DisconnectMessage().body()
            engine.request("DELETE", "disconnect", body, retries=0, timeout=timeout)
        except SlaveSlaveDisconnectionRefused:
            raise
        except (requests.RequestException, ResponseException) as err:
            _logger.info("slave %s did not say goodbye: %s", self.name, err)
        self.lose("the master has disconnected the slave")

    def lose(self, cause: str) -> bool:
        """Mark the slave as lost, without a request; returns whether it was connected."""
        with self._lock:
            was_connected, self._is_connected = self._is_connected, False
            engine, self._engine = self._engine, None
            tasks, self._tasks = list(self._tasks.values()), {}
        if engine is not None:
            engine.close()
        for task in tasks:
            result = {"type": "ConnectionLost", "message": cause}
            task.end(TaskResultType.FAILED, result, f"slave {self.name} is lost: {cause}")
        if was_connected:
            self._on_end(self)
        return was_connected


class SlaveConnectionProxy(ControllableContext):
    """A connection that reports connecting and disconnecting.

    Args:
        after_connect: Called without arguments after connecting.
        after_disconnect: Called without arguments after disconnecting.

    Attributes:
        connection: The connection.
    """

    def __init__(
        self,
        connection: SlaveConnection,
        after_connect: Callable[..., object] | None = None,
        after_disconnect: Callable[..., object] | None = None,
    ) -> None:
        self.connection = connection
        self._after_connect = default_func()(after_connect)
        self._after_disconnect = default_func()(after_disconnect)

    @property
    def is_connected(self) -> bool:
        return self.connection.is_connected

    def connect(self) -> None:
        """As `SlaveConnection.connect`."""
        self.connection.connect()
        self._after_connect()

    def disconnect(self) -> None:
        """As `SlaveConnection.disconnect`."""
        self.connection.disconnect()
        self._after_disconnect()

    def disconnect_now(self) -> None:
        """As `SlaveConnection.disconnect_now`."""
        self.connection.disconnect_now()
        self._after_disconnect()

    start, close = connect, disconnect

    def new_task(self, data: Mapping[str, object] | None = None) -> Task:
        """As `SlaveConnection.new_task`."""
        return self.connection.new_task(data)
