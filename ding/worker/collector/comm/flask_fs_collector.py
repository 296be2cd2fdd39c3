"""The collector that a run uses, with the documented method for each request."""

from collections.abc import Mapping
from typing import Any

from ding.utils import COMM_COLLECTOR_REGISTRY
from ding.worker.collector.comm.base_comm_collector import BaseCommCollector
from ding.worker.engines.http_worker import CallbackSlave
from ding.worker.messages import (
    CloseTask,
    Json,
    ResourceRequest,
    SamplesRequest,
    StartTask,
    Task,
)


class CollectorSlave(CallbackSlave):
    """Hands a coordinator's tasks to functions; a base of custom collectors.

    Args:
        callback_fn: ``deal_with_resource()``, ``deal_with_collector_start(task_info)``,
            ``deal_with_collector_data()`` and ``deal_with_collector_close()``.
    """

    callbacks = {
        "resource": ("deal_with_resource", None),
        "collector_start_task": ("deal_with_collector_start", "task_info"),
        "collector_data_task": ("deal_with_collector_data", None),
        "collector_close_task": ("deal_with_collector_close", None),
    }


@COMM_COLLECTOR_REGISTRY.register("flask_fs")
class FlaskFileSystemCollector(BaseCommCollector):
    """A collector worker; requests that come over HTTP are answered by `handle`."""

    listens = True

    def start(self) -> None:
        """Begin to take requests; a `ConfigError` if a folder cannot be used."""
        _ = self.stores
        super().start()

    def get_policy_update_info(self, path: str) -> Any:
        return super().get_policy_update_info(path)

    def send_stepdata(self, path: str, stepdata: Any) -> None:  # type: ignore[override]
        super().send_stepdata(path, stepdata)

    def send_metadata(self, metadata: Mapping[str, Json]) -> None:
        super().send_metadata(metadata)

    def deal_with_resource(self) -> Json:
        """This worker's ``cpu`` and ``gpu``, and whether it knows all messages."""
        return self._answer_json(ResourceRequest())

    def deal_with_collector_start(self, task_info: Task) -> None:
        """Begin a task; one that still runs is closed first. Raises `TaskFail` with the cause."""
        self.handle(StartTask("collector", task_info))

    def deal_with_collector_data(self) -> Json:
        """News of the task as a list: messages, the oldest first, and the progress.

        Raises:
            TaskFail: The collector's exception.
        """
        return self._answer_json(SamplesRequest())

    def deal_with_collector_close(self) -> Json:
        """End the task and return its report; raises `TaskFail` if the collector failed."""
        return self._answer_json(CloseTask("collector"))
