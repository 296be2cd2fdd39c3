"""The standard learner worker, with the documented method for each request."""

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from ding.data.chunks import SharedFolder, read_chunk
from ding.interaction.slave import TaskFail
from ding.utils import COMM_LEARNER_REGISTRY, read_file
from ding.utils.errors import DataError
from ding.worker.engines.http_messages import request_from_json
from ding.worker.engines.http_worker import CallbackSlave
from ding.worker.learner.comm.base_comm_learner import BaseCommLearner
from ding.worker.learner.comm.policy_publisher import (
    PUBLISHED,
    SendLearnInfoHook,
    SendPolicyHook,
    Version,
)
from ding.worker.learner.comm.training_task import LearnInfo
from ding.worker.learner.learner_hook import LearnerHook
from ding.worker.messages import CloseTask, DemandRequest, Json, ResourceRequest, StartTask, Task
from ding.worker.seams import Weights

__all__ = ["FlaskFileSystemLearner", "LearnerSlave", "SendLearnInfoHook", "SendPolicyHook"]

#: Metadata fields that become entries of the sample.
_OF_BUFFER = ("replay_buffer_idx", "replay_unique_id", "IS", "priority")


class LearnerSlave(CallbackSlave):
    """Passes a coordinator's tasks to callback functions, and adds the task's ids to their results;
    a base of custom learners.

    Args:
        callback_fn: ``deal_with_resource()``, ``deal_with_learner_start(task_info)``,
            ``deal_with_get_data()``, ``deal_with_learner_learn(data)`` and
            ``deal_with_learner_close()``.
    """

    callbacks = {
        "resource": ("deal_with_resource", None),
        "learner_start_task": ("deal_with_learner_start", "task_info"),
        "learner_get_data_task": ("deal_with_get_data", None),
        "learner_learn_task": ("deal_with_learner_learn", "data"),
        "learner_close_task": ("deal_with_learner_close", None),
    }
    _ids: dict[str, Json] | None = None

    def _process_task(self, task: Mapping[str, object]) -> Any:
        name = task.get("name")
        if name == "learner_start_task" and isinstance(info := task.get("task_info"), Mapping):
            self._ids = {key: info.get(key) for key in ("task_id", "buffer_id")}
        elif self._ids is None and name in self.callbacks and name != "resource":
            cause = "no learner task has been started here: send learner_start_task first"
            raise TaskFail({"type": "NoTask", "message": cause}, cause)
        answer = super()._process_task(task)
        if name == "resource":
            return answer
        fields = {"info": answer} if name == "learner_learn_task" else answer
        return {**(self._ids or {}), **(fields or {})}


@COMM_LEARNER_REGISTRY.register("flask_fs")
class FlaskFileSystemLearner(BaseCommLearner):
    """A learner worker whose samples, weights and states are in the engine's stores.

    `handle` answers HTTP requests. A subclass may extend the methods that read and publish.
    """

    listens = True

    def start(self) -> None:
        """Start to accept requests; raises `ConfigError` if a folder cannot be used."""
        _ = self.stores
        super().start()

    def send_policy(self, state_dict: Version) -> None:
        facts: dict[str, Json] = {
            "policy_iter": cast(Json, state_dict.get("iter")),
            **{n: cast(Json, state_dict.get(n)) for n in ("envstep", "time", "learner")},
        }
        state = {name: state_dict[name] for name in PUBLISHED if name in state_dict}
        self.stores.weights.publish(self.policy_id, Weights(state, facts))

    def get_data(self, batch_size: int) -> object:
        task = self._any_task()
        for _ in task.feed:
            if (batch := self._draw(task)) is not None:
                return batch
        return None

    def send_learn_info(self, learn_info: LearnInfo) -> None:
        task = self._last_task
        if task is None:
            return
        priorities = learn_info.get("priority_info") if task.info.policy.get("priority") else None
        if task.replay is not None and isinstance(priorities, Mapping):
            task.replay.update(priorities)
        task.add(learn_info)

    @property
    def hooks4call(self) -> list[LearnerHook]:
        freq = {"send_policy_freq": self._cfg.get("send_policy_freq", 1)}
        return [
            SendPolicyHook("send_policy", 100, position="before_run", ext_args={}),
            SendPolicyHook("send_policy", 100, position="after_iter", ext_args=freq),
            SendPolicyHook("send_policy", 100, position="after_run", ext_args={}),
            SendLearnInfoHook("send_learn_info", 100, position="after_iter", ext_args={}),
        ]

    @staticmethod
    def load_data_fn(path: str, meta: dict[str, Any], decompressor: Callable[..., Any]) -> Any:
        """Read a file that contains one sample, or a trajectory with the sample as one part.

        Args:
            path: The file; it contains bytes if ``compressor`` in `meta` is not ``'none'``.
            meta: ``unroll_split_begin`` and ``unroll_len`` select the part of a trajectory;
                ``replay_buffer_idx``, ``replay_unique_id``, ``IS`` and ``priority`` become entries
                of the sample.
            decompressor: Reverses the collector's compression.

        Raises:
            CheckpointError: The file is missing or damaged, or does not contain plain data.
            DataError: The content is not a sample, or the part lies outside the file.
        """
        if meta.get("compressor", "none") == "none":
            folder, name = os.path.split(path)
            rows = decompressor(list(read_chunk(SharedFolder(folder), name)))
        else:
            rows = decompressor(read_file(path))
            rows = rows if isinstance(rows, list) else [rows]
        sample: Any = rows[0] if len(rows) == 1 else rows
        begin = meta.get("unroll_split_begin")
        if begin is not None and isinstance(sample, list):
            end = begin + meta.get("unroll_len", len(sample) - begin)
            if not 0 <= begin <= end <= len(sample):
                raise DataError(f"{path} has {len(sample)} steps, expected {begin} to {end}")
            sample = sample[begin:end]
        if isinstance(sample, dict):
            sample.update({name: meta[name] for name in _OF_BUFFER if name in meta})
        return sample

    def deal_with_resource(self) -> Json:
        """The worker's ``cpu`` and ``gpu``, and whether it supports all messages."""
        return self._answer_json(ResourceRequest())

    def deal_with_learner_start(self, task_info: Task) -> None:
        """Begin a task with the fields of `LearnerTaskInfo`; a running one is ended first."""
        self.handle(StartTask("learner", task_info))

    def deal_with_get_data(self) -> Json:
        """Number of batches wanted; waits briefly until it is positive."""
        return self._answer_json(DemandRequest())

    def deal_with_learner_learn(self, data: Mapping[str, object]) -> Json:
        """Take ``chunks`` for the replay buffer and ``draws``, the number of batches that may be
        drawn from it for training; optionally ``envstep`` and ``env_statistics``.

        Returns:
            The news since the last answer; ``batch_num`` is the number of batches wanted.
        """
        request = request_from_json("learner", {"name": "learner_learn_task", "data": data})
        answer = self._answer_json(request)
        return answer["info"] if isinstance(answer, dict) else None

    def deal_with_learner_close(self) -> Json:
        """End the task and return its report; raises `TaskFail` if training does not end."""
        return self._answer_json(CloseTask("learner"))
