"""The shared state of a parallel run: commander, tasks, buffers, counters and verdict."""

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import ParamSpec, TypeVar, cast

from ding.utils.callbacks import Callbacks, RunMoment
from ding.utils.ending import Ending
from ding.utils.errors import CallbackError
from ding.utils.run_log import RunLog
from ding.utils.types import Settings
from ding.worker.messages import Kind, Task
from ding.worker.tasks import FailedTask

from .base_parallel_commander import BaseCommander
from .chunk_buffer import ChunkBuffer
from .run_facts import RetryLimit, RunFacts, error_line, one_line
from .run_files import RunFiles
from .run_status import RunView
from .task_table import TaskTable
from .turn import Turn

_logger = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Run:
    """The state that a run's parts share; safe for threads.

    Args:
        exp_name: The run's folder.
        callbacks: Called with events; they may end the run.
        log: Destination of episodes and the commander's scalars.
        turn: Held for all decisions and counts, so that a saved state is consistent.
        make_buffer: Creates a `ChunkBuffer` from its config and its ``name``.
        max_task_retry: Number of consecutive failures without progress that are retried.
        task_limits: By kind, seconds within which a worker must take a task.

    Attributes:
        verdict: How the run ended; ``None`` while it is running.
        buffers: By the ids in learners' tasks.
        table: The stage of each task.
        wake: Set when there may be tasks to assign.
    """

    def __init__(
        self,
        exp_name: str,
        commander: BaseCommander,
        view: RunView,
        callbacks: Callbacks,
        log: RunLog | None,
        *,
        turn: Turn,
        files: RunFiles,
        make_buffer: Callable[..., ChunkBuffer],
        max_task_retry: int,
        task_limits: Mapping[Kind, float],
    ) -> None:
        self.exp_name, self.commander, self.view = exp_name, commander, view
        commander.keep_weights = files.keep_weights
        self.callbacks, self.log, self.turn, self.files = callbacks, log, turn, files
        if log is not None:
            commander.tb_logger = log.writer
        self.make_buffer, self.buffers = make_buffer, dict[str, ChunkBuffer]()
        self.verdict: Ending | None = None
        self.table, self.facts = TaskTable(), RunFacts()
        self.retries, self.task_limits = RetryLimit(max_task_retry), task_limits
        self.wake = threading.Event()
        # Not the turn: a signal must end the run even while a thread hangs in a decision.
        self._verdict_lock, self._over = threading.Lock(), threading.Event()

    def stop(self, reason: str, status: str = "interrupted") -> None:
        """End the run; does not wait. Only the first reason is kept."""
        with self._verdict_lock:
            if self.verdict is None:
                self.verdict = Ending(status, one_line(reason))
        self._over.set()
        self.wake.set()

    def stop_at_goal(self) -> None:
        """End the run if the commander reports that its goal is reached."""
        if self.commander.converged_reason is not None:
            self.stop(self.commander.converged_reason, "converged")
        elif self.commander.finished_reason is not None:
            self.stop(self.commander.finished_reason, "finished")

    @property
    def system_shutdown_flag(self) -> bool:
        """Whether the run is over."""
        return self.verdict is not None

    def wait(self, timeout: float | None = None) -> Ending | None:
        """How the run ended; ``None`` if it does not end within ``timeout`` seconds."""
        self._over.wait(timeout)
        return self.verdict

    def ask(
        self,
        method: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result | None:
        """Call a method of the commander; if it raises, end the run and return ``None``."""
        with self.turn:
            try:
                return method(*args, **kwargs)
            except Exception as err:
                name = getattr(method, "__name__", "method")
                self.stop(f"the commander's {name}: {error_line(err)}", "failed")
                _logger.exception("the commander failed")
                return None

    def give_back(self, kind: Kind, task: Task, cause: str) -> None:
        """Report to the commander that a task must be created again."""
        notify = self.commander.notify_fail_learner_task
        if kind == "collector":
            notify = self.commander.notify_fail_collector_task
        self.ask(notify, cast(FailedTask, {**task, "message": cause}))

    def open_buffer(self, buffer_id: str, cfg: Settings) -> ChunkBuffer:
        """The buffer with that id; created if there is none."""
        if buffer_id not in self.buffers:
            self.buffers[buffer_id] = self.make_buffer(cfg, name=buffer_id)
        return self.buffers[buffer_id]

    def info(self, s: str) -> None:
        """Show a line to the operator."""
        self.view.log(s)

    def error(self, s: str) -> None:
        """Show an error line to the operator."""
        self.view.log(s, warning=True)

    def notify(self, moment: Callable[..., RunMoment], **facts: object) -> None:
        """Call the callbacks after this turn; the run ends if they ask for it, or raise.

        Args:
            moment: Class of the callbacks' argument, built from the run's position and ``facts``.
        """
        if self.callbacks:
            with self.turn:
                self.turn.later(partial(self._notify, moment(*self.moment(), **facts)))

    def _notify(self, moment: RunMoment) -> None:
        try:
            self.callbacks.notify(moment)
        except CallbackError as error:
            self.stop(f"{type(error).__name__}: {error}", "failed")
        if self.callbacks.request:
            self.stop(self.callbacks.request, "finished")

    def moment(self) -> tuple[str, int, int]:
        """The run's position, for callbacks: its folder, env steps and updates."""
        return self.exp_name, self.facts.envstep, self.facts.train_iter
