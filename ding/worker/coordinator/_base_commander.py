"""What a commander is, and its settings."""

from abc import ABC, abstractmethod

from easydict import EasyDict

from ding.utils import deep_merge_dicts
from ding.utils.default_helper import Configurable
from ding.utils.errors import ConfigError
from ding.utils.log_writer import ScalarWriter
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

from ._commander_tasks import section
from ._types import Config, StateDict


class BaseCommander(Configurable, ABC):
    """Makes tasks, and is notified how they went. The coordinator makes one call at a time.

    What is not abstract here does nothing: a commander defines what it wants to know.

    Attributes:
        tb_logger: Where scalars go, if anywhere.
        converged_reason: Why training may stop because its goal is reached.
        finished_reason: Why it stops without.
    """

    tb_logger: ScalarWriter | None = None
    converged_reason: str | None = None
    finished_reason: str | None = None

    @abstractmethod
    def get_collector_task(self) -> CollectorTask | None:
        """A task for a collector that is idle now, or None."""

    def judge_collector_finish(self, task_id: str, info: CollectorInfo) -> bool:
        """Whether a collector's task has to be closed, by the progress that it reports."""
        return bool(info.get("collector_done", False))

    def update_collect_progress(self, task_id: str, info: CollectorCounts) -> None:
        """Take in the progress of a collector."""

    def finish_collector_task(self, task_id: str, finished_task: CollectorReport) -> bool | None:
        """Take in a collector's report; whether training has converged with it."""
        return False

    def notify_fail_collector_task(self, task: FailedTask) -> None:
        """A task failed, or no worker took it."""

    def increase_collector_task_space(self) -> None:
        """There is a collector more than the config has."""

    def decrease_collector_task_space(self) -> None:
        """One of those beyond the config has left."""

    def get_learner_task(self) -> LearnerTask | None:
        """A task for a learner that is idle now, or None."""
        return None

    def update_learner_info(self, task_id: str, info: LearnerNews) -> None:
        """Take in what a learner reports."""

    def judge_learner_finish(self, task_id: str, info: LearnerInfo) -> bool:
        """Whether a learner's task has to be closed, by the progress that it reports."""
        return bool(info.get("learner_done", False))

    def finish_learner_task(self, task_id: str, finished_task: LearnerInfo) -> str | None:
        """Take in a learner's report; returns the id of the buffer that is not needed any more."""
        return None

    def notify_fail_learner_task(self, task: FailedTask) -> None:
        """A task failed, or no worker took it."""

    def weights_files(self) -> list[str]:
        """Names under ``path_policy`` that belong to this run."""
        return []

    def state_dict(self) -> StateDict:
        """State that makes another commander continue like this one; plain data."""
        return {}

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Continue from a `state_dict`; no task is open then."""


def commander_section(cfg: Config, cls: type[BaseCommander]) -> EasyDict:
    """A commander's own settings, completed.

    Args:
        cfg: The main config (``policy.other.commander``), or these settings alone.

    Raises:
        ConfigError: A number of tasks or seconds that cannot be.
    """
    own = section(cfg, "policy", "other", "commander") or cfg
    merged = EasyDict(deep_merge_dicts(cls.default_config(), dict(own)))
    for key in ("collector_task_space", "learner_task_space", "eval_interval"):
        value = merged.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(f"policy.other.commander.{key} is {value!r}; expected a number >= 0")
    return merged
