"""Several learners behind one address, with HTTP to the coordinator and to the learners."""

from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from ding.utils import durations
from ding.worker.adapter.learner_team import LearnerTeam, merged_info
from ding.worker.engines.control import RunControl
from ding.worker.engines.flask_fs import HttpWorkers
from ding.worker.engines.http_messages import request_from_json
from ding.worker.engines.http_worker import Callbacks, CallbackSlave
from ding.worker.messages import Json, ResourceRequest

#: Settings for the connections to the coordinator and to the learners.
_SHARED = ("run_key", "channel", "heartbeat_tolerance")


class LearnerAggregatorSlave(CallbackSlave):
    """Passes a learner's tasks as a whole to callback functions; a base of custom aggregators.

    Args:
        callback_fn: ``deal_with_get_resource()``, ``deal_with_learner_start(task)``,
            ``deal_with_get_data(task)``, ``deal_with_learn(task)``; optionally
            ``deal_with_learner_close(task)``.
    """

    callbacks = {
        "resource": ("deal_with_get_resource", None),
        "learner_start_task": ("deal_with_learner_start", "task"),
        "learner_get_data_task": ("deal_with_get_data", "task"),
        "learner_learn_task": ("deal_with_learn", "task"),
        "learner_close_task": ("deal_with_learner_close", "task"),
    }

    def __init__(self, *args: Any, callback_fn: Callbacks | None = None, **kwargs: Any) -> None:
        super().__init__(*args, callback_fn=callback_fn or {}, **kwargs)

    def _process_task(self, task: Mapping[str, object]) -> Any:
        return super()._process_task({**task, "task": dict(task)})


class LearnerAggregator(LearnerTeam):
    """A slave of the coordinator and a master of several learners of this package.

    Runs of this package need none: their control treats the processes of a learner as one worker.

    Args:
        cfg: ``host`` and ``port`` (or ``slave.host``, ``slave.port``) towards the coordinator;
            ``master.host`` and ``master.port`` towards the learners; ``learner``, the learners to
            connect to, as ``{name: [name, host, port]}``; ``name``, ``coordinator``, ``run_key``,
            ``channel``, ``heartbeat_span``, ``heartbeat_tolerance``.
    """

    listens = True

    def __init__(self, cfg: dict[str, Any]) -> None:
        name = "learner_aggregator"
        cfg = EasyDict({"name": name, **cfg, **cfg.get("slave", {})})
        towards = {**cfg.get("master", {}), "learner": cfg.get("learner", {})}
        towards.update({name: cfg[name] for name in _SHARED if name in cfg})
        workers = HttpWorkers(towards)
        self._control = RunControl(workers, workers.specs)
        names = [spec.name for spec in workers.specs]
        super().__init__(names, self._control.release, name, cfg)

    def start(self) -> None:
        """Listen, connect to the learners, and join the coordinator if the port is not fixed."""
        if self._end_flag:
            self._control.start(self)
            super().start()

    def _give_up_task(self, cause: str) -> None:
        if self._closing.is_set():
            self._control.close(durations.MASTER_STOP)  # open requests fail
        super()._give_up_task(cause)

    # ------------------------------------------------------------------ requests in JSON

    def deal_with_get_resource(self) -> Json:
        """The total processors of all learners."""
        return self._answer_json(ResourceRequest())

    def deal_with_learner_start(self, task: Mapping[str, object]) -> Json:
        """Begin the task at every learner."""
        return self._answer_named("learner_start_task", task)

    def deal_with_get_data(self, task: Mapping[str, object]) -> Json:
        """The total demand of all learners."""
        return self._answer_named("learner_get_data_task", task)

    def deal_with_learn(self, task: Mapping[str, object]) -> Json:
        """Distribute the data evenly over the learners, and merge the results."""
        return self._answer_named("learner_learn_task", task)

    def _answer_named(self, name: str, task: Mapping[str, object]) -> Json:
        return self._answer_json(request_from_json("learner", {**task, "name": name}))

    @staticmethod
    def merge_info(info: list[dict[str, Json]]) -> dict[str, Json]:
        """Merge the results of several learners into one; see `merged_info`."""
        return merged_info(info)
