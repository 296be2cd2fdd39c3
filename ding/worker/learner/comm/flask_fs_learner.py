"""The learner that is told by HTTP what to do, and shares a folder with the collectors."""

import contextlib
import math
import os
import threading
from collections.abc import Callable
from typing import Any

import torch
from easydict import EasyDict

from ding.data.chunks import SharedFolder
from ding.envs.running_statistics import merged
from ding.interaction.config import DEFAULT_HEARTBEAT_TOLERANCE
from ding.interaction.slave import TaskFail
from ding.torch_utils.weights_file import write_weights
from ding.utils import COMM_LEARNER_REGISTRY, durations
from ding.utils.errors import DataError
from ding.worker.comm_join import Joiner
from ding.worker.learner.comm.base_comm_learner import BaseCommLearner
from ding.worker.learner.comm.batch_source import BatchSource, load_sample
from ding.worker.learner.comm.learner_slave import LearnerSlave
from ding.worker.learner.comm.send_hooks import SendLearnInfoHook, SendPolicyHook
from ding.worker.learner.comm.state_keeper import StateKeeper
from ding.worker.learner.comm.training_task import TrainingTask
from ding.worker.learner.learner_hook import LearnerHook

__all__ = ["FlaskFileSystemLearner", "LearnerSlave", "SendLearnInfoHook", "SendPolicyHook"]

#: Batches that wait ready for training.
PREFETCH = 8
#: How many times as many may wait where an update is quick.
MOST_PREFETCH = 8


