"""The standard collector worker, with the documented method for each request."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ding.utils import COMM_COLLECTOR_REGISTRY, get_data_decompressor
from ding.utils.errors import ConfigError, DataError, DingError
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
    """Passes a coordinator's tasks to callback functions; a base of custom collectors.

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
    """A collector worker that writes samples to the engine's stores and reads policies from them.

    `handle` answers HTTP requests. A subclass may extend the methods that send and read.
    """

    listens = True

    def start(self) -> None:
        """Start to accept requests; raises `ConfigError` if a folder cannot be used."""
        _ = self.stores
        super().start()

    def get_policy_update_info(self, path: str) -> Any:
        self.policy_changed(path)  # records the version that is read now
        kept = self._keep(path)
        try:
            found = self.stores.weights.newest(kept or path)
        except DingError:
            self._drop_kept_policy()
            raise
        policy_iter = found.facts.get("policy_iter", found.state.get("iter", 0))
        return {**found.state, "iter": int(str(policy_iter))}

    def send_stepdata(self, path: str, stepdata: Any) -> None:  # type: ignore[override]
        task = self.task
        if isinstance(stepdata, bytes) and task is not None:
            # Uncompressed, since learners map the files into memory.
            stepdata = get_data_decompressor(task.collector.compressor)(stepdata)
        rows: Any = [stepdata] if isinstance(stepdata, Mapping) else stepdata
        if not isinstance(rows, list):
            raise DataError(
                f"send_stepdata({path!r}) got a {type(stepdata).__name__}; expected samples: "
                "columns, a list of dicts, or a dict"
            )
        put = partial(self.stores.samples.put, path, rows)
        size = put() if task is None else task.write(path, self._expected_size(rows), put)
        self._sample_size = size / len(rows)

    def send_metadata(self, metadata: Mapping[str, Json]) -> None:
        if self.task is None:
            raise ConfigError("there is no task that the samples could belong to")
        self.task.put(metadata)

    def deal_with_resource(self) -> Json:
        """The worker's ``cpu`` and ``gpu``, and whether it supports all messages."""
        return self._answer_json(ResourceRequest())

    def deal_with_collector_start(self, task_info: Task) -> None:
        """Begin a task; a running one is closed first. Raises `TaskFail` with the cause."""
        self.handle(StartTask("collector", task_info))

    def deal_with_collector_data(self) -> Json:
        """News of the task as a list: messages, oldest first, and the progress.

        Raises:
            TaskFail: The collector's exception.
        """
        return self._answer_json(SamplesRequest())

    def deal_with_collector_close(self) -> Json:
        """End the task and return its report; raises `TaskFail` if the collector failed."""
        return self._answer_json(CloseTask("collector"))
