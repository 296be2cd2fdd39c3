"""The learner worker: its tasks, the samples that it reads and the weights that it writes."""

import os
import threading
import time
from abc import abstractmethod
from collections.abc import Generator, Mapping
from functools import partial
from typing import Any, TypeVar, cast

import torch
from easydict import EasyDict

from ding.data import Columns
from ding.envs.running_statistics import merged
from ding.interaction.config import DEFAULT_HEARTBEAT_TOLERANCE, LOCAL_HOST
from ding.policy import create_policy
from ding.torch_utils.model_helper import fit_threads
from ding.utils import EasyTimer, durations, get_task_uid
from ding.utils.errors import ConfigError, DingError
from ding.worker.comm_worker import CommWorker, make_service
from ding.worker.error_report import ErrorReport
from ding.worker.learner.base_learner import BaseLearner, Loader, create_learner
from ding.worker.learner.comm.learner_group import LearnerGroup
from ding.worker.learner.comm.policy_publisher import (
    Version,
)
from ding.worker.learner.comm.training_task import (
    LearnerTaskInfo,
    LearnInfo,
    TrainingTask,
)
from ding.worker.learner.learner_hook import LearnerHook
from ding.worker.messages import (
    Demand,
    DemandRequest,
    Kind,
    OpenMeeting,
    Request,
    Resources,
    Task,
    TaskReport,
    TrainAnswer,
    TrainRequest,
)
from ding.worker.replay_buffer.chunk_replay import ChunkReplay, read_rows
from ding.worker.replay_buffer.chunk_rewards import ChunkRewards
from ding.worker.seams import Samples

Answer = TypeVar("Answer")


