"""Commanders: what decides which tasks learners and collectors get."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast

from easydict import EasyDict

from ding.utils import COMMANDER_REGISTRY, deep_merge_dicts, import_module
from ding.utils.class_config import Configurable
from ding.utils.errors import ConfigError
from ding.utils.log_writer import ScalarWriter
from ding.worker.coordinator._commander_tasks import (
    TaskSpace,
    collector_task,
    command_settings,
    learner_task,
    section,
)
from ding.worker.coordinator._types import Config, StateDict
from ding.worker.coordinator.reported_values import as_count
from ding.worker.tasks import (
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

    def update_collect_progress(self, task_id: str, info: CollectorInfo) -> None:
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


@COMMANDER_REGISTRY.register("naive")
class NaiveCommander(BaseCommander):
    """Keeps as many tasks open as there is space for.

    Args:
        cfg: The main config, or ``collector_task_space`` and ``learner_task_space`` alone.

    Attributes:
        learner_info: The newest report of each learner's task, by the task's id.
    """

    config: StateDict = dict(collector_task_space=1, learner_task_space=1, eval_interval=60)

    def __init__(self, cfg: Config) -> None:
        own = commander_section(cfg, type(self))
        self._cfg = cfg
        self._lock = threading.Lock()
        self._collectors = TaskSpace[float]("collector_task", own["collector_task_space"])
        self._learners = TaskSpace[None]("learner_task", own["learner_task_space"])
        self._setting = command_settings(cfg)[0] if section(cfg, "policy").get("type") else None
        self._interval = float(own["eval_interval"])
        self._clock = time.monotonic
        self._facts = {"learner_step": 0, "envstep": 0}
        self._steps: dict[str, int] = {}
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
            task_id = self._collectors.open(self._clock())
            settings: dict[str, object] = dict(eval_flag=False, policy_update_path=_NAIVE_POLICY)
            if self._setting is not None:
                settings["collect_setting"] = self._setting(self._facts)
        return collector_task(self._cfg, task_id, _NAIVE_BUFFER, **settings)

    def get_learner_task(self) -> LearnerTask | None:
        with self._lock:
            if not self._learners.has_room:
                return None
            task_id = self._learners.open(None)
        return learner_task(self._cfg, task_id, _NAIVE_POLICY, _NAIVE_BUFFER)

    def judge_collector_finish(self, task_id: str, info: CollectorInfo) -> bool:
        """Whether a collector's task is over; one without an end is, when its settings are old."""
        if super().judge_collector_finish(task_id, info):
            return True
        if self._setting is None or section(self._cfg, "env").get("collector_episode_num"):
            return False
        since = self._collectors.opened.get(task_id)
        return since is not None and self._clock() - since >= self._interval

    def finish_collector_task(self, task_id: str, finished_task: CollectorReport) -> None:
        with self._lock:
            self._close_collector(task_id)
            self.collector_task_finish_count += 1

    def finish_learner_task(self, task_id: str, finished_task: LearnerInfo) -> str:
        with self._lock:
            self._learners.close(task_id)
            self.learner_task_finish_count += 1
        return str(finished_task.get("buffer_id") or _NAIVE_BUFFER)

    def notify_fail_collector_task(self, task: FailedTask) -> None:
        """Another one will be handed out for it."""
        with self._lock:
            self._close_collector(task.get("task_id"))

    def notify_fail_learner_task(self, task: FailedTask) -> None:
        """Another one will be handed out for it."""
        with self._lock:
            self._learners.close(task.get("task_id"))

    def update_learner_info(self, task_id: str, info: LearnerNews) -> None:
        """Keep what a learner tells: how much collectors explore depends on its step."""
        with self._lock:
            self.learner_info[task_id] = {**info}
            while len(self.learner_info) > MAX_LEARNER_INFO:
                del self.learner_info[next(iter(self.learner_info))]
            step = self._facts["learner_step"]
            self._facts["learner_step"] = max(step, as_count(info.get("learner_step")))

    def update_collect_progress(self, task_id: str, info: CollectorInfo) -> None:
        with self._lock:
            if task_id in self._collectors.opened:
                new = as_count(info.get("cur_step")) - self._steps.get(task_id, 0)
                self._steps[task_id] = self._steps.get(task_id, 0) + max(0, new)
                self._facts["envstep"] += max(0, new)

    def _close_collector(self, task_id: object) -> None:
        self._collectors.close(task_id)
        self._steps.pop(str(task_id), None)

    def increase_collector_task_space(self) -> None:
        with self._lock:
            self._collectors.increase()

    def decrease_collector_task_space(self) -> None:
        with self._lock:
            self._collectors.decrease()

    def weights_files(self) -> list[str]:
        return [_NAIVE_POLICY]

    def state_dict(self) -> StateDict:
        with self._lock:
            return {
                "collector_task_finish_count": self.collector_task_finish_count,
                "learner_task_finish_count": self.learner_task_finish_count,
                "facts": dict(self._facts),
            }

    def load_state_dict(self, state_dict: StateDict) -> None:
        with self._lock:
            self._collectors.opened.clear()
            self._learners.opened.clear()
            self._steps.clear()
            self.learner_info.clear()
            self._facts = dict(state_dict["facts"])
            self.collector_task_finish_count = state_dict["collector_task_finish_count"]
            self.learner_task_finish_count = state_dict["learner_task_finish_count"]


_NAIVE_BUFFER, _NAIVE_POLICY = "naive_buffer", "naive_policy"


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
