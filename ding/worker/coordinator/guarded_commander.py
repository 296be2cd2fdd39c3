"""The commander as the coordinator asks it: one call at a time, and its errors end the run."""

import logging
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from ding.worker.messages import Kind, Task
from ding.worker.tasks import FailedTask

from .base_parallel_commander import BaseCommander
from .reported_values import error_line

_logger = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class GuardedCommander:
    """Calls a commander's methods under a lock.

    Args:
        commander: Any registered one.
        on_error: Told in one line what it raised.

    Attributes:
        lock: Is held while the commander works; who counts what the commander counts, too, holds it
            around both, so that a saved state has both or neither.
    """

    def __init__(self, commander: BaseCommander, on_error: Callable[[str], object]) -> None:
        self.commander, self._on_error = commander, on_error
        self.lock = threading.RLock()

    def ask(
        self,
        method: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result | None:
        """What a method of the commander returns; ``None`` if it raises, which is no news."""
        with self.lock:
            try:
                return method(*args, **kwargs)
            except Exception as err:
                name = getattr(method, "__name__", "method")
                self._on_error(f"the commander's {name}: {error_line(err)}")
                _logger.exception("the commander failed")
                return None

    def get_task(self, kind: Kind) -> Task | None:
        """A task for a worker that is idle now, if there is one."""
        if kind == "collector":
            return self.ask(self.commander.get_collector_task)
        return self.ask(self.commander.get_learner_task)

    def task_failed(self, kind: Kind, task: Task, cause: str) -> None:
        """A task has to be made anew."""
        notify = self.commander.notify_fail_learner_task
        if kind == "collector":
            notify = self.commander.notify_fail_collector_task
        self.ask(notify, cast(FailedTask, {**task, "message": cause}))
