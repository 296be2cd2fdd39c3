"""The collector that gets its tasks over HTTP and shares folders with learners."""

from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from ding.utils import COMM_COLLECTOR_REGISTRY
from ding.worker.collector.comm.base_comm_collector import BaseCommCollector
from ding.worker.collector.comm.collector_service import CollectorService
from ding.worker.engines.http_worker import CallbackSlave
from ding.worker.engines.shared_folder import SharedFolderSamples, SharedFolderWeights
from ding.worker.messages import (
    CloseTask,
    Json,
    Request,
    ResourceRequest,
    SamplesRequest,
    StartTask,
    Task,
)


class CollectorSlave(CallbackSlave):
    """Hands the coordinator's tasks to callbacks.

    Args:
        callback_fn: ``deal_with_resource``, ``deal_with_collector_start`` (of the task's
            ``task_info``), ``deal_with_collector_data`` (of those of ``quota``, ``wait`` and
            ``gather`` that it takes and that came) and ``deal_with_collector_close``; see
            `CallbackSlave`.
    """

    kind = "collector"
    callbacks = {
        ResourceRequest: "deal_with_resource",
        StartTask: "deal_with_collector_start",
        SamplesRequest: "deal_with_collector_data",
        CloseTask: "deal_with_collector_close",
    }

    def _answer(self, request: Request[Any], task: Mapping[str, object]) -> Any:
        if isinstance(request, StartTask):
            request = StartTask("collector", EasyDict(request.info))
        return super()._answer(request, task)


@COMM_COLLECTOR_REGISTRY.register("flask_fs")
class FlaskFileSystemCollector(BaseCommCollector):
    """A collector worker over folders that it shares with learners, with a method per request.

    Args:
        cfg: ``host``, ``port`` (``'auto'`` or 0 for any), ``path_data``, ``path_policy``; perhaps
            ``name``, ``run_key``, ``coordinator`` (host and port, to be joined at if the port is
            any), ``channel``, ``heartbeat_span``, ``resource``.

    Raises:
        ConfigError: A folder cannot be used.
    """

    has_own_samples = False
    slave_type = CollectorSlave

    def __init__(self, cfg: EasyDict) -> None:
        samples = SharedFolderSamples(cfg.get("path_data", "./data"))
        weights = SharedFolderWeights(cfg.get("path_policy", "./policy"))
        CollectorService.__init__(self, cfg, samples, weights)

    get_policy_update_info = CollectorService.get_policy_update_info
    send_stepdata = CollectorService.send_stepdata  # type: ignore[assignment]
    send_metadata = CollectorService.send_metadata
    _drop = CollectorService._drop

    def deal_with_resource(self, ours: bool = False) -> Json:
        """This worker's ``cpu`` and ``gpu``, and whether it knows all messages."""
        return self._answer_json(ResourceRequest(ours))

    def deal_with_collector_start(self, task_info: Task) -> None:
        """Begin a task; one that still runs is closed first. Raises `TaskFail` with the cause."""
        self.handle(StartTask("collector", task_info))

    def deal_with_collector_data(
        self,
        quota: float | None = None,
        wait: float | None = None,
        gather: float | None = None,
    ) -> Json:
        """News of the task; waits for them.

        Args:
            quota: Bytes that this task may have written by now, if there is a limit.
            wait: Seconds to wait for news.
            gather: Seconds for which the first news waits for more.

        Returns:
            Messages and the progress as a list; or a single one of them if neither ``quota`` nor
            ``wait`` is given: a coordinator of the bare protocol takes a sample at a time.

        Raises:
            TaskFail: The collector's exception.
        """
        quota = None if quota is None else int(quota)
        return self._answer_json(SamplesRequest(wait, quota, gather))

    def deal_with_collector_close(self) -> Json:
        """End the task and return its report; raises `TaskFail` if the collector failed."""
        return self._answer_json(CloseTask("collector"))