class BaseCommLearner(CommWorker):
    """Trains on the chunks that a coordinator names, and publishes weights and results.

    A subclass defines the transport, in the abstract methods.

    Args:
        cfg: The config of `CommWorker`, and: ``send_policy_freq``; ``prefetch``, the number of
            batches permitted ahead; ``iteration_timeout`` and ``heartbeat_tolerance`` in seconds;
            ``multi_gpu``: whether this is one of several processes that train together (each task
            lists them, and forms a new group).
    """

    kind: Kind = "learner"

    def __init__(self, cfg: Mapping[str, object]) -> None:
        super().__init__(cfg, str(cfg.get("name") or "learner"))
        self._learner_uid = get_task_uid()
        self._timer = EasyTimer()  # for subclasses
        self._multi_gpu = bool(cfg.get("multi_gpu", False))
        self._group = LearnerGroup()
        self._rank, self._world_size = 0, 1  # in the current task
        self._lock = threading.Lock()
        self._task: TrainingTask | None = None  # the coordinator's current task
        self._last_task: TrainingTask | None = None  # may still be ending
        #: The newest task's replay buffer by its id; kept for a next task with the same id.
        self.replays: dict[str, ChunkReplay] = {}

    @abstractmethod
    def send_policy(self, state_dict: Version) -> None:
        """Publish a version of the policy under the name `policy_id`; called in a separate thread
        with a copy.

        Args:
            state_dict: ``model``, optionally ``env_statistics``; ``iter``, the number of updates;
                ``envstep``, ``time``, ``learner``.

        Raises:
            OSError: It cannot be stored now; the caller will retry.
        """

    @abstractmethod
    def get_data(self, batch_size: int) -> object:
        """The next batch that the coordinator has permitted: samples, or functions that each load
        one sample. Waits for it; returns ``None`` if no batch will follow. Called in the training
        thread."""

    @abstractmethod
    def send_learn_info(self, learn_info: LearnInfo) -> None:
        """Keep the results of an update until the coordinator asks for them."""

    @property
    @abstractmethod
    def hooks4call(self) -> list[LearnerHook]:
        """Hooks that publish weights before the first update, after every
        ``send_policy_freq``-th update and at the end, and report every result."""

    @property
    def task(self) -> TrainingTask | None:
        """The current task."""
        return self._task

    @property
    def policy_id(self) -> str:
        """Name under which collectors read the task's policy."""
        return self._any_task().info.policy_id

    def _draw(self, task: TrainingTask) -> Samples | None:
        """Wait for a batch of the replay buffer; ``None`` if the task ends first."""
        replay, learner = self._replay(task), task.learner
        batch_size = learner.policy.get_attribute("batch_size")
        while not task.feed.closed:
            batch, seen = replay.sample(batch_size, learner.train_iter)
            if batch is not None:
                rewards, envstep = replay.rewards, learner.collector_envstep
                return (
                    batch if rewards is None else rewards.drawn(batch, learner.train_iter, envstep)
                )
            with task.feed.waiting_within():
                replay.wait_for_more(seen)
        return None

    def _batches(self, task: TrainingTask) -> Generator[object, None, None]:
        """Yields what `get_data` returns to a task's learner, until it returns ``None``."""
        batch_size = task.learner.policy.get_attribute("batch_size")
        while (data := self.get_data(batch_size)) is not None:
            # Checked first: reading rows of columns converts them to rows.
            if isinstance(data, Columns) or not isinstance(data, list):
                yield data
            else:
                yield [load() for load in data] if data and all(map(callable, data)) else data

    def _replay(self, task: TrainingTask) -> ChunkReplay:
        """The task's replay buffer, which outlives the task."""
        if task.replay is None:
            name, info = task.info.buffer_id or "", task.info
            replay = ChunkReplay(info.buffer_cfg, info.exp_name, name, task.learner.tb_logger)
            if task.keeper.replay_state is not None:
                replay.load_state_dict(task.keeper.replay_state)
            task.replay = self.replays[name] = replay
        rewards = task.learner.reward_model
        task.replay.rewards = rewards if isinstance(rewards, ChunkRewards) else None
        return task.replay

    def _answer_in_task(self, request: Request[Answer]) -> object:
        match request:
            case OpenMeeting():
                return self._group.open(str(self._cfg.get("host") or LOCAL_HOST))
            case DemandRequest():
                return self._demand(request)
            case TrainRequest():
                return self._train(request)
        return super()._answer_in_task(request)

    def _resources(self) -> Resources:
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return Resources(os.cpu_count() or 1, gpus)

    def _start_task(self, given: Task) -> None:
        """Begin a task; the previous task is ended first."""
        self._leave_task()
        if self._last_task is not None:
            self._give_up_if_hung(self._last_task)  # waits until its state is saved
        try:
            info = LearnerTaskInfo.of(given)
            self._rank, self._world_size = self._place(info)
            task = TrainingTask(
                info,
                self._name,
                self._cfg,
                self.send_policy,
                self._is_in_touch,
                self.stores.artifacts,
                self._group.leave if self._world_size > 1 else None,
            )
            with self._lock:
                self._task = self._last_task = task
            try:
                self._begin(task)
            except BaseException:
                self._leave_task()
                task.abort()
                raise
        except DingError as error:
            raise ErrorReport.of(error).task_fail() from error

    def _place(self, info: LearnerTaskInfo) -> tuple[int, int]:
        """The process's rank in a task, and the number of processes that train together."""
        if not self._multi_gpu:
            return 0, 1
        if info.meeting is None:
            raise ConfigError(
                f"{self._name} is one of several processes that train together, but its "
                "coordinator has no others for it: both need the same learner_gpu_num"
            )
        return info.meeting.rank, len(info.meeting.learners)

    def _begin(self, task: TrainingTask) -> None:
        info = task.info
        self.stores.weights.version(info.policy_id)  # raises now if the name is invalid
        own = info.buffer_id or ""
        for other in self.replays.keys() - {own}:
            self.replays.pop(other).close()
        task.replay = self.replays.get(own)
        if info.meeting is not None and self._multi_gpu:
            # Before the policy is created, which broadcasts the same weights to all ranks.
            self._group.meet(info.meeting)
        learner = self._create_learner(vars(info), self._batches(task))
        learner.send_policy = task.send_policy  # type: ignore[attr-defined]
        for hook in self.hooks4call:
            learner.register_hook(hook)
        task.start(learner)

    def _demand(self, request: DemandRequest) -> Demand:
        task = self._require_task()
        task.check()
        number = self._wanted(task, durations.ANSWER_WAIT if request.wait is None else request.wait)
        return Demand(
            task.info.task_id,
            batch_size=task.learner.policy.get_attribute("batch_size"),
            train_iter=task.learner.train_iter,
            batch_num=number,
            buffer_id=task.info.buffer_id,
        )

    def _train(self, request: TrainRequest) -> TrainAnswer:
        task = self._require_task()
        task.check()
        if request.envstep:
            task.learner.collector_envstep = request.envstep
        if request.env_statistics:
            known = merged([cast(dict[str, Any], request.env_statistics)])  # lists to arrays
            task.learner.policy.set_attribute("env_statistics", known)
        if request.chunks:
            self._replay(task).name_chunks(request.chunks, request.envstep)
        if task.replay is not None:
            # Answer soon, even if a restarted learner has many chunks to read again.
            deadline, read = time.monotonic() + durations.POLL, self.stores.samples.get
            task.replay.take_in(partial(read_rows, read), lambda: time.monotonic() > deadline)
        # After the chunks: permitted batches are drawn from the chunks of the same request.
        task.feed.put(request.draws)
        return task.results(self._wanted(task, request.wait or 0.0))

    def _close_task(self) -> TaskReport:
        task = self._require_task()
        self._leave_task(abandon=False)
        self._give_up_if_hung(task)
        if task.failure is not None:
            raise task.failure.task_fail()
        return task.final_report()

    def _wanted(self, task: TrainingTask, wait: float) -> int:
        """Number of batches wanted; waits until it is positive."""
        wait = min(wait, durations.LEARNER_LONGEST_WAIT)
        if task.end_was_reported:
            self._closing.wait(wait)  # the task will be closed soon; slow the coordinator down
        number = task.feed.demand(wait)
        task.check()
        return number

    def _require_task(self) -> TrainingTask:
        task = self._task
        if task is None:
            text = "no learner task is being worked on: none was started, or its master was lost"
            raise ErrorReport("NoTask", text).task_fail()
        return task

    def _any_task(self) -> TrainingTask:
        if self._last_task is None:
            raise ConfigError("there is no learner task: StartTask has to come first")
        return self._last_task

    def _leave_task(self, abandon: bool = True) -> None:
        """Ask the current task to end, and drop it."""
        with self._lock:
            task, self._task = self._task, None
        if task is not None:
            task.stop(abandon)

    def _give_up_if_hung(self, task: TrainingTask) -> None:
        hung = task.join(durations.LEARNER_STOP)
        if hung is not None:
            self._fail(str(hung))
            raise hung.task_fail()

    def _create_learner(self, task_info: Task, loader: Loader | None = None) -> BaseLearner:
        """Create the learner of a task; the caller registers its hooks."""
        learner_cfg = EasyDict(task_info["learner_cfg"])
        # One of several players, whose files and curves share a folder.
        player_id = learner_cfg.get("player_id")
        learner = create_learner(
            learner_cfg,
            dist_info=(self._rank, self._world_size),
            exp_name=learner_cfg.get("exp_name", "default_experiment"),
            instance_name=f"learner_{player_id}" if player_id else "learner",
        )
        learner.ckpt_prefix = f"{player_id}_" if player_id else ""
        for name in ("get_data", "send_policy", "send_learn_info"):
            setattr(learner, name, getattr(self, name))
        policy_cfg = EasyDict(task_info["policy"])
        if self._world_size > 1:
            # The task decides, not the config: processes started for one learner must average
            # their gradients.
            policy_cfg.multi_gpu = True
        learner.policy = create_policy(policy_cfg, enable_field=["learn"]).learn_mode
        fit_threads(learner.policy.get_attribute("model"))
        if reward_model := learner_cfg.get("reward_model"):
            if self._world_size > 1:
                raise ConfigError(
                    f"reward_model.type={reward_model.type!r} learns from what one process takes "
                    "in: train with one learner"
                )
            device = learner.policy.get_attribute("device")
            learner.reward_model = ChunkRewards(reward_model, policy_cfg, device, learner.tb_logger)
        learner.setup_dataloader(loader)
        return learner

    def _give_up_task(self, cause: str) -> None:
        self._leave_task()

    def _ask_to_end(self) -> None:
        self._leave_task()

    def _finish(self) -> None:
        if self._last_task is not None:
            self._last_task.join(durations.LEARNER_STOP if self.failed is None else 0.1)
        self._group.close()
        for replay in self.replays.values():
            replay.close()

    def _is_in_touch(self) -> bool:
        """Whether the coordinator probably still uses this learner, not a replacement."""
        if self._http is None:
            return True
        tolerance = self._cfg.get("heartbeat_tolerance")
        return self._http.in_touch(DEFAULT_HEARTBEAT_TOLERANCE if tolerance is None else tolerance)


def create_comm_learner(cfg: EasyDict) -> BaseCommLearner:
    """Build the registered comm learner ``cfg.type``; ``cfg.import_names`` are imported first."""
    return cast(BaseCommLearner, make_service("learner", cfg))
