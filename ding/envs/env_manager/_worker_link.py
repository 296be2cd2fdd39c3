"""The manager's end of a worker process."""

import contextlib
import dataclasses
import math
import os
import select
import signal
import time
import weakref
from collections.abc import Callable, Mapping, Sequence

from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import GroupSpec
from ding.envs.env_manager._obs_store import Layout
from ding.envs.env_manager._runner import Answer, GroupStep
from ding.envs.env_manager._worker import SharedBlock, received, send
from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace
from ding.utils import durations
from ding.utils.errors import EnvDiedError, EnvError, EnvTimeoutError
from ding.utils.processes import ChildProcess, signal_name
from ding.utils.types import State

#: How often a process that dies is replaced; the count begins again after this many answers.
_MOST_DEATHS, _GOOD_ANSWERS = 5, 100


class WorkerLink:
    """Calls an ``EnvGroup`` in a worker process, and later in those that take its place.

    At most one step, or the resets of some environments, is under way. Waiting for an answer raises
    what ended the process, or that it hangs; then it is `lost` until it is revived.

    Attributes:
        ids: Its environments.
        pending: The environments of the step or resets under way.
        is_step: Whether that is a step.
        deadline: Of its answer, by the monotonic clock.
        recovered: What a process that replaced a lost one answered to resets: the next answer.
    """

    def __init__(
        self, spec: GroupSpec, start: Callable[[GroupSpec], ChildProcess], connect_timeout: float
    ) -> None:
        self.spec, self.ids = spec, list(spec.env_fns)
        self._start_child, self._connect_timeout = start, connect_timeout
        self._memory: tuple[Layout, int, SharedBlock] | None = None
        self._statistics: tuple[object, ...] | None = None
        #: Since the last `_GOOD_ANSWERS` answers, and since the last step that was answered.
        self._losses = self._losses_in_a_row = 0
        self._start()

    # ---- life ---------------------------------------------------------------------------------

    def _start(self) -> None:
        self.pending: list[int] = []  # first: a watch may look at it from now on
        self.is_step = False
        self.deadline = math.inf
        self.recovered: GroupStep | None = None
        self._reply: bytes | None = None  # that came before `receive` asked for it
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

    @property
    def lost(self) -> bool:
        """Whether there is no process, or none that answers."""
        return self._is_lost or not self.process.is_alive()

    @property
    def is_given_up(self) -> bool:
        """Whether only a reset revives it."""
        return self._connection.closed

    def await_start(self) -> dict[str, FoundSpace]:
        limit = self._connect_timeout
        return received(self._next_reply(_in_seconds(limit), f"start within {limit} s"))

    def may_lose(self, error: EnvError) -> bool:
        """Count the loss of a process; whether another one may take its place."""
        self._losses += 1
        self._losses_in_a_row += 1
        is_dead, limits = isinstance(error, EnvDiedError), self.spec.settings
        if is_dead and self._losses <= _MOST_DEATHS:
            return True
        may_retry = limits.retry_type == "renew" or not is_dead
        return may_retry and self._losses_in_a_row < limits.max_retry

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
        self.pending = []
        self._finalizer.detach()

    # ---- requests -----------------------------------------------------------------------------

    def ask(self, method: str, *args: Answer) -> Answer:
        """Have it run a method of its ``EnvGroup``."""
        if method == "load_statistics":
            self._statistics = args
        if method == "load_env_states":  # the next process must not begin as an earlier one did
            renewals = max(args[0][env_id]["renewals"] for env_id in self.ids)
            self.spec = dataclasses.replace(self.spec, renewals=renewals)
        if self.pending and not self.has_answer:
            self._reply = self._next_reply(self.deadline)
        self.post(method, *args)
        return received(self._next_reply(math.inf))

    def env_states(self) -> Mapping[int, State]:
        """Of its group; if it does not answer, of the one that its replacement would start with."""
        may_ask = not self.pending or self.has_answer
        if may_ask or self._readable(time.monotonic() + durations.ENV_SETTLE):
            with contextlib.suppress(EnvDiedError):
                return self.ask("env_states")
        return EnvGroup(self._next_spec()).env_states()

    def begin(self, ids: list[int], method: str, *args: object) -> None:
        """Begin a step, or resets; `receive` waits for the answer."""
        self.pending, self.is_step = ids, method == "step"
        if self.recovered is None:
            self.post(method, *args)
        # Its environments are stepped one after the other, and each may begin a new episode.
        limits = self.spec.settings
        if limits.step_timeout is not None and limits.reset_timeout is not None:
            resets = limits.max_retry * (limits.reset_timeout + limits.retry_waiting_time)
            self.deadline = _in_seconds(len(self.ids) * (limits.step_timeout + resets))

    @property
    def has_answer(self) -> bool:
        """Whether `receive` need not wait."""
        return self._reply is not None or self.recovered is not None

    def receive(self) -> GroupStep:
        """The answer to the step or resets under way; of a recovered worker, its resets'."""
        ids, answer = self.pending, self.recovered
        if answer is None:
            data = self._reply or self._next_reply(self.deadline)
            self.pending, self._reply = [], None
            answer = received(data)
            if self.is_step:
                self._losses_in_a_row = 0
        self.pending, self.recovered = [], None
        self._answers += 1
        if self._answers == _GOOD_ANSWERS:
            self._losses = 0
        return GroupStep(ids, (), answer, [{}] * len(ids)) if type(answer) is list else answer

    # ---- the pipe -----------------------------------------------------------------------------

    def post(self, name: str, *args: object) -> None:
        """Send a request."""
        with contextlib.suppress(OSError):  # a broken pipe
            send(self._connection, (name, *args))

    def _next_reply(self, deadline: float, doing: str = "answer") -> bytes:
        try:
            if self._readable(deadline):
                return self._connection.recv_bytes()
        except (EOFError, OSError):
            raise self._died() from None
        if time.monotonic() < deadline or not self.process.is_alive():
            raise self._died()
        self._is_lost = True
        late, limits = self.pending or self.ids, self.spec.settings
        raise EnvTimeoutError(
            f"{_named(late)} did not {doing} in time (step_timeout={limits.step_timeout} s, "
            f"reset_timeout={limits.reset_timeout} s)",
            late[0],
        )

    def _readable(self, deadline: float) -> bool:
        """Wait until there is a message, the process has ended or the deadline has passed."""
        left = max(0.0, deadline - time.monotonic())
        ready = self._poll.poll(None if left == math.inf else math.ceil(left * 1000))
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
        if self._losses >= _MOST_DEATHS:
            how = f"died {self._losses + 1} times within {_GOOD_ANSWERS} steps, at last it {how}"
        return EnvDiedError(f"the process of {_named(self.ids)} {how}", self.ids[0])


def _in_seconds(limit: float) -> float:
    return time.monotonic() + limit + durations.ENV_REPORT_GRACE


def _named(ids: Sequence[int]) -> str:
    return f"env {ids[0]}" if len(ids) == 1 else f"envs {', '.join(map(str, ids))}"


def _abandon(child: ChildProcess, owner_pid: int) -> None:
    if os.getpid() == owner_pid:  # a forked child has a copy of the manager, but not its workers
        child.kill()
        child.end_status()
        child.link.close()
