"""The learner that gets its tasks over HTTP and shares folders with collectors."""

from typing import Any, cast

from easydict import EasyDict

from ding.interaction.slave import TaskFail
from ding.utils import COMM_LEARNER_REGISTRY
from ding.worker.engines.http_messages import request_from_json
from ding.worker.engines.http_worker import CallbackSlave
from ding.worker.engines.shared_folder import SharedFolderSamples, SharedFolderWeights
from ding.worker.learner.comm.base_comm_learner import BaseCommLearner
from ding.worker.learner.comm.learner_service import LearnerService
from ding.worker.learner.comm.policy_publisher import SendLearnInfoHook, SendPolicyHook
from ding.worker.messages import (
    CloseTask,
    DemandRequest,
    Json,
    Request,
    ResourceRequest,
    StartTask,
    Task,
    TrainRequest,
)

__all__ = ["FlaskFileSystemLearner", "LearnerSlave", "SendLearnInfoHook", "SendPolicyHook"]


class LearnerSlave(CallbackSlave):
    """Hands the coordinator's tasks to callbacks.

    Args:
        callback_fn: ``deal_with_resource()``, ``deal_with_learner_start(task_info)``,
            ``deal_with_get_data()``, ``deal_with_learner_learn(data)``,
            ``deal_with_learner_close()``; those that take ``wait`` are given it, if it came. See
            `CallbackSlave`.
    """

    kind = "learner"
    callbacks = {
        ResourceRequest: "deal_with_resource",
        StartTask: "deal_with_learner_start",
        DemandRequest: "deal_with_get_data",
        TrainRequest: "deal_with_learner_learn",
        CloseTask: "deal_with_learner_close",
    }
    _ids: dict[str, Json] | None = None

    def _wire_answer(self, request: Request[Any], answer: Any) -> Json:
        """Add the task's ids to what the callbacks return."""
        if isinstance(request, StartTask):
            self._ids = {n: cast(Json, request.info.get(n)) for n in ("task_id", "buffer_id")}
        if isinstance(request, StartTask | ResourceRequest):
            return super()._wire_answer(request, answer)
        if self._ids is None:
            cause = "no learner task has been started here: send learner_start_task first"
            raise TaskFail({"type": "NoTask", "message": cause}, cause)
        ids = self._ids
        if isinstance(request, CloseTask):
            self._ids = None
        fields = {"info": answer} if isinstance(request, TrainRequest) else answer
        return {**ids, **(fields or {})}


@COMM_LEARNER_REGISTRY.register("flask_fs")
class FlaskFileSystemLearner(BaseCommLearner):
    """A learner worker over folders that it shares with collectors, with a method per request.

    Args:
        cfg: ``host``, ``port`` (``'auto'``, 0 or ``None``: any free one, sent to ``coordinator``),
            ``path_data``, ``path_policy``, ``name``, ``exp_name``, ``coordinator`` (``[host,
            port]``), ``run_key``, ``channel``, ``multi_gpu``, ``send_policy_freq``, ``prefetch``;
            in seconds ``iteration_timeout``, ``heartbeat_span`` and ``heartbeat_tolerance``.
    """

    slave_type = LearnerSlave

    def __init__(self, cfg: EasyDict) -> None:
        samples, weights = SharedFolderSamples(cfg.path_data), SharedFolderWeights(cfg.path_policy)
        LearnerService.__init__(self, cfg, samples, weights)

    send_policy = LearnerService.send_policy
    get_data = LearnerService.get_data
    send_learn_info = LearnerService.send_learn_info
    hooks4call = LearnerService.hooks4call

    def deal_with_resource(self, ours: bool = False) -> Json:
        """How many processors there are."""
        return self._answer_json(ResourceRequest(ours))

    def deal_with_learner_start(self, task_info: Task) -> None:
        """Begin a task, of the fields of `LearnerTaskInfo`; one that still runs ends first."""
        self.handle(StartTask("learner", task_info))

    def deal_with_get_data(self, wait: float | None = None) -> Json:
        """How many batches are wanted; waits at most ``wait`` seconds until some are."""
        return self._answer_json(DemandRequest(wait))

    def deal_with_learner_learn(self, data: object, wait: float | None = None) -> Json:
        """Take batches to train on.

        Args:
            data: ``chunks`` for the replay buffer, ``draws``, how many batches of it may be trained
                on, ``envstep``, and perhaps ``env_statistics``: answered at once. Or one batch as
                a list of metadata, a dict for each sample: answered when it was trained on.
            wait: Seconds to wait, at most, until batches are wanted, which saves a request.

        Returns:
            The news since the last answer; ``batch_num``: how many batches are wanted.
        """
        body = {"name": "learner_learn_task", "data": data, "wait": wait}
        answer = self._answer_json(request_from_json("learner", body))
        return answer["info"] if isinstance(answer, dict) else None

    def deal_with_learner_close(self) -> Json:
        """End the task and return its report; raises `TaskFail` if training does not end."""
        return self._answer_json(CloseTask("learner"))
