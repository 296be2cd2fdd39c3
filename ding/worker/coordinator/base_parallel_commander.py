"""Commanders: what decides which tasks learners and collectors get."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from easydict import EasyDict

from ding.utils import COMMANDER_REGISTRY, deep_merge_dicts, import_module
from ding.utils.class_config import Configurable
from ding.utils.errors import ConfigError
from ding.utils.log_writer import ScalarWriter
from ding.worker.coordinator._commander_tasks import (
    OpenTask,
    TaskSpace,
    Trainee,
    collector_task,
    command_settings,
    learner_task,
    section,
)
from ding.worker.coordinator._types import Config, StateDict
from ding.worker.tasks import (
    CollectorCounts,
    CollectorInfo,
    CollectorReport,
    CollectorTask,
    FailedTask,
    LearnerInfo,
    LearnerNews,
    LearnerTask,
)

#: Tasks of learners whose news a naive commander keeps.
MAX_LEARNER_INFO = 100


class BaseCommander(Configurable, ABC):
    """Makes tasks, and is told how they went. Safe to use from several threads.

    What is not abstract here does nothing: a commander defines what it wants to know.

    Attributes:
        tb_logger: Where scalars go, if anywhere.
        converged_reason: Why training may stop because its goal is reached.
        finished_reason: Why it stops without.
    """

    tb_logger: ScalarWriter | None = None
    converged_reason: str | None = None
    finished_reason: str | None = None

    # ------------------------------------------------------------------ collectors

    @abstractmethod
    def get_collector_task(self) -> CollectorTask | None:
        """A task for a collector that is idle now, or None."""

    def judge_collector_finish(self, task_id: str, info: CollectorInfo) -> bool:
        """Whether a collector's task is to be closed, by the progress that it reports."""
        return bool(info.get("collector_done", False))

    def update_collect_progress(self, task_id: str, info: CollectorCounts) -> None:
        """Take in the progress of a collector."""

    def finish_collector_task(self, task_id: str, finished_task: CollectorReport) -> bool | None:
        """Take in a collector's report; whether training has converged with it."""
        return False

    def notify_fail_collector_task(self, task: FailedTask) -> None:
        """A task failed, or nobody took it."""

    def increase_collector_task_space(self) -> None:
        """There is a collector more than the config has."""

    def decrease_collector_task_space(self) -> None:
        """One of those beyond the config has left."""

    # ------------------------------------------------------------------ learners

    def get_learner_task(self) -> LearnerTask | None:
        """A task for a learner that is idle now, or None."""
        return None

    def update_learner_info(self, task_id: str, info: LearnerNews) -> None:
        """Take in what a learner reports."""

    def judge_learner_finish(self, task_id: str, info: LearnerInfo) -> bool:
        """Whether a learner's task is to be closed, by the progress that it reports."""
        return bool(info.get("learner_done", False))

    def finish_learner_task(self, task_id: str, finished_task: LearnerInfo) -> str | None:
        """Take in a learner's report; returns the id of the buffer that is not needed any more."""
        return None

    def notify_fail_learner_task(self, task: FailedTask) -> None:
        """A task failed, or nobody took it."""

    # ------------------------------------------------------------------ the run

    def weights_files(self) -> list[str]:
        """Names under ``path_policy`` that belong to this run."""
        return []

    def state_dict(self) -> StateDict:
        """What another commander needs to go on as this one would; plain data."""
        return {}

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Go on from a `state_dict`; no task is open then."""


class TaskCommander(BaseCommander):
    """Base of commanders that keep as many tasks open as there is space for, and count steps.

    Args:
        cfg: The main config, or a commander's section alone.
    """

    config: StateDict = dict(collector_task_space=1, learner_task_space=1, eval_interval=60)

    def __init__(self, cfg: Config) -> None:
        self._cfg = cfg
        self._own = commander_section(cfg, type(self))
        self._lock = threading.RLock()
        self.clock = time.monotonic
        self._collectors = TaskSpace[OpenTask]("collector_task", self._own.collector_task_space)
        self._learners = TaskSpace[Trainee]("learner_task", self._own.learner_task_space)

    def update_learner_info(self, task_id: str, info: LearnerNews) -> None:
        with self._lock:
            trainee = self._learners.opened.get(task_id)
            if trainee is not None:
                trainee.trained(info)

    def update_collect_progress(self, task_id: str, info: CollectorCounts) -> None:
        with self._lock:
            job = self._collectors.opened.get(task_id)
            if job is not None:
                job.count(info.get("cur_step"))

    def increase_collector_task_space(self) -> None:
        with self._lock:
            self._collectors.increase()

    def decrease_collector_task_space(self) -> None:
        with self._lock:
            self._collectors.decrease()

    def _has_old_settings(self, job: OpenTask) -> bool:
        """Whether a task that would go on for ever was given out ``eval_interval`` ago."""
        is_endless = not section(self._cfg, "env").get("collector_episode_num")
        return is_endless and self.clock() - job.since >= self._own.eval_interval


@COMMANDER_REGISTRY.register("naive")
class NaiveCommander(TaskCommander):
    """Hands out tasks of one policy without end, and never evaluates.

    Args:
        cfg: The main config, or ``collector_task_space`` and ``learner_task_space`` alone.

    Attributes:
        learner_info: The newest report of each learner's task, by the task's id.
    """

    def __init__(self, cfg: Config) -> None:
        super().__init__(cfg)
        self._trainee = Trainee("naive_policy", "naive_buffer")
        self._setting = command_settings(cfg)[0] if section(cfg, "policy").get("type") else None
        self.learner_info: dict[str, LearnerNews] = {}
        self.collector_task_finish_count = 0
        self.learner_task_finish_count = 0

    @property
    def collector_task_count(self) -> int:
        """Tasks that are open."""
        return len(self._collectors.opened)

    @property
    def learner_task_count(self) -> int:
        """Tasks that are open."""
        return len(self._learners.opened)

    def get_collector_task(self) -> CollectorTask | None:
        with self._lock:
            if not self._collectors.has_room:
                return None
            task_id = self._collectors.open(
                OpenTask(self._trainee, is_eval=False, since=self.clock())
            )
            settings: dict[str, object] = {
                "eval_flag": False,
                "policy_update_path": self._trainee.policy_id,
            }
            if self._setting is not None:
                settings["collect_setting"] = self._setting(self._trainee.facts())
        return collector_task(self._cfg, task_id, self._trainee.buffer_id, **settings)

    def get_learner_task(self) -> LearnerTask | None:
        with self._lock:
            if not self._learners.has_room:
                return None
            task_id = self._learners.open(self._trainee)
        return learner_task(self._cfg, task_id, self._trainee.policy_id, self._trainee.buffer_id)

    def judge_collector_finish(self, task_id: str, info: CollectorInfo) -> bool:
        """Whether a collector's task is over; one without an end is, when its settings are old."""
        if super().judge_collector_finish(task_id, info):
            return True
        job = self._collectors.opened.get(task_id)
        return self._setting is not None and job is not None and self._has_old_settings(job)

    def finish_collector_task(self, task_id: str, finished_task: CollectorReport) -> None:
        with self._lock:
            self._collectors.close(task_id)
            self.collector_task_finish_count += 1

    def finish_learner_task(self, task_id: str, finished_task: LearnerInfo) -> str:
        with self._lock:
            self._learners.close(task_id)
            self.learner_task_finish_count += 1
        return str(finished_task.get("buffer_id") or self._trainee.buffer_id)

    def notify_fail_collector_task(self, task: FailedTask) -> None:
        """Another one will be handed out for it."""
        with self._lock:
            self._collectors.close(task.get("task_id"))

    def notify_fail_learner_task(self, task: FailedTask) -> None:
        """Another one will be handed out for it."""
        with self._lock:
            self._learners.close(task.get("task_id"))

    def update_learner_info(self, task_id: str, info: LearnerNews) -> None:
        """Keep what a learner tells: how much collectors explore depends on its step."""
        with self._lock:
            super().update_learner_info(task_id, info)
            self.learner_info[task_id] = {**info}
            while len(self.learner_info) > MAX_LEARNER_INFO:
                del self.learner_info[next(iter(self.learner_info))]

    def weights_files(self) -> list[str]:
        return [self._trainee.policy_id]

    def state_dict(self) -> StateDict:
        with self._lock:
            return {
                "collector_task_finish_count": self.collector_task_finish_count,
                "learner_task_finish_count": self.learner_task_finish_count,
                "facts": self._trainee.facts(),
            }

    def load_state_dict(self, state_dict: StateDict) -> None:
        with self._lock:
            self._collectors.opened.clear()
            self._learners.opened.clear()
            self.learner_info.clear()
            self._trainee = replace(self._trainee, **state_dict["facts"])
            self.collector_task_finish_count = state_dict["collector_task_finish_count"]
            self.learner_task_finish_count = state_dict["learner_task_finish_count"]


