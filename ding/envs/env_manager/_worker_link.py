"""The manager's end of a worker process."""

import contextlib
import dataclasses
import math
import pickle
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import GroupSpec
from ding.envs.env_manager._steps import GroupStep
from ding.envs.env_manager._wire import UNLIMITED, Failure, SharedBlock, packed, send
from ding.utils import durations
from ding.utils.errors import EnvDiedError, EnvTimeoutError
from ding.utils.processes import ChildProcess, signal_name


class WorkerLink:
    """A worker process, and after it those that take its place.

    Its answers come in the order of the requests. That it is gone, or hangs, shows when an answer
    is waited for: that raises what befell it, and it is `lost` until it is revived.

    Args:
        spec: What it runs.
        start: Starts a process that serves a spec; `await_start` says how that went.
        connect_timeout: Seconds that making the environments may take.

    Attributes:
        ids: Its environments.
        pending: Of the steps and resets under way, the environments of each.
        lost: Whether there is no process, or none that answers.
    """

    def __init__(
        self, spec: GroupSpec, start: Callable[[GroupSpec], ChildProcess], connect_timeout: float
    ) -> None:
        self.spec, self.ids = spec, list(spec.env_fns)
        self._start_child, self._connect_timeout = start, connect_timeout
        self._memory: tuple[Any, int, SharedBlock] | None = None
        self._start()

    # ---- life ---------------------------------------------------------------------------------

    def _start(self) -> None:
        self.child = self._start_child(self.spec)
        self.process, self._connection = self.child.process, self.child.link
        self._fd = self._connection.fileno()
        self._poll = None
        if hasattr(select, "poll"):  # several times quicker than multiprocessing's wait()
            self._poll = select.poll()
            self._poll.register(self._fd, select.POLLIN)
            self._poll.register(self.process.sentinel, select.POLLIN)
        self.lost = False
        self.pending: deque[list[int]] = deque()
        self._deadline: float | None = None  # of the last of those
        self._replies: deque[bytes] = deque()  # to these, that came before they were asked for

    def await_start(self) -> dict[str, Any]:
        """Wait until the environments are made; the spaces, if environment 0 is one of them."""
        return self.reply(self._connect_timeout, f"start within {self._connect_timeout} s")

    def revive(self) -> None:
        """Start another process, whose environments are not reset yet.

        Raises:
            EnvError: That failed.
        """
        stop([self], 0.0)
        self.spec = dataclasses.replace(self.spec, renewals=self.spec.renewals + 1)
        self._start()
        self.await_start()
        if self._memory is not None:
            self.attach(*self._memory)

    def attach(self, layout: Any, env_num: int, block: SharedBlock) -> None:
        """Have it write the observations of steps into shared memory from now on."""
        self._memory = layout, env_num, block
        self._post("attach", layout, env_num, block.size)
        with contextlib.suppress(OSError):
            block.send_to(self._connection, self.process.pid)

    # ---- requests -----------------------------------------------------------------------------

    def ask(self, method: str, *args: Any) -> Any:
        """Have it run a method of its ``EnvGroup``.

        Raises:
            EnvError: It failed, with the traceback of the worker, or the worker is gone.
        """
        self._post("ask", method, *args)
        self._keep_replies()
        return self.reply(None)

    def state_dict(self) -> Mapping[int, dict[str, Any]]:
        """Of its group; if it does not answer, of the one that its replacement would start with."""
        deadline = time.monotonic() + durations.ENV_SETTLE
        while len(self._replies) < len(self.pending):
            if not self._readable(deadline) or not self.process.is_alive():
                return EnvGroup(self.spec).state_dict()
            self._replies.append(self._next_reply(self._deadline))
        return self.ask("state_dict")

    def reply(self, limit: float | None, doing: str = "answer") -> Any:
        """The answer to the last request.

        Args:
            limit: Seconds that it may take, ``None`` for any time.
            doing: What takes so long, for the message.

        Raises:
            EnvError: It failed, or the worker is lost.
        """
        return _read(self._next_reply(_deadline(limit), doing))

    # ---- steps and resets ---------------------------------------------------------------------

    def post_step(self, ids: list[int], actions: Any, want_rows: bool) -> None:
        """Start a step of some environments; shared memory, if any, gets their observations."""
        limit = self.spec.settings.step_timeout
        if limit is not None:  # for all of them, and for the resets after it
            limit = len(self.ids) * limit + (self._reset_limit(self.ids) or 0.0)
        self._begin(ids, limit, "step", ids, packed(actions), want_rows)

    def post_restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        """Start resets."""
        ids = list(params)
        self._begin(ids, self._reset_limit(ids), "restart", params, recount)

    def receive(self) -> GroupStep:
        """What the oldest of those under way gave.

        Raises:
            EnvError: An environment failed, or the worker is lost.
        """
        data = self._replies.popleft() if self._replies else self._next_reply(self._deadline)
        ids = self.pending.popleft()
        answer = _read(data)
        return GroupStep(ids, (), answer, [{}] * len(ids)) if type(answer) is list else answer

    def drop_steps(self) -> None:
        """Wait for the steps under way and forget what they gave."""
        self._keep_replies()
        self.pending.clear()
        self._replies.clear()

    @property
    def deadline(self) -> float | None:
        """When the step under way is too late, by the monotonic clock."""
        return self._deadline if self.pending else None

    @property
    def has_reply(self) -> bool:
        """Whether the answer to a step came while another reply was waited for."""
        return bool(self._replies)

    # ---- the pipe -----------------------------------------------------------------------------

    def _post(self, name: str, *args: Any) -> None:
        with contextlib.suppress(OSError):  # a broken pipe
            send(self._connection, (name, *args))

    def _begin(self, ids: list[int], limit: float | None, name: str, *args: Any) -> None:
        self._post(name, *args)
        self.pending.append(ids)
        self._deadline = _deadline(limit)

    def _reset_limit(self, ids: Sequence[int]) -> float | None:
        """Seconds that it may take to reset some environments."""
        limits = self.spec.settings
        if limits.reset_timeout is None:
            return None
        return len(ids) * limits.max_retry * (limits.reset_timeout + limits.retry_waiting_time)

    def _keep_replies(self) -> None:
        while len(self._replies) < len(self.pending):
            self._replies.append(self._next_reply(self._deadline))

    def _next_reply(self, deadline: float | None, doing: str = "answer") -> bytes:
        if self._connection.closed:
            raise self._died()
        while True:
            if not self._readable(deadline):
                late = deadline is not None and time.monotonic() >= deadline
                raise self._too_late(doing) if late and self.process.is_alive() else self._died()
            try:
                data = self._connection.recv_bytes()
            except (EOFError, OSError):
                raise self._died() from None
            if data != UNLIMITED:
                return data
            deadline = None if deadline == self._deadline else deadline
            self._deadline = None

    def _readable(self, deadline: float | None) -> bool:
        """Wait until a message is there, the process is gone or the deadline has passed."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if self._poll is None:
            return self._connection in wait(self.child.waitables, left) or self._connection.poll()
        ready = self._poll.poll(None if left is None else math.ceil(left * 1000))
        return any(fd == self._fd for fd, _ in ready) or self._connection.poll()

    # ---- ends ---------------------------------------------------------------------------------

    def _died(self) -> EnvDiedError:
        self.lost = True
        code = self.child.end_status()
        if code is not None and code < 0:
            how = f"was killed by signal {-code} ({signal_name(-code)})"
            if -code == signal.SIGKILL:
                how += "; often the system's answer to a lack of memory"
        else:
            how = f"ended with exit code {code}"
        return EnvDiedError(f"the process of {_named(self.ids)} {how}", self.ids[0])

    def _too_late(self, doing: str) -> EnvTimeoutError:
        self.lost = True
        late = self.pending[0] if self.pending else self.ids
        limits = self.spec.settings
        return EnvTimeoutError(
            f"{_named(late)} did not {doing} in time (step_timeout={limits.step_timeout} s, "
            f"reset_timeout={limits.reset_timeout} s)",
            late[0],
        )


def stop(links: Iterable[WorkerLink], patience: float) -> None:
    """End workers: ask them, wait `patience` seconds for all of them, then kill."""
    links = list(links)
    if patience:
        for link in links:
            link._post("close")
        _join(links, patience)
    for link in links:
        link.child.kill()
    _join(links, durations.ENV_JOIN)
    for link in links:
        link.child.link.close()
        link.pending.clear()


def _read(data: bytes) -> Any:
    message = pickle.loads(data)
    if isinstance(message, Failure):
        error, cause = message.to_raise()
        raise error from cause
    return message


def _deadline(limit: float | None) -> float | None:
    return None if limit is None else time.monotonic() + limit + durations.ENV_REPORT_GRACE


def _join(links: Sequence[WorkerLink], patience: float) -> None:
    deadline = time.monotonic() + patience
    for link in links:
        link.process.join(max(0.0, deadline - time.monotonic()))


def _named(ids: Sequence[int]) -> str:
    return f"env {ids[0]}" if len(ids) == 1 else f"envs {', '.join(map(str, ids))}"
