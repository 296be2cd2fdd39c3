"""Commanders: what decides which tasks learners and collectors get."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from ding.utils import COMMANDER_REGISTRY, deep_merge_dicts, import_module
from ding.utils.class_config import class_config
from ding.utils.errors import ConfigError
from ding.worker.coordinator._task_builder import collector_task, learner_task, section
from ding.worker.coordinator._task_space import TaskSpace


class BaseCommander(ABC):
    """Makes tasks, and is told how they went. Safe to use from several threads.

    Attributes:
        tb_logger: Where scalars go (``add_scalar``), if anywhere.
        converged_reason: Why training may stop because its goal is reached.
        finished_reason: Why it stops without.
    """

    config: dict[str, Any] = {}
    tb_logger: Any = None
    converged_reason: str | None = None
    finished_reason: str | None = None

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class, merged over those of its base classes."""
        return class_config(cls)

    @abstractmethod
    def get_collector_task(self) -> dict | None:
        """A task for a collector that is idle now, or None."""

    def judge_collector_finish(self, task_id: str, info: dict) -> bool:
        """Whether a collector's task is to be closed, by the progress that it reports."""
        return bool(info.get("collector_done", False))

    def judge_learner_finish(self, task_id: str, info: dict) -> bool:
        """Whether a learner's task is to be closed, by the progress that it reports."""
        return bool(info.get("learner_done", False))

    def update_collect_progress(  # noqa: B027 - those that do not count need not listen
        self, task_id: str, info: dict
    ) -> None:
        """Take in the progress of a collector: ``cur_step`` env steps of its task so far."""

    def progress(self) -> dict[str, Any]:
        """How far training is."""
        return {}

    def weights_files(self) -> list[str]:
        """Names under ``path_policy`` that belong to this run."""
        return []

    def state_dict(self) -> dict[str, Any]:
        """What another commander needs to go on as this one would; plain data."""
        return {}

    def load_state_dict(  # noqa: B027 - those without a state have nothing to load
        self, state_dict: dict[str, Any]
    ) -> None:
        """Go on from a `state_dict`; no task is open then."""


@COMMANDER_REGISTRY.register("naive")
class NaiveCommander(BaseCommander):
    """Hands out as many tasks as there is space for, once each.

    Args:
        cfg: The main config, or ``collector_task_space`` and ``learner_task_space`` alone.
    """

    config: dict[str, Any] = dict(collector_task_space=1, learner_task_space=1, eval_interval=60)

    def __init__(self, cfg: dict) -> None:
        own = commander_section(cfg, type(self))
        self._cfg = cfg
        self._lock = threading.Lock()
        self._collectors = TaskSpace[None]("collector_task", own["collector_task_space"])
        self._learners = TaskSpace[str]("learner_task", own["learner_task_space"])
        self.collector_task_finish_count = 0
        self.learner_task_finish_count = 0

    @property
    def collector_task_count(self) -> int:
        """Tasks that were handed out and did not fail."""
        return len(self._collectors.opened) + self.collector_task_finish_count

    @property
    def learner_task_count(self) -> int:
        """Tasks that were handed out and did not fail."""
        return len(self._learners.opened) + self.learner_task_finish_count

    def get_collector_task(self) -> dict | None:
        with self._lock:
            if self.collector_task_count >= self._collectors.space:
                return None
            task_id = self._collectors.open(None)
        return collector_task(
            self._cfg, task_id, _NAIVE_BUFFER, eval_flag=False, policy_update_path=_NAIVE_POLICY
        )

    def get_learner_task(self) -> dict | None:
        """A task for a learner that is idle now, or None."""
        with self._lock:
            if self.learner_task_count >= self._learners.space:
                return None
            task_id = self._learners.open(_NAIVE_BUFFER)
        return learner_task(self._cfg, task_id, _NAIVE_POLICY, _NAIVE_BUFFER)

    def finish_collector_task(self, task_id: str, finished_task: dict) -> None:
        with self._lock:
            self._collectors.close(task_id)
            self.collector_task_finish_count += 1

    def finish_learner_task(self, task_id: str, finished_task: dict) -> str:
        """The id of the buffer that is not needed any more."""
        with self._lock:
            buffer_id = self._learners.close(task_id)
            self.learner_task_finish_count += 1
        return finished_task.get("buffer_id") or buffer_id or _NAIVE_BUFFER

    def notify_fail_collector_task(self, task: dict) -> None:
        """Another one will be handed out for it."""
        with self._lock:
            self._collectors.close(task.get("task_id"))

    def notify_fail_learner_task(self, task: dict) -> None:
        """Another one will be handed out for it."""
        with self._lock:
            self._learners.close(task.get("task_id"))

    def update_learner_info(self, task_id: str, info: dict) -> None:
        """Learners may do as they like."""

    def increase_collector_task_space(self) -> None:
        with self._lock:
            self._collectors.increase()

    def decrease_collector_task_space(self) -> None:
        with self._lock:
            self._collectors.decrease()

    def weights_files(self) -> list[str]:
        return [_NAIVE_POLICY]

    def state_dict(self) -> dict[str, Any]:
        with self._lock:
            return {
                "collector_task_finish_count": self.collector_task_finish_count,
                "learner_task_finish_count": self.learner_task_finish_count,
            }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        with self._lock:
            self._collectors.opened.clear()
            self._learners.opened.clear()
            self.collector_task_finish_count = state_dict["collector_task_finish_count"]
            self.learner_task_finish_count = state_dict["learner_task_finish_count"]


_NAIVE_BUFFER, _NAIVE_POLICY = "naive_buffer", "naive_policy"


def commander_section(cfg: Mapping[str, Any], cls: type[BaseCommander]) -> EasyDict:
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
    commander_cls: Any = get_parallel_commander_cls(cfg)
    return commander_cls(cfg)


def get_parallel_commander_cls(cfg: EasyDict) -> type:
    """The registered commander class; `cfg` as for `create_parallel_commander`."""
    own = _own(cfg)
    import_module(own.get("import_names", []))
    type_ = own.get("type") or own.get("parallel_commander_type")
    if not type_:
        raise ConfigError(
            "no commander is named: set policy.other.commander.type, for instance 'solo'"
        )
    return COMMANDER_REGISTRY.get(type_)  # type: ignore[return-value]


def _own(cfg: Mapping[str, Any]) -> Mapping[str, Any]:
    return section(cfg, "policy", "other", "commander") or cfg
