"""What sessions report, as calls of functions that somebody gave by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from ding.envs.running_statistics import Statistics
from ding.worker.messages import Json
from ding.worker.seams import Batches, Events, TaskFailure

T = TypeVar("T")
#: Functions that a coordinator which has no `Events` object gives.
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
Callbacks = Mapping[str, Callable[..., object]]


class CallbackEvents(Events):
    """Calls the functions of `CALLBACKS`; other events are passed over.

    Args:
        callbacks: The functions by their names, with the parameters of the methods of `Events`.

    Raises:
        KeyError: One of them is missing.
    """

    def __init__(self, callbacks: Callbacks) -> None:
        missing = [name for name in CALLBACKS if name not in callbacks]
        if missing:
            raise KeyError(f"callback_fn lacks {', '.join(missing)}")
        self._call = callbacks

    def deal_with_collector_send_data(
        self, task_id: str, buffer_id: str, data_id: str, data: Mapping[str, Json]
    ) -> None:
        self._call["deal_with_collector_send_data"](task_id, buffer_id, data_id, data)

    def deal_with_collector_judge_finish(self, task_id: str, data: Mapping[str, Json]) -> bool:
        return bool(self._call["deal_with_collector_judge_finish"](task_id, data))

    def deal_with_collector_finish_task(
        self, task_id: str, finished_task: Mapping[str, Json]
    ) -> None:
        self._call["deal_with_collector_finish_task"](task_id, finished_task)

    def collector_progress(self, task_id: str, info: Mapping[str, Json]) -> None:
        pass

    def deal_with_learner_get_data(
        self, task_id: str, buffer_id: str, batch_size: int, cur_learner_iter: int
    ) -> Sequence[Mapping[str, Json]] | None:
        get_data = self._call["deal_with_learner_get_data"]
        rows = get_data(task_id, buffer_id, batch_size, cur_learner_iter)
        return cast("Sequence[Mapping[str, Json]] | None", rows)

    def deal_with_learner_send_info(
        self, task_id: str, buffer_id: str, info: Mapping[str, Json]
    ) -> None:
        self._call["deal_with_learner_send_info"](task_id, buffer_id, info)

    def deal_with_learner_judge_finish(self, task_id: str, info: Mapping[str, Json]) -> bool:
        return bool(self._call["deal_with_learner_judge_finish"](task_id, info))

    def deal_with_learner_finish_task(
        self, task_id: str, finished_task: Mapping[str, Json]
    ) -> None:
        self._call["deal_with_learner_finish_task"](task_id, finished_task)

    def learner_buffer(self, buffer_id: str) -> Batches | None:
        return None

    def envstep(self) -> int:
        return 0

    def env_statistics(self) -> Statistics:
        return {}

    def task_running(self, task_id: str, worker: str) -> None:
        pass

    def task_closing(self, task_id: str) -> None:
        pass

    def task_failed(self, failure: TaskFailure) -> None:
        pass

    def deal_with_increase_collector(self) -> None:
        self._call["deal_with_increase_collector"]()

    def deal_with_decrease_collector(self) -> None:
        self._call["deal_with_decrease_collector"]()

    def workers_changed(self) -> None:
        pass

    def failed_worker(self, failure: TaskFailure) -> None:
        pass

    def worker_left(self, worker: str) -> None:
        pass

    def warn(self, worker: str, text: str) -> None:
        pass

    def fatal(self, cause: str) -> None:
        pass
