"""Workers and a commander whose every answer is known, for tests of the coordinator."""

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from easydict import EasyDict

from ding.data.chunks import SharedFolder, chunk_name, write_chunk
from ding.interaction import Slave, TaskFail
from ding.torch_utils import write_weights
from ding.utils import COMMANDER_REGISTRY
from ding.utils.callbacks import Callbacks
from ding.utils.run_log import RunLog
from ding.worker.coordinator import BaseCommander, Coordinator
from ding.worker.engines.http_worker import Joiner

BUFFER, POLICY = "buffer_fake", "policy_fake"


def eventually(condition: Callable[[], Any], timeout: float = 20.0) -> None:
    """Wait for a condition, generously."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


class FakeWorker(Slave):
    """Answers each step of a task; ``on[step]`` is called instead of the usual answer.

    Attributes:
        asked: Names of the steps so far.
        delay: Seconds before each answer.
        released: Set at the end, for answers that never come.
    """

    kind = ""

    def __init__(self, port: int = 0, **kwargs: Any) -> None:
        super().__init__(None, port, 0.3, 1, 0.1, **kwargs)
        self.on: dict[str, Callable[[dict], Any]] = {}
        self.asked: list[str] = []
        self.delay = 0.0
        self.info: dict[str, Any] = {}
        self.infos: list[dict[str, Any]] = []
        self.released = threading.Event()
        self.joiner: Joiner | None = None

    def _process_task(self, task: Any) -> Any:
        name = task["name"].removeprefix(f"{self.kind}_").removesuffix("_task")
        self.asked.append(name)
        if self.delay:
            self.released.wait(self.delay)
        if name == "start":
            self.info = dict(task["task_info"])
            self.infos.append(self.info)
        if name in self.on:
            return self.on[name](task)
        return self.usual(task)

    def usual(self, task: Any) -> Any:
        """The answer of a good worker."""
        name = task["name"].removeprefix(f"{self.kind}_").removesuffix("_task")
        return getattr(self, f"_{name}")(task)

    def _resource(self, task: Any) -> Any:
        return {"cpu": 1, "gpu": 0}

    def _start(self, task: Any) -> Any:
        return {"message": "started"}

    def ids(self) -> dict[str, Any]:
        return {"task_id": self.info["task_id"], "buffer_id": self.info["buffer_id"]}

    def hang(self, task: Any) -> Any:
        """Never answer."""
        self.released.wait()

    def raising(self, text: str) -> Callable[[Any], Any]:
        def fail(task: Any) -> Any:
            raise ValueError(text)

        return fail

    def fall_silent(self) -> None:
        """Send no heartbeat and no answer, as if the process was stopped."""
        self._session.close()

    def die(self) -> None:
        """Disappear for good, like a process that was killed."""
        if self.joiner is not None:
            self.joiner.close()
        self.fall_silent()
        self.released.set()
        self.shutdown()
        self.join()

    def join_at(self, coordinator: Coordinator, name: str, key: str | None) -> list[str]:
        """Join; returns the causes for which it gave up, as they come."""
        causes: list[str] = []
        self.joiner = Joiner(
            *(coordinator.address, self.kind, name, lambda: self.my_address, key),
            on_give_up=causes.append,
        )
        self.joiner.start()
        return causes

    def _lost_connection(self, master_address: str, err: Exception) -> None:
        if self.joiner is not None:
            self.joiner.lost()

    def close(self) -> None:
        if self.joiner is not None:
            self.joiner.close()
        self.released.set()
        super().close()


class FakeCollector(FakeWorker):
    """Sends chunks of 8 samples, as many as ``chunks``, and then says that it is done."""

    kind = "collector"
    serials = itertools.count()

    def __init__(self, port: int = 0, chunks: float = 2, ours: bool = True, **kwargs: Any) -> None:
        super().__init__(port, **kwargs)
        self.chunks, self.ours, self.sent = chunks, ours, 0
        self.folder = SharedFolder("data")
        self.quotas: list[int] = []

    def _resource(self, task: Any) -> Any:
        return {"cpu": 1, "gpu": 0, **({"ours": 1} if self.ours else {})}

    def _start(self, task: Any) -> Any:
        self.sent = 0
        return {"message": "started"}

    def _data(self, task: Any) -> Any:
        self.quotas.append(task.get("quota"))
        done = self.sent >= self.chunks or self.info["collector_cfg"].get("eval_flag", False)
        facts = {**self.ids(), "cur_step": self.sent * 8, "cur_sample": self.sent * 8}
        if done:
            return {**facts, "collector_done": True, "cur_episode": 1}
        if self.sent == float("inf"):
            self.released.wait(0.05)
        meta = self.chunk(8 if self.ours else 1)
        return [meta, {**facts, "collector_done": False}] if self.ours else meta

    def chunk(self, rows: int) -> dict[str, Any]:
        """Write a chunk; returns its metadata."""
        name = chunk_name(str(self.info["buffer_id"]), self.kind, str(next(self.serials)))
        size = write_chunk(self.folder, name, [{"obs": [1.0, 2.0]}] * rows)
        self.sent += 1
        meta = {**self.ids(), "data_id": name, "size": size, "cur_step": self.sent * rows}
        return {**meta, "sample_num": rows, "policy_iter": 1} if self.ours else meta

    def _close(self, task: Any) -> Any:
        is_eval = self.info["collector_cfg"].get("eval_flag", False)
        words = {"reward_mean": 1.0, "real_episode_count": 1, "step_count": self.sent * 8}
        return {**self.ids(), **words, "eval_flag": is_eval, "collector_done": True}


def evaluating(reports: list[dict[str, Any]], then: dict[str, Any]) -> FakeCollector:
    """A collector that makes these reports, then one again and again, and keeps the weights that
    they are of: filled with the mean return."""
    policies, left, names = SharedFolder("policy"), iter(reports), itertools.count()
    collector = FakeCollector()

    def close(task: Any) -> Any:
        report, name = next(left, then), f"kept_{next(names)}"
        weights = {"model": {"w": torch.full((2,), float(report["reward_mean"] or 0.0))}}
        write_weights(policies, name, weights, {"policy_iter": 7, "envstep": 70})
        return {**collector.ids(), "policy_iter": 7, "eval_policy": name, **report}

    collector.on["close"] = close
    return collector


class FakeLearner(FakeWorker):
    """Trains on ``iterations`` batches of 4, and then says that it is done."""

    kind = "learner"

    def __init__(
        self, port: int = 0, iterations: float = 5, ours: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(port, **kwargs)
        self.iterations, self.ours, self.step = iterations, ours, 0
        self.batches: list[Any] = []
        self.chunks: list[str] = []
        self.usage: Any = {"process": "other:1", "cpu_percent": 50.0, "memory_mb": "much"}
        self.rows = 0

    def _resource(self, task: Any) -> Any:
        return {"gpu": 0, **({"ours": 1} if self.ours else {})}

    def _start(self, task: Any) -> Any:
        self.step = 0
        return {"message": "started"}

    def _get_data(self, task: Any) -> Any:
        demand = {**self.ids(), "batch_size": 4, "cur_learner_iter": self.step}
        return {**demand, "batch_num": 2, "ours": 1} if self.ours else demand

    def _learn(self, task: Any) -> Any:
        data = task["data"]
        batches = [data]
        named = []
        if self.ours:
            batches = [None] * data["draws"]
            named = [chunk["data_id"] for chunk in data["chunks"]]
            self.rows += sum(chunk["sample_num"] for chunk in data["chunks"])
            self.chunks += named
        self.batches += batches
        self.step += len(batches)
        info = {"learner_step": self.step, "learner_done": self.step >= self.iterations}
        if self.ours:
            info.update(trained=len(batches), policy_iter=self.step, iters_per_second=100.0)
            info.update(received=named, own_rows=self.rows, usage=self.usage)
        return {**self.ids(), "info": info}

    def _close(self, task: Any) -> Any:
        return {**self.ids(), "learner_step": self.step}


@COMMANDER_REGISTRY.register("scripted")
class ScriptedCommander(BaseCommander):
    """Keeps as many tasks open as there is space for; the n-th finished collector task converges.

    Attributes:
        failed: Tasks that failed.
        finished: Reports.
    """

    def __init__(self, cfg: Any) -> None:
        self.cfg = cfg.policy.other.commander
        self.space = {"collector": self.cfg.collectors, "learner": self.cfg.learners}
        self.open: dict[str, dict[str, Any]] = {"collector": {}, "learner": {}}
        self.issued = self.count = 0
        self.failed: list[dict[str, Any]] = []
        self.finished: dict[str, list[dict[str, Any]]] = {"collector": [], "learner": []}
        self.infos: list[dict[str, Any]] = []

    def get_collector_task(self) -> dict | None:
        cfg = {"eval_flag": bool(self.cfg.get("eval")), "policy_update_path": POLICY}
        return self._task("collector", buffer_id=BUFFER, collector_cfg=cfg)

    def get_learner_task(self) -> dict | None:
        buffer_cfg = dict(self.cfg.get("buffer", {"type": "naive", "replay_buffer_size": 1000}))
        ids = {"policy_id": POLICY, "buffer_id": BUFFER, "policy": dict(self.cfg.get("policy", {}))}
        return self._task("learner", replay_buffer_cfg=buffer_cfg, learner_cfg={}, **ids)

    def _task(self, kind: str, **fields: Any) -> dict | None:
        if len(self.open[kind]) >= self.space[kind] or self.finished["learner"]:
            return None
        self.issued += 1
        task = {"task_id": f"{kind}_{self.issued}", **fields}
        self.open[kind][task["task_id"]] = task
        return task

    def finish_collector_task(self, task_id: str, finished_task: dict) -> bool:
        del self.open["collector"][task_id]
        self.finished["collector"].append(finished_task)
        return len(self.finished["collector"]) >= self.cfg.converge_after

    def finish_learner_task(self, task_id: str, finished_task: dict) -> str:
        del self.open["learner"][task_id]
        self.finished["learner"].append(finished_task)
        if self.cfg.get("finish"):
            self.finished_reason = "the learner is done"
        return finished_task["buffer_id"]

    def notify_fail_collector_task(self, task: dict) -> None:
        self.failed.append(task)
        del self.open["collector"][task["task_id"]]

    def notify_fail_learner_task(self, task: dict) -> None:
        self.failed.append(task)
        del self.open["learner"][task["task_id"]]

    def update_learner_info(self, task_id: str, info: dict) -> None:
        self.infos.append(info)

    def increase_collector_task_space(self) -> None:
        self.space["collector"] += 1

    def decrease_collector_task_space(self) -> None:
        self.space["collector"] -= 1

    def state_dict(self) -> dict[str, Any]:
        return {"issued": self.issued, "finished": self.finished}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.issued, self.finished = state_dict["issued"], state_dict["finished"]


def make_config(
    workers: dict[str, FakeWorker], commander: dict[str, Any] | None = None, **coordinator: Any
) -> EasyDict:
    """A compiled config with these workers in the tables."""
    own: dict[str, Any] = {"type": "scripted", "collectors": 1, "learners": 1}
    own.update({"converge_after": 10**9, **(commander or {})})
    tables: dict[str, dict[str, Any]] = {"collector": {}, "learner": {}}
    for name, worker in workers.items():
        tables[worker.kind][name] = [name, worker.host, worker.port]
    system = {"host": None, "port": 0, "path_data": "data", "path_policy": "policy", **tables}
    system.update(heartbeat_tolerance=1.5, request_retry_waiting=0.1, **coordinator)
    policy = {"other": {"commander": own}}
    return EasyDict(main={"exp_name": "exp", "policy": policy}, system={"coordinator": system})


class Run:
    """A coordinator and its workers; closes all of them."""

    def __init__(
        self,
        workers: dict[str, FakeWorker] | None = None,
        callbacks: Callbacks | None = None,
        run_log: RunLog | None = None,
        **config: Any,
    ) -> None:
        self.workers = workers or {}
        for worker in self.workers.values():
            worker.start()
        self.config = make_config(self.workers, **config)
        self.coordinator = Coordinator(self.config, run_log=run_log, callbacks=callbacks)
        self.commander: ScriptedCommander = self.coordinator.commander

    def __enter__(self) -> "Run":
        self.coordinator.start()
        return self

    def __exit__(self, *exc: object) -> None:
        for worker in self.workers.values():
            worker.released.set()
        self.coordinator.close()
        for worker in self.workers.values():
            worker.close()

    def add(self, name: str, worker: FakeWorker, key: str | None) -> list[str]:
        """Let a worker join."""
        self.workers[name] = worker
        worker.start()
        return worker.join_at(self.coordinator, name, key)

    def status(self) -> dict[str, Any]:
        return self.coordinator.status()


def fail_task(text: str) -> Callable[[Any], Any]:
    """An answer of a worker that fails its task on purpose."""

    def fail(task: Any) -> Any:
        raise TaskFail({"type": "EnvError", "message": text}, text)

    return fail
