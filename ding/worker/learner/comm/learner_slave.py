"""The slave that a learner is to its coordinator: task names to calls."""

from collections.abc import Callable, Mapping
from typing import Any

from ding.interaction.slave import Slave, TaskFail
from ding.utils import durations


class LearnerSlave(Slave):
    """Calls what a learner's task names.

    Args:
        callback_fn: What is called: ``deal_with_resource()``,
            ``deal_with_learner_start(task_info)``, ``deal_with_get_data()``,
            ``deal_with_learner_learn(data)``, ``deal_with_learner_close()``;
            optional ``deal_with_left()``, called when the master has said goodbye, and
            ``deal_with_lost(cause)``, called when it was lost.
    """

    def __init__(self, *args: Any, callback_fn: dict[str, Callable], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._callback_fn = callback_fn
        self._task_info: Mapping[str, Any] | None = None
        self._steps: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "resource": self._resource,
            "learner_start_task": self._start_task,
            "learner_get_data_task": self._get_data,
            "learner_learn_task": self._learn,
            "learner_close_task": self._close_task,
        }

    def _process_task(self, task: Mapping[str, Any]) -> Any:
        name = task.get("name")
        if name not in self._steps:
            cause = f"unknown task {name!r}; a learner knows {', '.join(self._steps)}"
            raise TaskFail({"type": "UnknownTask", "message": cause}, cause)
        return self._steps[name](task)

    def _resource(self, task: Mapping[str, Any]) -> Any:
        return self._callback_fn["deal_with_resource"]()

    def _start_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        self._task_info = _field(task, "task_info")
        self._callback_fn["deal_with_learner_start"](self._task_info)
        return {"message": "the learner task has started", **self._identity()}

    def _get_data(self, task: Mapping[str, Any]) -> dict[str, Any]:
        identity = self._identity()
        return {**identity, **self._callback_fn["deal_with_get_data"](**_wait(task))}

    def _learn(self, task: Mapping[str, Any]) -> dict[str, Any]:
        identity = self._identity()
        info = self._callback_fn["deal_with_learner_learn"](task.get("data"), **_wait(task))
        return {"info": info, **identity}

    def _close_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        identity = self._identity()
        self._task_info = None
        return {**identity, **(self._callback_fn["deal_with_learner_close"]() or {})}

    def _identity(self) -> dict[str, Any]:
        info = self._task_info
        if info is None:
            cause = "no learner task has been started here: send learner_start_task first"
            raise TaskFail({"type": "NoTask", "message": cause}, cause)
        return {"task_id": info.get("task_id"), "buffer_id": info.get("buffer_id")}

    def _before_disconnection(self, data: Mapping[str, Any]) -> None:
        self._task_info = None
        self._callback_fn.get("deal_with_left", _nothing)()

    def _lost_connection(self, master_address: str, err: Exception) -> None:
        self._task_info = None
        cause = f"the master at {master_address} is lost: {err}"
        self._callback_fn.get("deal_with_lost", _nothing)(cause)


def _nothing(*args: Any) -> None:
    return None


def _field(task: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = task.get(name)
    if not isinstance(value, dict):
        cause = f"{task.get('name')}: {name} is a {type(value).__name__}, expected an object"
        raise TaskFail({"type": "BadTask", "message": cause}, cause)
    return value


def _wait(task: Mapping[str, Any]) -> dict[str, float]:
    wait = task.get("wait")
    if isinstance(wait, bool) or not isinstance(wait, int | float):
        return {}
    return {"wait": min(max(float(wait), 0.0), durations.LEARNER_LONGEST_WAIT)}