@COMM_LEARNER_REGISTRY.register("flask_fs")
class FlaskFileSystemLearner(BaseCommLearner):
    """Takes tasks as an HTTP slave, reads data from and writes weights to shared folders.

    Args:
        cfg: ``host``, ``port`` (``'auto'``, 0 or ``None``: any free one, told to ``coordinator``),
            ``path_data``, ``path_policy``, ``name``, ``coordinator`` (``[host, port]``),
            ``run_key``, ``channel``, ``multi_gpu``, ``send_policy_freq``, ``prefetch``; in seconds
            ``iteration_timeout``, ``heartbeat_span`` and ``heartbeat_tolerance``.
    """

    def __init__(self, cfg: EasyDict) -> None:
        super().__init__(cfg)
        self._name = cfg.get("name") or "learner"
        self._data_folder = SharedFolder(cfg.path_data)
        self._policy_folder = SharedFolder(cfg.path_policy)
        tolerance = cfg.get("heartbeat_tolerance")
        self._tolerance = DEFAULT_HEARTBEAT_TOLERANCE if tolerance is None else tolerance
        self._lock = threading.Lock()
        self._run: TrainingTask | None = None
        self._last_run: TrainingTask | None = None
        self._task_info: dict[str, Any] = {}
        self._closing = threading.Event()
        callbacks: dict[str, Callable] = {
            "deal_with_resource": self.deal_with_resource,
            "deal_with_learner_start": self.deal_with_learner_start,
            "deal_with_get_data": self.deal_with_get_data,
            "deal_with_learner_learn": self.deal_with_learner_learn,
            "deal_with_learner_close": self.deal_with_learner_close,
            "deal_with_left": self._deal_with_left,
            "deal_with_lost": self._deal_with_lost,
        }
        port = cfg.get("port", "auto")
        self._joins = port in ("auto", 0, None)
        self._slave = LearnerSlave(
            cfg.get("host"),
            0 if self._joins else int(port),
            cfg.get("heartbeat_span"),
            channel=cfg.get("channel"),
            key=cfg.get("run_key"),
            on_death=self._fail,
            callback_fn=callbacks,
        )
        self._joiner: Joiner | None = None

    @property
    def address(self) -> str:
        """Where the coordinator reaches it, as ``host:port``; known once it was started."""
        return self._slave.my_address

    def start(self) -> None:
        """Listen, and join the coordinator if the port was left open."""
        if not self._end_flag:
            return
        super().start()
        self._slave.start()
        if self._joins and self._cfg.get("coordinator"):
            self._joiner = Joiner.of(
                self._cfg, "learner", self._name, lambda: self._slave.my_address, self._fail
            )
            self._joiner.start()

    def close(self) -> None:
        """End training, saving the state, and stop listening. Closing twice does nothing."""
        if self._end_flag:
            return
        if self._joiner is not None:
            self._joiner.close()
        self._closing.set()
        self._leave_run()
        self._slave.close()
        if self._last_run is not None:
            self._last_run.join(durations.LEARNER_STOP if self.failed is None else 0.1)
        super().close()

    def __del__(self) -> None:
        # Whoever waits here could wait for ever: training is asked to end, no more.
        with contextlib.suppress(Exception):
            if not self._end_flag:
                self._closing.set()
                self._leave_run()
                self._ended.set()

    # Tasks of the coordinator

    def deal_with_resource(self) -> dict[str, Any]:
        """How many processors there are."""
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return {"gpu": gpus, "cpu": os.cpu_count() or 1, "ours": 1}

    def deal_with_learner_start(self, task_info: dict[str, Any]) -> None:
        """Begin a task; what is left of another one ends first.

        Args:
            task_info: ``task_id, policy_id, buffer_id, learner_cfg, replay_buffer_cfg, policy``,
                and ``state_path``, where the learner's state is kept and gone on from.
        """
        self._leave_run()
        if self._last_run is not None:
            self._give_up_if_hung(self._last_run)  # its state has to be saved
        folder, policy_id = self._policy_folder, task_info["policy_id"]
        folder.file(policy_id)  # a name that cannot be used is found now
        prefetch = int(self._cfg.get("prefetch") or PREFETCH)
        # Priorities of batches that wait grow old.
        most = prefetch if task_info["policy"].get("priority") else MOST_PREFETCH * prefetch
        run = TrainingTask(
            self._name,
            *(prefetch, most),
            lambda weights, facts: write_weights(folder, policy_id, weights, facts),
            self._master_is_near,
            self._iteration_timeout(task_info),
            drain=self._world_size > 1,
            on_end=None if self._group is None else self._group.leave,
            max_staleness=_number(task_info.get("replay_buffer_cfg", {}).get("max_staleness")),
        )
        with self._lock:
            self._run = self._last_run = run
            self._task_info = task_info
        try:
            self._begin(run, task_info)
        except BaseException:
            self._leave_run()
            run.abort()
            if self._group is not None:
                self._group.leave()
            raise

    def _begin(self, run: TrainingTask, task_info: dict[str, Any]) -> None:
        size = task_info.get("replay_buffer_cfg", {}).get("replay_buffer_size", 10000)
        self._source = BatchSource(
            self._data_folder,
            int(size),
            self._cfg.get("cache_bytes"),
            self.load_data_fn,
            repeats=self._world_size > 1,
        )
        path = self._state_path(task_info)
        keeper = StateKeeper(path, run.report.warn, self._rank == 0)
        if self._group is not None:
            self._group.meet(str(task_info.get("meeting") or task_info.get("task_id")))
        learner = self._create_learner(task_info, run, run.feed)
        for hook in self.hooks4call:
            learner.register_hook(hook)
        run.start(learner, keeper)

    def deal_with_get_data(self, wait: float = durations.ANSWER_WAIT) -> dict[str, Any]:
        """How many batches are wanted; waits until some are.

        Args:
            wait: Seconds to wait at most.
        """
        run = self._current()
        run.check()
        number = self._demand(run, wait)
        return {
            "batch_size": run.learner.policy.get_attribute("batch_size"),
            "cur_learner_iter": run.learner.train_iter,
            "batch_num": number,
            "learner_done": run.learner.learn_info["learner_done"],
            "ours": 1,
        }

    def deal_with_learner_learn(self, data: Any, wait: float = 0.0) -> dict[str, Any]:
        """Take batches to train on.

        Args:
            data: ``batches``, of the form of `ChunkCache.batch`, ``envstep``, and what collectors'
                environments normalise by, ``env_statistics``, if that is news: answered at once.
                Or one batch as a list of metadata, a dict for each sample: answered when it has
                been trained on.
            wait: Seconds to wait, at most, until batches are wanted, to save a request for that.

        Returns:
            What happened since the last answer; ``batch_num``: how many batches are wanted.
        """
        run = self._current()
        run.check()
        if isinstance(data, list):
            number = self._source.feed_samples(run, data)
            if number is not None:
                run.feed.wait_trained(number, run.iteration_timeout)
        elif isinstance(data, dict):
            if isinstance(envstep := data.get("envstep"), int) and envstep >= 0:
                run.learner.collector_envstep = envstep
            if data.get("env_statistics"):
                known = merged([data["env_statistics"]])  # lists as arrays
                run.learner.policy.set_attribute("env_statistics", known)
            self._source.feed_batches(run, data.get("batches", []))
        else:
            raise DataError(f"data is a {type(data).__name__}, expected batches or metadata")
        wanted = self._demand(run, wait)
        return {**run.results(), "batch_num": wanted}

    def deal_with_learner_close(self) -> dict[str, Any]:
        """End the task.

        Returns:
            How it ended.

        Raises:
            TaskFail: Training does not end; names the place.
        """
        run, task_info = self._current(), self._task_info
        self._leave_run(abandon=False)
        self._give_up_if_hung(run)
        if run.failure is not None:
            raise run.failure.task_fail()
        return {**run.results(), "policy_id": task_info.get("policy_id")}

    def _demand(self, run: TrainingTask, wait: float) -> int:
        if run.told_end:
            self._closing.wait(wait)  # the task is closed soon; do not hurry the coordinator
        number = run.feed.demand(wait)
        run.check()
        return number

    def _iteration_timeout(self, task_info: dict[str, Any]) -> float | None:
        given = task_info["learner_cfg"].get("iteration_timeout")
        return given or self._cfg.get("iteration_timeout")

    def _state_path(self, task_info: dict[str, Any]) -> str | None:
        """Where the state is kept: in the policies' folder, or that of the run."""
        given = task_info.get("state_path")
        if given is None:
            return None
        if os.path.dirname(given) == "":
            return self._policy_folder.file(given)
        path = os.path.realpath(given)
        exp_name = task_info["learner_cfg"].get("exp_name", "default_experiment")
        homes = [os.path.realpath(home) for home in (self._policy_folder.path, exp_name)]
        if not any(os.path.commonpath([path, home]) == home for home in homes):
            raise DataError(f"state_path {given!r} lies outside of {' and '.join(homes)}")
        return path

    def _current(self) -> TrainingTask:
        run = self._run
        if run is None:
            cause = "no learner task is being worked on: its master was lost"
            raise TaskFail({"type": "NoTask", "message": cause}, cause)
        return run

    def _leave_run(self, abandon: bool = True) -> None:
        """Ask the current task to end, and forget it."""
        with self._lock:
            run, self._run = self._run, None
        if run is not None:
            run.stop(abandon)

    def _give_up_if_hung(self, run: TrainingTask) -> None:
        hung = run.join()
        if hung is not None:
            self._fail(str(hung))
            raise hung.task_fail()

    def _deal_with_left(self) -> None:
        self._leave_run()
        self._ended.set()

    def _deal_with_lost(self, cause: str) -> None:
        self._leave_run()
        if self._joiner is not None:
            self._joiner.lost()

    def _master_is_near(self) -> bool:
        silence = self._slave.master_silence
        return silence is not None and silence <= self._tolerance

    @staticmethod
    def load_data_fn(path: str, meta: dict[str, Any], decompressor: Callable) -> Any:
        """Read a file that holds one sample; see `load_sample`."""
        return load_sample(path, meta, decompressor)

    # What the learner calls

    def send_policy(self, state_dict: dict[str, Any]) -> None:
        """Publish weights for the collectors, soon."""
        self._current().send_policy(state_dict)

    def get_data(self, batch_size: int) -> list[Any]:
        """The next batch; waits until there is one."""
        return self._current().get_data(batch_size)

    def send_learn_info(self, learn_info: dict[str, Any]) -> None:
        """Keep results until the coordinator asks."""
        self._current().send_learn_info(learn_info)

    @property
    def hooks4call(self) -> list[LearnerHook]:
        """Publish before the first and after every update and at the end; give every result."""
        freq = {"send_policy_freq": self._cfg.get("send_policy_freq", 1)}
        return [
            SendPolicyHook("send_policy", 100, position="before_run", ext_args={}),
            SendPolicyHook("send_policy", 100, position="after_iter", ext_args=freq),
            SendPolicyHook("send_policy", 100, position="after_run", ext_args={}),
            SendLearnInfoHook("send_learn_info", 100, position="after_iter", ext_args={}),
        ]


def _number(limit: Any) -> float:
    """A limit; none is infinite, in whatever words it came."""
    return math.inf if limit is None else float(limit)
