"""What the sessions of workers and the coordinator have to say to each other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ding.utils.errors import DingError

#: Callbacks that a coordinator gives to its comm part.
CALLBACKS = (
    "deal_with_collector_send_data",
    "deal_with_collector_judge_finish",
    "deal_with_collector_finish_task",
    "deal_with_learner_get_data",
    "deal_with_learner_send_info",
    "deal_with_learner_judge_finish",
    "deal_with_learner_finish_task",
    "deal_with_increase_collector",
    "deal_with_decrease_collector",
)


class WorkerFailed(DingError):
    """A worker could not do its task; it is there for the next one.

    Attributes:
        cause: What the operator is told.
        detail: What the worker told beside it, such as a traceback.
        told: Whether the worker itself named the cause, so that another may well meet it, too.
    """

    def __init__(self, cause: str, detail: Any = None, told: bool = False) -> None:
        super().__init__(cause)
        self.cause, self.detail, self.told = cause, detail, told


class NonsenseAnswer(WorkerFailed):
    """A worker gave an answer that its task does not have."""


class SideFailed(WorkerFailed):
    """The coordinator itself could not go on with a worker's task."""


class WorkerBusy(WorkerFailed):
    """A worker has not ended an earlier step."""


class WorkerLost(WorkerFailed):
    """A worker is gone, or has to be let go."""


@dataclass(frozen=True)
class Failure:
    """A task that failed, or a worker that was lost without one."""

    worker: str
    cause: str
    task_id: str | None = None
    lost: bool = False
    told: bool = False
    detail: Any = None


def one_line(text: Any, most: int = 600) -> str:
    """What somebody else told, fit for a terminal: no control characters, and not too long."""
    words = " ".join(str(text).split())
    return "".join(letter for letter in words if letter.isprintable())[:most]


def error_words(error: BaseException) -> str:
    """An error in one line; with its type, unless it is one of ours, which speak for themselves."""
    if isinstance(error, DingError):
        return one_line(error)
    return one_line(f"{type(error).__name__}: {error}").removesuffix(":")


class Ask(Protocol):
    """Gives a worker one step of its task and waits for the answer.

    Raises:
        WorkerFailed: There is none to go on with.
    """

    def __call__(self, data: Mapping[str, Any], step: str) -> Any: ...


def _nothing(*args: Any) -> None:
    return None


class Link:
    """Calls back to the coordinator.

    Args:
        callbacks: Every name of `CALLBACKS`; those of this class that are missing do nothing.

    Attributes:
        task_running: ``(task_id, worker)``: the worker has begun.
        task_closing: ``(task_id)``: it is being closed.
        task_failed: ``(failure)``.
        collector_progress: ``(task_id, info)``: counts that a collector told.
        learner_buffer: ``(buffer_id) -> ChunkBuffer | None``.
        envstep: ``()``: env steps that all collectors made.
        env_statistics: ``()``: what normalising environments of all collectors have seen.
        warn: ``(worker, text)``: something that a worker wants to be known.
        fatal: ``(cause)``: the run cannot go on.
        workers_changed: ``()``: a worker came, left or became free.
        failed_worker: ``(failure)``: a worker without a task was lost.
        worker_left: ``(worker)``: it is not there any more, or was replaced.
    """

    task_running: Callable[[str, str], Any]
    task_closing: Callable[[str], Any]
    task_failed: Callable[[Failure], Any]
    collector_progress: Callable[[str, Mapping[str, Any]], Any]
    learner_buffer: Callable[[str], Any]
    envstep: Callable[[], Any]
    env_statistics: Callable[[], Any]
    warn: Callable[[str, str], Any]
    fatal: Callable[[str], Any]
    workers_changed: Callable[[], Any]
    failed_worker: Callable[[Failure], Any]
    worker_left: Callable[[str], Any]

    def __init__(self, callbacks: Mapping[str, Callable[..., Any]]) -> None:
        missing = [name for name in CALLBACKS if name not in callbacks]
        if missing:
            raise KeyError(f"callback_fn lacks {', '.join(missing)}")
        for name in Link.__annotations__:
            setattr(self, name, callbacks.get(name, _nothing))
        self.send_data = callbacks["deal_with_collector_send_data"]
        self.collector_done = callbacks["deal_with_collector_judge_finish"]
        self.finish_collector = callbacks["deal_with_collector_finish_task"]
        self.get_data = callbacks["deal_with_learner_get_data"]
        self.send_info = callbacks["deal_with_learner_send_info"]
        self.learner_done = callbacks["deal_with_learner_judge_finish"]
        self.finish_learner = callbacks["deal_with_learner_finish_task"]
        self.increase_collector = callbacks["deal_with_increase_collector"]
        self.decrease_collector = callbacks["deal_with_decrease_collector"]