def commander_section(cfg: Config, cls: type[BaseCommander]) -> EasyDict:
    """A commander's own settings, completed.

    Args:
        cfg: The main config (``policy.other.commander``), or these settings alone.

    Raises:
        ConfigError: A number of tasks or seconds that cannot be.
    """
    merged = EasyDict(deep_merge_dicts(cls.default_config(), dict(_own(cfg))))
    for key in ("collector_task_space", "learner_task_space", "eval_interval"):
        value = merged.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(f"policy.other.commander.{key} is {value!r}; expected a number >= 0")
    return merged


def create_parallel_commander(cfg: EasyDict) -> BaseCommander:
    """Build the commander that a config names.

    Args:
        cfg: The main config with ``policy.other.commander.type`` and its ``import_names``, or
            ``type`` (or ``parallel_commander_type``) and ``import_names`` alone.
    """
    make = cast("Callable[[EasyDict], BaseCommander]", get_parallel_commander_cls(cfg))
    return make(cfg)


def get_parallel_commander_cls(cfg: EasyDict) -> type[BaseCommander]:
    """The registered commander class; `cfg` as for `create_parallel_commander`."""
    own = _own(cfg)
    import_module(own.get("import_names", []))
    type_ = own.get("type") or own.get("parallel_commander_type")
    if not type_:
        raise ConfigError(
            "no commander is named: set policy.other.commander.type, for instance 'solo'"
        )
    return cast(type[BaseCommander], COMMANDER_REGISTRY.get(type_))


def _own(cfg: Config) -> Config:
    return section(cfg, "policy", "other", "commander") or cfg
