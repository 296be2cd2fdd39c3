"""The manager's end of a worker process."""

import collections
import contextlib
import math
import select
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from ding.envs.env_manager._wire import (
    PICKLE,
    STEP,
    UNLIMITED,
    Failure,
    SharedBlock,
    send,
    unpickled,
)
from ding.envs.env_manager._worker import EnvWorkerSpec
from ding.utils import CloudPickleWrapper, durations
from ding.utils.errors import EnvDiedError, EnvError, EnvTimeoutError
from ding.utils.processes import ChildProcess, signal_name


class EnvWorkerLost(Exception):
    """A worker is gone or hangs; whether that is an error depends on the manager's settings."""

    def __init__(self, error: EnvError) -> None:
        super().__init__(str(error))
        self.error = error


class WorkerLink:
    """A worker process, from its start to its end.

    Its replies come in the order of the requests. Any method may raise ``EnvWorkerLost``.

    Args:
        spec: What it runs.
        target: ``worker_fn(p, c, env_fn_wrapper, obs_buffer, method_name_list)``.
        context: The start method.
        method_names: Passed on to `target`.
    """

    def __init__(
        self, spec: EnvWorkerSpec, target: Callable, context: str, method_names: list[str]
    ) -> None:
        self.spec = spec
        self.ids = list(spec.env_fns)
        self.pending: collections.deque[list[int]] = collections.deque()  # steps under way
        self._deadline: float | None = None
        self._action_layout: tuple | None = None  # as the worker knows it
        self._replies: collections.deque[bytes] = collections.deque()
        self.child = ChildProcess(
            target,
            lambda own, theirs: (own, theirs, CloudPickleWrapper(spec), None, method_names),
            context,
            name=f"env-worker-{self.ids[0]}-{self.ids[-1]}",
            daemon=True,
        )
        self.process, self._connection = self.child.process, self.child.link
        self._fd = self._connection.fileno()
        self._poll = None
        if hasattr(select, "poll"):  # several times quicker than multiprocessing's wait()
            self._poll = select.poll()
            self._poll.register(self._fd, select.POLLIN)
            self._poll.register(self.process.sentinel, select.POLLIN)

    # ---- requests -----------------------------------------------------------------------------

    def ask(self, method: str, *args: Any) -> Any:
        """Have the worker run a method of its ``EnvGroup``.

        Raises:
            EnvError: It failed, with the traceback of the worker, or the worker is gone.
        """
        try:
            self.post("ask", method, *args)
            self._keep_replies()
            return self.reply(None)
        except EnvWorkerLost as lost:
            raise lost.error from None

    def post(self, name: str, *args: Any) -> None:
        """Send a request."""
        try:
            send(self._connection, (name, *args))
        except OSError:  # a broken pipe
            raise EnvWorkerLost(self._died()) from None

    def reply(self, limit: float | None, doing: str = "answer") -> Any:
        """The reply to the last request.

        Args:
            limit: Seconds that it may take, ``None`` for any time.
            doing: What takes so long, for the message.

        Raises:
            EnvError: It failed.
        """
        return self._decoded(self._next_reply(_deadline(limit), doing))

    def attach(self, layout: Any, block: SharedBlock) -> None:
        """Have the worker write observations into shared memory from now on."""
        self.post("attach", layout, block.size)
        try:
            block.send_to(self._connection, self.process.pid)
        except OSError:
            raise EnvWorkerLost(self._died()) from None

    # ---- steps --------------------------------------------------------------------------------

    def send_step(
        self,
        ids: list[int],
        actions: Sequence[Any],
        slot: int,
        want_rows: bool,
        limit: float | None,
    ) -> None:
        """Start a step of some environments."""
        self.post("step", ids, actions, slot, want_rows)
        self._note_step(ids, limit)

    def send_columns(self, actions: np.ndarray, slot: int, limit: float | None) -> None:
        """Start a step of all environments of the worker, where no rows are wanted."""
        layout = actions.dtype.str, actions.shape, type(actions)
        if layout != self._action_layout:
            self.post("set_action_layout", *layout)
            self._action_layout = layout
        try:
            self._connection.send_bytes(STEP + bytes((slot,)) + actions.tobytes())
        except OSError:
            raise EnvWorkerLost(self._died()) from None
        self._note_step(self.ids, limit)

    def receive_step(self) -> Any:
        """The ``StepReply``, or bytes, of the oldest step under way.

        Raises:
            EnvError: An environment failed.
        """
        data = self._replies.popleft() if self._replies else self._next_reply(self._deadline)
        self.pending.popleft()
        return self._decoded(data) if data[:1] == PICKLE else data

    def drop_steps(self) -> None:
        """Wait for the steps under way and forget what they gave."""
        self._keep_replies()
        self.pending.clear()
        self._replies.clear()

    def settle(self, seconds: float) -> bool:
        """Take in the steps under way; whether all have answered within some seconds."""
        deadline = time.monotonic() + seconds
        try:
            while len(self._replies) < len(self.pending):
                self._replies.append(self._next_reply(deadline))
        except EnvWorkerLost:
            return False
        return True

    @property
    def deadline(self) -> float | None:
        """When the step under way is too late, by the monotonic clock."""
        return self._deadline if self.pending else None

    @property
    def has_reply(self) -> bool:
        """Whether the answer to a step came while another reply was waited for."""
        return bool(self._replies)

    @property
    def waitables(self) -> tuple[Any, Any]:
        """What becomes ready with a message, and with the process's end."""
        return self.child.waitables

    def _note_step(self, ids: list[int], limit: float | None) -> None:
        self.pending.append(ids)
        self._deadline = _deadline(limit)

    def _keep_replies(self) -> None:
        while len(self._replies) < len(self.pending):
            self._replies.append(self._next_reply(self._deadline))

    # ---- the pipe -----------------------------------------------------------------------------

    def _next_reply(self, deadline: float | None, doing: str = "answer") -> bytes:
        while True:
            if not self._readable(deadline):
                late = deadline is not None and time.monotonic() >= deadline
                hangs = late and self.process.is_alive()
                raise EnvWorkerLost(self._too_late(doing) if hangs else self._died())
            try:
                data = self._connection.recv_bytes()
            except (EOFError, OSError):
                raise EnvWorkerLost(self._died()) from None
            if data[:1] != UNLIMITED:
                return data
            deadline = None if deadline == self._deadline else deadline
            self._deadline = None

    def _readable(self, deadline: float | None) -> bool:
        """Wait until a message is there, the process is gone or the deadline has passed."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if self._poll is None:
            return self._connection in wait(self.waitables, left) or self._connection.poll()
        ready = self._poll.poll(None if left is None else math.ceil(left * 1000))
        return any(fd == self._fd for fd, _ in ready) or self._connection.poll()

    def _decoded(self, data: bytes) -> Any:
        message = unpickled(data)
        if isinstance(message, Failure):
            error, cause = message.to_raise()
            raise error from cause
        return message

    # ---- ends ---------------------------------------------------------------------------------

    def _died(self) -> EnvDiedError:
        code = self.child.end_status()
        if code is not None and code < 0:
            how = f"was killed by signal {-code} ({signal_name(-code)})"
            if -code == signal.SIGKILL:
                how += "; often the system's answer to a lack of memory"
        else:
            how = f"ended with exit code {code}"
        return EnvDiedError(f"the process of {self._envs(self.ids)} {how}", self.ids[0])

    def _too_late(self, doing: str) -> EnvTimeoutError:
        late = self.pending[0] if self.pending else self.ids
        limits = self.spec.settings
        return EnvTimeoutError(
            f"{self._envs(late)} did not {doing} in time (step_timeout={limits.step_timeout} s, "
            f"reset_timeout={limits.reset_timeout} s)",
            late[0],
        )

    @staticmethod
    def _envs(ids: Sequence[int]) -> str:
        return f"env {ids[0]}" if len(ids) == 1 else f"envs {', '.join(map(str, ids))}"


def stop(links: Iterable[WorkerLink], patience: float) -> None:
    """End workers: ask them, wait `patience` seconds for all of them, then kill."""
    links = list(links)
    if patience:
        for link in links:
            with contextlib.suppress(EnvWorkerLost):
                link.post("close")
        _join(links, patience)
    for link in links:
        link.child.kill()
    _join(links, durations.ENV_JOIN)
    for link in links:
        link.waitables[0].close()


def _deadline(limit: float | None) -> float | None:
    return None if limit is None else time.monotonic() + limit + durations.ENV_REPORT_GRACE


def _join(links: list[WorkerLink], patience: float) -> None:
    deadline = time.monotonic() + patience
    for link in links:
        link.process.join(max(0.0, deadline - time.monotonic()))
