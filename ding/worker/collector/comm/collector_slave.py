"""The HTTP side of a collector worker."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from easydict import EasyDict

from ding.interaction import Slave
from ding.worker.error_report import ErrorReport


class CollectorSlave(Slave):
    """Hands the coordinator's tasks to callbacks.

    Args:
        callback_fn: ``deal_with_resource``, ``deal_with_collector_start`` (of the task's
            ``task_info``), ``deal_with_collector_data`` and ``deal_with_collector_close``; perhaps
            ``deal_with_lost_connection`` and ``deal_with_disconnection``.
    """

    def __init__(self, *args: Any, callback_fn: dict[str, Callable], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._callback_fn = callback_fn
        self._data_options = _options(callback_fn["deal_with_collector_data"])

    def _process_task(self, task: Mapping[str, Any]) -> Any:
        name = task.get("name")
        if name == "resource":
            return self._callback_fn["deal_with_resource"]()
        if name == "collector_start_task":
            self._callback_fn["deal_with_collector_start"](_task_info(task))
            return {"message": "the collector task has started"}
        if name == "collector_data_task":
            options = {key: task[key] for key in self._data_options if key in task}
            return self._callback_fn["deal_with_collector_data"](**options)
        if name == "collector_close_task":
            return self._callback_fn["deal_with_collector_close"]()
        text = (
            f"a collector has no task {name!r}; expected 'resource', 'collector_start_task', "
            "'collector_data_task' or 'collector_close_task' as the field 'name'"
        )
        raise ErrorReport("UnknownTask", text).task_fail()

    def _lost_connection(self, master_address: str, err: Exception) -> None:
        tell = self._callback_fn.get("deal_with_lost_connection")
        if tell is not None:
            tell(f"lost the coordinator at {master_address}: {type(err).__name__}: {err}")

    def _before_disconnection(self, data: Mapping[str, Any]) -> None:
        tell = self._callback_fn.get("deal_with_disconnection")
        if tell is not None:
            tell()


def _options(callback: Callable) -> list[str]:
    """Which of the options of a data task a callback takes."""
    try:
        parameters = inspect.signature(callback).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in ("quota", "wait") if name in parameters]


def _task_info(task: Mapping[str, Any]) -> EasyDict:
    info = task.get("task_info")
    missing = [
        name
        for name in ("task_id", "buffer_id", "collector_cfg")
        if not isinstance(info, Mapping) or name not in info
    ]
    if missing:
        text = (
            f"'collector_start_task' came without {', '.join(missing)}; expected task_info with "
            "task_id, buffer_id and collector_cfg"
        )
        raise ErrorReport("BadTask", text).task_fail()
    return EasyDict(info)
