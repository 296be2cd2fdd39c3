"""The registry of commanders, and the simplest one."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from easydict import EasyDict

from ding.utils import COMMANDER_REGISTRY, import_module
from ding.utils.errors import ConfigError
from ding.utils.types import Settings, State
from ding.worker.tasks import CollectorReport, LearnerInfo

from ._commander_tasks import BaseCommander, OpenTask, Trainee, section
from .solo_parallel_commander import PolicyCommander

__all__ = [
    "BaseCommander",
    "NaiveCommander",
    "create_parallel_commander",
    "get_parallel_commander_cls",
]


@COMMANDER_REGISTRY.register("naive")
class NaiveCommander(PolicyCommander):
    """Creates tasks for one policy without end, and never evaluates.

    Args:
        cfg: The main config, or ``collector_task_space`` and ``learner_task_space`` alone.
    """

    def __init__(self, cfg: Settings) -> None:
        super().__init__(cfg)
        self._train_iterations = self._own.max_env_step = math.inf
        self._current = [Trainee("naive_policy", "naive_buffer")]
        self.collector_task_finish_count = 0
        self.learner_task_finish_count = 0

    @property
    def collector_task_count(self) -> int:
        """Number of open tasks."""
        return len(self._collectors.opened)

    @property
    def learner_task_count(self) -> int:
        """Number of open tasks."""
        return len(self._learners.opened)

    def finish_collector_task(self, task_id: str, finished_task: CollectorReport) -> bool:
        self._collectors.close(task_id)
        self.collector_task_finish_count += 1
        return False

    def finish_learner_task(self, task_id: str, finished_task: LearnerInfo) -> str:
        self._learners.close(task_id)
        self.learner_task_finish_count += 1
        return str(finished_task.get("buffer_id") or self._current[0].buffer_id)

    def _new_trainee(self) -> Trainee:
        return self._current[0]

    def _make_job(self, is_eval: bool) -> OpenTask:
        return OpenTask(self._current[0], is_eval)

    def _task_settings(self, job: OpenTask) -> dict[str, object]:
        settings: dict[str, object] = {
            "eval_flag": False,
            "policy_update_path": job.trainee.policy_id,
        }
        if self._setting is not None:
            settings["collect_setting"] = self._setting[0](job.trainee.facts())
        return settings

    def _is_eval_due(self, now: float | None = None) -> bool:
        return False

    def state_dict(self) -> State:
        return {
            "collector_task_finish_count": self.collector_task_finish_count,
            "learner_task_finish_count": self.learner_task_finish_count,
            "facts": self._current[0].facts(),
        }

    def load_state_dict(self, state_dict: State) -> None:
        self._collectors.opened.clear()
        self._learners.opened.clear()
        self._waiting.clear()
        self._current = [replace(self._current[0], **state_dict["facts"])]
        self.collector_task_finish_count = state_dict["collector_task_finish_count"]
        self.learner_task_finish_count = state_dict["learner_task_finish_count"]


def create_parallel_commander(cfg: EasyDict) -> BaseCommander:
    """Build the commander that a config names; `cfg` as for `get_parallel_commander_cls`."""
    make = cast("Callable[[EasyDict], BaseCommander]", get_parallel_commander_cls(cfg))
    return make(cfg)


def get_parallel_commander_cls(cfg: EasyDict) -> type[BaseCommander]:
    """The registered commander class that a config names.

    Args:
        cfg: The main config with ``policy.other.commander.type`` and its ``import_names``, or
            ``type`` (or ``parallel_commander_type``) and ``import_names`` alone.
    """
    own = section(cfg, "policy", "other", "commander") or cfg
    import_module(own.get("import_names", []))
    type_ = own.get("type") or own.get("parallel_commander_type")
    if not type_:
        raise ConfigError(
            "no commander is named: set policy.other.commander.type, for instance 'solo'"
        )
    return cast(type[BaseCommander], COMMANDER_REGISTRY.get(type_))
