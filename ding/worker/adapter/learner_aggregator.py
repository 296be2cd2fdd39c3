"""Makes several learners that train one policy together look like one to the coordinator."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from easydict import EasyDict

from ding.interaction.base import random_token
from ding.interaction.slave import Slave, TaskFail
from ding.utils import durations
from ding.worker.adapter.learner_team import LearnerTeam
from ding.worker.adapter.merged_info import merged_info
from ding.worker.comm_join import Joiner
from ding.worker.error_report import ErrorReport


class LearnerAggregatorSlave(Slave):
    """Calls what a learner's task names, with the task.

    Args:
        callback_fn: ``deal_with_get_resource()``, ``deal_with_learner_start(task)``,
            ``deal_with_get_data(task)``, ``deal_with_learn(task)``; optional
            ``deal_with_learner_close(task)``, ``deal_with_left()`` and ``deal_with_lost()``.
    """

    _STEPS = {
        "learner_start_task": "deal_with_learner_start",
        "learner_get_data_task": "deal_with_get_data",
        "learner_learn_task": "deal_with_learn",
        "learner_close_task": "deal_with_learner_close",
    }

    def __init__(
        self, *args: Any, callback_fn: dict[str, Callable] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._callback_fn = callback_fn or {}

    def _process_task(self, task: Mapping[str, Any]) -> Any:
        name = task.get("name")
        if name == "resource":
            return self._callback_fn["deal_with_get_resource"]()
        if name not in self._STEPS:
            cause = f"unknown task {name!r}; expected resource or {', '.join(self._STEPS)}"
            raise ErrorReport("UnknownTask", cause).task_fail()
        return self._callback_fn[self._STEPS[name]](dict(task))

    def _before_disconnection(self, data: Mapping[str, Any]) -> None:
        if "deal_with_left" in self._callback_fn:
            self._callback_fn["deal_with_left"]()

    def _lost_connection(self, master_address: str, err: Exception) -> None:
        if "deal_with_lost" in self._callback_fn:
            self._callback_fn["deal_with_lost"]()


class LearnerAggregator:
    """A slave of the coordinator and a master of several learners.

    Every learner gets as many batches as every other, so that all make the same number of updates.
    What fails at one of them fails the task, and the others end theirs.

    Args:
        cfg: ``host`` and ``port`` (or ``slave.host``, ``slave.port``) towards the coordinator;
            ``master.host`` and ``master.port`` towards the learners; ``learner``, those to connect
            to, as ``{name: [name, host, port]}``; ``learner_names``, all of them, if some join by
            themselves; ``name``, ``coordinator``, ``run_key``, ``channel``, ``heartbeat_span``,
            ``heartbeat_tolerance``.

    Attributes:
        failed: Why it cannot go on; ``None`` while it can.
    """

    def __init__(self, cfg: dict) -> None:
        cfg = self._cfg = EasyDict(cfg)
        self._name = cfg.get("name") or "learner_aggregator"
        table = {name: _address(name, entry) for name, entry in cfg.get("learner", {}).items()}
        names = list(dict.fromkeys([*cfg.get("learner_names", []), *table]))
        own, towards = cfg.get("slave", cfg), cfg.get("master", EasyDict())
        common: dict[str, Any] = dict(
            channel=cfg.get("channel"), key=cfg.get("run_key"), on_death=self._fail
        )
        self._team = LearnerTeam(
            names,
            {name: address for name, address in table.items() if address[1]},
            host=towards.get("host"),
            port=_port(towards.get("port")),
            heartbeat_tolerance=cfg.get("heartbeat_tolerance"),
            request_retries=2,
            request_retry_waiting=0.3,
            **common,
        )
        port = _port(own.get("port"))
        self._joins = port == 0
        callbacks = {
            name: getattr(self, name)
            for name in ("deal_with_get_resource", *LearnerAggregatorSlave._STEPS.values())
        }
        callbacks.update(deal_with_left=self._deal_with_left, deal_with_lost=self._deal_with_lost)
        self._slave = LearnerAggregatorSlave(
            own.get("host"), port, cfg.get("heartbeat_span"), callback_fn=callbacks, **common
        )
        self._joiner: Joiner | None = None
        self._gathering: threading.Thread | None = None
        self._alone = threading.Event()
        self._identity: dict[str, Any] = {}
        self._left: list[dict[str, Any]] = []
        self._dealt_chunks = 0
        self._sizes: dict[str, int] = {}
        self._end_flag = True
        self._ended = threading.Event()
        self.failed: str | None = None

    @property
    def address(self) -> str:
        """Where the coordinator reaches it; known once it was started."""
        return self._slave.my_address

    @property
    def master_address(self) -> str:
        """Where learners reach it; known once it was started."""
        return self._team.address

    def start(self) -> None:
        """Listen on both sides; join the coordinator if the port was left open."""
        if not self._end_flag:
            return
        self._end_flag = False
        self._ended.clear()
        self._team.start()
        self._slave.start()
        if self._joins and self._cfg.get("coordinator"):
            self._joiner = Joiner.of(
                self._cfg, "learner", self._name, lambda: self._slave.my_address, self._fail
            )
            self._alone.set()
            self._gathering = threading.Thread(
                target=self._join_with_all, args=(self._joiner,), name="gather", daemon=True
            )
            self._gathering.start()

    def _join_with_all(self, joiner: Joiner) -> None:
        """Join the coordinator, each time when all learners are there."""
        join: Callable[[], None] = joiner.start
        while self._alone.wait() and not self._end_flag:
            self._alone.clear()
            if self._team.wait(None):
                return
            join()
            join = joiner.lost

    def close(self) -> None:
        """Let the learners go and stop listening. Closing twice does nothing."""
        if self._end_flag:
            return
        self._end_flag = True
        self._alone.set()
        if self._joiner is not None:
            self._joiner.close()
        self._team.close()
        self._slave.close()
        if self._gathering is not None:
            self._gathering.join(durations.AGGREGATOR_STEP)
        self._ended.set()

    def join(self, timeout: float | None = None) -> bool:
        """Whether it has ended within ``timeout`` seconds."""
        return self._ended.wait(timeout)

    def _fail(self, cause: str) -> None:
        self.failed = self.failed or cause
        self._ended.set()

    # Tasks of the coordinator

    def deal_with_get_resource(self) -> dict[str, Any]:
        """The processors of all learners together."""
        missing = self._team.wait(durations.AGGREGATOR_STEP)
        if missing:
            raise self._missing(missing)
        answers = self._ask({"name": "resource"}, durations.AGGREGATOR_STEP)
        total = {kind: sum(_number(a, kind) for a in answers.values()) for kind in ("gpu", "cpu")}
        ours = all("ours" in answer for answer in answers.values())
        return {**total, "ours": 1} if ours else total

    def deal_with_learner_start(self, task: dict[str, Any]) -> dict[str, Any]:
        """Begin the task at every learner."""
        info = task.get("task_info")
        info = info if isinstance(info, dict) else {}
        self._identity = {name: info.get(name) for name in ("task_id", "buffer_id")}
        self._left = []
        missing = self._team.wait(durations.AGGREGATOR_GATHER)
        if missing:
            raise self._missing(missing)
        # Two tries of a task must not meet in each other's group.
        self._ask(
            {**task, "task_info": {**info, "meeting": random_token()}}, durations.AGGREGATOR_START
        )
        return {"message": "the learner task has started", **self._identity}

    def deal_with_get_data(self, task: dict[str, Any]) -> dict[str, Any]:
        """What all learners want together.

        To a coordinator that can send several batches (its request holds ``wait``) ``batch_size``
        is that of one learner's batch; to others it is the sum.
        """
        demands = self._ask(task, durations.AGGREGATOR_STEP)
        self._sizes = {name: _number(demand, "batch_size") for name, demand in demands.items()}
        answer: dict[str, Any] = {
            **self._identity,
            "batch_size": sum(self._sizes.values()),
            "cur_learner_iter": min(_number(d, "cur_learner_iter") for d in demands.values()),
        }
        if "wait" in task and all("batch_num" in demand for demand in demands.values()):
            each = min(_number(demand, "batch_num") for demand in demands.values())
            answer["batch_size"] = max(self._sizes.values())
            answer["batch_num"] = max(0, each * len(demands) - len(self._left))
            answer["learners"] = len(demands)
            answer["own_rows"] = sum(_number(demand, "own_rows") for demand in demands.values())
            answer["learner_done"] = all(d.get("learner_done") for d in demands.values())
            answer["ours"] = 1
        return answer

    def deal_with_learn(self, task: dict[str, Any]) -> dict[str, Any]:
        """Deal out what came, as much to one learner as to the other, and merge the results."""
        data = task.get("data")
        if isinstance(data, dict):
            requests = self._dealt_batches(task, data)
            answers = self._ask_each(requests, durations.AGGREGATOR_STEP)
        else:
            requests = self._dealt_samples(task, data if isinstance(data, list) else [])
            answers = self._ask_each(requests, durations.LEARN_TIMEOUT)
        info = self.merge_info([answer.get("info", {}) for answer in answers.values()])
        if "batch_num" in info:
            info["batch_num"] = max(0, info["batch_num"] * len(answers) - len(self._left))
        return {"info": info, **self._identity}

    def deal_with_learner_close(self, task: dict[str, Any]) -> dict[str, Any]:
        """End the task at every learner."""
        self._left = []
        return {
            **self.merge_info(list(self._ask(task, durations.AGGREGATOR_CLOSE).values())),
            **self._identity,
        }

    def _dealt_batches(self, task: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
        batches = [*self._left, *data.get("batches", [])]
        names = self._team.names
        each = len(batches) // len(names)
        used = each * len(names)
        # Those over wait for the next time: every learner makes the same number of updates.
        self._left = batches[used:]
        rest = {key: value for key, value in data.items() if key not in ("batches", "chunks")}
        dealt = {}
        for i, name in enumerate(names):
            own = {**rest, "batches": batches[i : used : len(names)]}
            # Chunks for their own buffers go round, so that each has its share of the samples.
            first = (i - self._dealt_chunks) % len(names)
            if chunks := data.get("chunks", [])[first :: len(names)]:
                own["chunks"] = chunks
            dealt[name] = {**task, "data": own}
        self._dealt_chunks += len(data.get("chunks", []))
        return dealt

    def _dealt_samples(self, task: dict[str, Any], samples: list[Any]) -> dict[str, Any]:
        requests, start = {}, 0
        for name in self._team.names:
            size = self._sizes.get(name, len(samples) // len(self._team.names))
            requests[name] = {**task, "data": samples[start : start + size]}
            start += size
        return requests

    def _ask(self, task: Mapping[str, Any], timeout: float) -> dict[str, dict[str, Any]]:
        return self._ask_each(dict.fromkeys(self._team.names, task), timeout)

    def _ask_each(
        self, requests: Mapping[str, Mapping[str, Any]], timeout: float
    ) -> dict[str, dict[str, Any]]:
        try:
            answers = self._team.ask(requests, timeout)
            for name, answer in answers.items():
                if not isinstance(answer, dict):
                    kind = type(answer).__name__
                    cause = f"{name}: its answer is a {kind}, expected an object"
                    raise ErrorReport("NonsenseAnswer", cause).task_fail()
        except TaskFail:
            # None may wait for one that is gone.
            self._team.abort()
            raise
        return answers

    def _missing(self, names: list[str]) -> TaskFail:
        # To the coordinator it is as if the aggregator were not there.
        return ErrorReport("ConnectionLost", f"not connected: {', '.join(names)}").task_fail()

    def _deal_with_left(self) -> None:
        self._ended.set()

    def _deal_with_lost(self) -> None:
        self._team.abort()
        self._alone.set()

    @staticmethod
    def merge_info(info: list[dict[str, Any]]) -> dict[str, Any]:
        """The results of several learners as those of one; see `merged_info`."""
        return merged_info(info)


def _number(answer: Mapping[str, Any], name: str) -> int:
    value = answer.get(name, 0)
    return value if isinstance(value, int) else 0


def _port(port: Any) -> int:
    return 0 if port in (None, "auto") else int(port)


def _address(name: str, entry: Any) -> tuple[str, int]:
    *_, host, port = entry
    return str(host), _port(port)
