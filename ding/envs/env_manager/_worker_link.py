"""The manager's end of a worker process."""

import contextlib
import dataclasses
import math
import os
import select
import signal
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import GroupSpec
from ding.envs.env_manager._obs_store import Layout
from ding.envs.env_manager._runner import Answer, GroupStep
from ding.envs.env_manager._worker import UNLIMITED, SharedBlock, received, send
from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace
from ding.utils import durations
from ding.utils.errors import EnvDiedError, EnvTimeoutError
from ding.utils.processes import ChildProcess, signal_name
from ding.utils.types import State

#: How often a process that dies is started again; the count begins again after this many answers.
_MOST_DEATHS, _GOOD_ANSWERS = 5, 100


class WorkerLink:
    """Calls an ``EnvGroup`` in a worker process, and later in those that take its place.

    Its answers come in the order of the requests. Waiting for one raises what ended the process, or
    that it hangs; then it is `lost` until it is revived.

    Attributes:
        ids: Its environments.
        pending: Of the steps and resets under way, the environments of each.
    """

    def __init__(
        self, spec: GroupSpec, start: Callable[[GroupSpec], ChildProcess], connect_timeout: float
    ) -> None:
        self.spec, self.ids = spec, list(spec.env_fns)
        self._start_child, self._connect_timeout = start, connect_timeout
        self._memory: tuple[Layout, int, SharedBlock] | None = None
        self._statistics: tuple[object, ...] | None = None
        #: How often the process may still die and be started again.
        self.spare = _MOST_DEATHS
        self._start()

    # ---- life ---------------------------------------------------------------------------------

    def _start(self) -> None:
        self.pending: deque[list[int]] = deque()  # first: a watch may look at it from now on
        self._answers = 0
        self.child = self._start_child(self.spec)
        self.process, self._connection = self.child.process, self.child.link
        # Ends the worker of a manager that was never closed.
        self._finalizer = weakref.finalize(self, _abandon, self.child, os.getpid())
        self._fd = self._connection.fileno()
        self._poll = select.poll()  # several times quicker than multiprocessing's wait()
        self._poll.register(self._fd, select.POLLIN)
        self._poll.register(self.process.sentinel, select.POLLIN)
        self._is_lost = False
        self.deadline: float | None = None  # of the last of those, by the monotonic clock
        self.replies: deque[bytes] = deque()  # to these, that came before they were asked for

    @property
    def lost(self) -> bool:
        """Whether there is no process, or none that answers."""
        return self._is_lost or not self.process.is_alive()

    def await_start(self) -> dict[str, FoundSpace]:
        limit = self._connect_timeout
        return received(self._next_reply(_deadline(limit), f"start within {limit} s"))

    def revive(self) -> None:
        """Start another process."""
        self.end(0.0)
        self.spec = self._next_spec()
        self._start()
        self.await_start()
        if self._memory is not None:
            self.attach(*self._memory)
        if self._statistics is not None:
            self.ask("load_statistics", *self._statistics)

    def _next_spec(self) -> GroupSpec:
        return dataclasses.replace(self.spec, renewals=self.spec.renewals + 1)

    def attach(self, layout: Layout, env_num: int, block: SharedBlock) -> None:
        """Have it write the observations of steps into shared memory from now on."""
        self._memory = layout, env_num, block
        self.post("attach", layout, env_num, block.size)
        with contextlib.suppress(OSError):
            block.send_to(self._connection, self.process.pid)

    def end(self, deadline: float) -> None:
        """Wait for the process to end, kill it at the deadline, and close the pipe."""
        self.process.join(max(0.0, deadline - time.monotonic()))
        self.child.kill()
        self.process.join(durations.ENV_JOIN)
        self._connection.close()
        self.pending.clear()
        self._finalizer.detach()

    # ---- requests -----------------------------------------------------------------------------

    def ask(self, method: str, *args: Answer) -> Answer:
        """Have it run a method of its ``EnvGroup``."""
        if method == "load_statistics":
            self._statistics = args
        if method == "load_env_states":  # the next process must not begin as an earlier one did
            renewals = max(args[0][env_id]["renewals"] for env_id in self.ids)
            self.spec = dataclasses.replace(self.spec, renewals=renewals)
        self.post(method, *args)
        self._keep_replies()
        return received(self._next_reply(None))

    def env_states(self) -> Mapping[int, State]:
        """Of its group; if it does not answer, of the one that its replacement would start with."""
        deadline = time.monotonic() + durations.ENV_SETTLE
        while len(self.replies) < len(self.pending):
            if not self._readable(deadline) or not self.process.is_alive():
                return EnvGroup(self._next_spec()).env_states()
            self.replies.append(self._next_reply(self.deadline))
        try:
            return self.ask("env_states")
        except EnvDiedError:
            return EnvGroup(self._next_spec()).env_states()

    def begin(self, ids: list[int], method: str, *args: object) -> None:
        limits, limit = self.spec.settings, None
        # Each of its environments may begin a new episode with the step.
        resets = self.ids if method == "step" else ids
        if limits.reset_timeout is not None:
            limit = limits.max_retry * (limits.reset_timeout + limits.retry_waiting_time)
            limit *= len(resets)
        if method == "step":  # with the resets after it
            step_limit = limits.step_timeout
            # A worker steps its environments one after the other.
            limit = None if step_limit is None else len(self.ids) * step_limit + (limit or 0.0)
        self.post(method, *args)
        self.pending.append(ids)
        self.deadline = _deadline(limit)

    def receive(self) -> GroupStep:
        data = self.replies.popleft() if self.replies else self._next_reply(self.deadline)
        ids = self.pending.popleft()
        answer = received(data)
        self._answers += 1
        if self._answers == _GOOD_ANSWERS:
            self.spare = _MOST_DEATHS
        return GroupStep(ids, (), answer, [{}] * len(ids)) if type(answer) is list else answer

    def drop_steps(self) -> None:
        self._keep_replies()
        self.pending.clear()
        self.replies.clear()

    # ---- the pipe -----------------------------------------------------------------------------

    def post(self, name: str, *args: object) -> None:
        """Send a request."""
        with contextlib.suppress(OSError):  # a broken pipe
            send(self._connection, (name, *args))

    def _keep_replies(self) -> None:
        while len(self.replies) < len(self.pending):
            self.replies.append(self._next_reply(self.deadline))

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
            deadline = None if deadline == self.deadline else deadline
            self.deadline = None

    def _readable(self, deadline: float | None) -> bool:
        """Wait until there is a message, the process has ended or the deadline has passed."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = self._poll.poll(None if left is None else math.ceil(left * 1000))
        return any(fd == self._fd for fd, _ in ready) or self._connection.poll()

    def _died(self) -> EnvDiedError:
        self._is_lost = True
        code = self.child.end_status()
        if code is not None and code < 0:
            how = f"was killed by signal {-code} ({signal_name(-code)})"
            if -code == signal.SIGKILL:
                how += "; often the system's answer to a lack of memory"
        else:
            how = (
                f"ended with exit code {code}; its own output may state why, and "
                "create_config.env_manager.type='base' runs the environments in this process"
            )
        if not self.spare:
            how = f"died {_MOST_DEATHS + 1} times within {_GOOD_ANSWERS} steps, at last it {how}"
        return EnvDiedError(f"the process of {_named(self.ids)} {how}", self.ids[0])

    def _too_late(self, doing: str) -> EnvTimeoutError:
        self._is_lost = True
        late = self.pending[0] if self.pending else self.ids
        limits = self.spec.settings
        return EnvTimeoutError(
            f"{_named(late)} did not {doing} in time (step_timeout={limits.step_timeout} s, "
            f"reset_timeout={limits.reset_timeout} s)",
            late[0],
        )


def _deadline(limit: float | None) -> float | None:
    return None if limit is None else time.monotonic() + limit + durations.ENV_REPORT_GRACE


def _named(ids: Sequence[int]) -> str:
    return f"env {ids[0]}" if len(ids) == 1 else f"envs {', '.join(map(str, ids))}"


def _abandon(child: ChildProcess, owner_pid: int) -> None:
    if os.getpid() == owner_pid:  # a forked child has a copy of the manager, but not its workers
        child.kill()
        child.end_status()
        child.link.close()
