"""The commander as the coordinator asks it: one call at a time, and its errors end the run."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from ding.worker.messages import Kind, Task

from ._types import StateDict
from .base_parallel_commander import BaseCommander, Info
from .reported_values import error_line

_logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class GuardedCommander:
    """Calls a commander under a lock. Where it raises, the answer is what no news would be.

    Args:
        commander: Any registered one.
        on_error: Told in one line what it raised.

    Attributes:
        lock: Is held while the commander works; who counts what the commander counts, too, holds it
            around both, so that a saved state has both or neither.
    """

    def __init__(self, commander: BaseCommander, on_error: Callable[[str], object]) -> None:
        self._commander, self._on_error = commander, on_error
        self.lock = threading.RLock()

    def get_task(self, kind: Kind) -> Task | None:
        """A task for a worker that is idle now, if there is one."""
        if kind == "collector":
            return self._ask("get_collector_task", self._commander.get_collector_task, None)
        return self._ask("get_learner_task", self._commander.get_learner_task, None)

    def task_failed(self, kind: Kind, task: Task, cause: str) -> None:
        """A task has to be made anew."""
        failed = {**task, "message": cause}
        if kind == "collector":
            notify = self._commander.notify_fail_collector_task
            self._ask("notify_fail_collector_task", lambda: notify(failed), None)
        else:
            notify = self._commander.notify_fail_learner_task
            self._ask("notify_fail_learner_task", lambda: notify(failed), None)

    # ------------------------------------------------------------------ collectors

    def collector_progress(self, task_id: str, info: Info) -> None:
        update = self._commander.update_collect_progress
        self._ask("update_collect_progress", lambda: update(task_id, info), None)

    def is_collector_done(self, task_id: str, info: Info) -> bool:
        judge = self._commander.judge_collector_finish
        return bool(self._ask("judge_collector_finish", lambda: judge(task_id, info), False))

    def collector_finished(self, task_id: str, report: Info) -> bool:
        """Whether training has converged with it."""
        finish = self._commander.finish_collector_task
        return bool(self._ask("finish_collector_task", lambda: finish(task_id, report), None))

    def collector_came(self) -> None:
        increase = self._commander.increase_collector_task_space
        self._ask("increase_collector_task_space", increase, None)

    def collector_left(self) -> None:
        decrease = self._commander.decrease_collector_task_space
        self._ask("decrease_collector_task_space", decrease, None)

    # ------------------------------------------------------------------ learners

    def learner_progress(self, task_id: str, info: Info) -> None:
        update = self._commander.update_learner_info
        self._ask("update_learner_info", lambda: update(task_id, info), None)

    def is_learner_done(self, task_id: str, info: Info) -> bool:
        judge = self._commander.judge_learner_finish
        return bool(self._ask("judge_learner_finish", lambda: judge(task_id, info), False))

    def learner_finished(self, task_id: str, report: Info) -> str | None:
        """The id of the buffer that is not needed any more."""
        finish = self._commander.finish_learner_task
        return self._ask("finish_learner_task", lambda: finish(task_id, report), None)

    # ------------------------------------------------------------------ the run

    @property
    def converged_reason(self) -> str | None:
        return self._commander.converged_reason

    @property
    def finished_reason(self) -> str | None:
        return self._commander.finished_reason

    def weights_names(self) -> list[str]:
        """Names of weights that are not those of a task, such as a league's old players."""
        return self._ask("weights_files", self._commander.weights_files, [])

    def state_dict(self) -> StateDict:
        with self.lock:
            return self._commander.state_dict()

    def load_state_dict(self, state: StateDict) -> None:
        with self.lock:
            self._commander.load_state_dict(state)

    def _ask(self, name: str, call: Callable[[], Result], otherwise: Result) -> Result:
        with self.lock:
            try:
                return call()
            except Exception as err:
                self._on_error(f"the commander's {name}: {error_line(err)}")
                _logger.exception("the commander failed")
                return otherwise
