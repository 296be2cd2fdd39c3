"""A parallel run as its parts share it: commander, tasks, buffers, counters and verdict."""

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
    """What the parts of a run share. Threads may share it.

    Args:
        exp_name: The run's folder.
        callbacks: Are called with what happens, and may end the run.
        log: Where episodes are written, and the commander's scalars.
        turn: Is taken for whatever is decided or counted, so that a saved state is of one moment.
        make_buffer: Makes a `ChunkBuffer` of its config and its ``name``.
        max_task_retry: Failures in a row without progress that are tried again.
        task_limits: Seconds, by kind, within which a worker has to take a task.

    Attributes:
        verdict: How it ended; ``None`` while it is running.
        buffers: By the ids that learners' tasks name.
        table: Where each task is.
        wake: Set when there may be tasks to give out.
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
        # Not the turn: a signal must end the run also while a thread decides, and hangs in it.
        self._verdict_lock, self._over = threading.Lock(), threading.Event()

    def stop(self, reason: str, status: str = "interrupted") -> None:
        """End the run; does not wait. The first reason counts."""
        with self._verdict_lock:
            if self.verdict is None:
                self.verdict = Ending(status, one_line(reason))
        self._over.set()
        self.wake.set()

    def stop_at_goal(self) -> None:
        """End the run if the commander says that it has reached a good end."""
        if self.commander.converged_reason is not None:
            self.stop(self.commander.converged_reason, "converged")
        elif self.commander.finished_reason is not None:
            self.stop(self.commander.finished_reason, "finished")

    @property
    def system_shutdown_flag(self) -> bool:
        """Whether the run is over."""
        return self.verdict is not None

    def wait(self, timeout: float | None = None) -> Ending | None:
        """How the run ended, ``None`` if it has not within ``timeout`` seconds."""
        self._over.wait(timeout)
        return self.verdict

    def ask(
        self,
        method: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result | None:
        """What a method of the commander returns; ``None`` if it raises, which ends the run."""
        with self.turn:
            try:
                return method(*args, **kwargs)
            except Exception as err:
                name = getattr(method, "__name__", "method")
                self.stop(f"the commander's {name}: {error_line(err)}", "failed")
                _logger.exception("the commander failed")
                return None

    def give_back(self, kind: Kind, task: Task, cause: str) -> None:
        """Report to the commander that a task has to be made again."""
        notify = self.commander.notify_fail_learner_task
        if kind == "collector":
            notify = self.commander.notify_fail_collector_task
        self.ask(notify, cast(FailedTask, {**task, "message": cause}))

    def open_buffer(self, buffer_id: str, cfg: Settings) -> ChunkBuffer:
        """The buffer of that id; a new one if there is none."""
        if buffer_id not in self.buffers:
            self.buffers[buffer_id] = self.make_buffer(cfg, name=buffer_id)
        return self.buffers[buffer_id]

    def info(self, s: str) -> None:
        """Show a line to the operator."""
        self.view.log(s)

    def error(self, s: str) -> None:
        """Show a line of something that went wrong."""
        self.view.log(s, warning=True)

    def notify(self, moment: Callable[..., RunMoment], **facts: object) -> None:
        """Call the callbacks after this turn; the run ends if they ask for that, or raise.

        Args:
            moment: What they are given; made of where the run is, and ``facts``.
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
        """Where the run is, for callbacks: its folder, env steps and updates."""
        return self.exp_name, self.facts.envstep, self.facts.train_iter
