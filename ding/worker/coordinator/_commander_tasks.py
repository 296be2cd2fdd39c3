"""Building blocks of commanders: the base class, tasks of the main config, open tasks, scalars."""

import copy
import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

import torch
from easydict import EasyDict

from ding.league.shared_payoff import LeagueJob
from ding.policy import create_policy
from ding.policy.base_policy import warn_of_no_gpu
from ding.utils import deep_merge_dicts
from ding.utils.default_helper import Configurable
from ding.utils.errors import ConfigError
from ding.utils.log_writer import ScalarWriter
from ding.utils.types import Settings, State
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

from .run_facts import as_count, mean_return

Note = TypeVar("Note")
AnyTask = TypeVar("AnyTask", CollectorTask, LearnerTask)
#: Returns settings, given ``learner_step``, ``envstep`` and ``greedy``.
SettingsOf = Callable[[Mapping[str, int]], dict[str, object]]


class BaseCommander(Configurable, ABC):
    """Creates tasks and receives their results. The coordinator makes one call at a time.

    Methods that are not abstract do nothing by default.

    Attributes:
        tb_logger: Where scalars go, if anywhere.
        converged_reason: Why training may stop because its goal is reached.
        finished_reason: Why it stops without.
        keep_weights: Keeps the newest published weights of a name under another one, also for a run
            that is resumed; a `CheckpointError` if that fails. ``None`` without a coordinator.
        policy_num: Policies that are trained at the same time, each by its own learner.
    """

    tb_logger: ScalarWriter | None = None
    keep_weights: Callable[[str, str], object] | None = None
    converged_reason: str | None = None
    finished_reason: str | None = None
    policy_num = 1

    @abstractmethod
    def get_collector_task(self) -> CollectorTask | None:
        """A task for an idle collector, or None."""

    def judge_collector_finish(self, task_id: str, info: CollectorInfo) -> bool:
        """Whether a collector's task must be closed, given its reported progress."""
        return bool(info.get("collector_done", False))

    def update_collect_progress(self, task_id: str, info: CollectorCounts) -> None:
        """Process a collector's progress."""

    def finish_collector_task(self, task_id: str, finished_task: CollectorReport) -> bool | None:
        """Process a collector's report; returns whether training has converged."""
        return False

    def notify_fail_collector_task(self, task: FailedTask) -> None:
        """A task failed, or no worker took it."""

    def increase_collector_task_space(self) -> None:
        """A collector beyond the configured number has joined."""

    def decrease_collector_task_space(self) -> None:
        """A collector beyond the configured number has left."""

    def get_learner_task(self) -> LearnerTask | None:
        """A task for an idle learner, or None."""
        return None

    def update_learner_info(self, task_id: str, info: LearnerNews) -> None:
        """Process a learner's report."""

    def judge_learner_finish(self, task_id: str, info: LearnerInfo) -> bool:
        """Whether a learner's task must be closed, given its reported progress."""
        return bool(info.get("learner_done", False))

    def finish_learner_task(self, task_id: str, finished_task: LearnerInfo) -> str | None:
        """Process a learner's final report; returns the id of the buffer that is not needed any
        more."""
        return None

    def notify_fail_learner_task(self, task: FailedTask) -> None:
        """A task failed, or no worker took it."""

    def weights_files(self) -> list[str]:
        """Names under ``path_policy`` that belong to this run."""
        return []

    def note_end(self) -> bool:
        """The run ends, and its tasks with it.

        Returns:
            Whether `state_dict` is still one to resume from when they have ended. If not, a resumed
            run has the state of now, without what the tasks report last.
        """
        return False

    def state_dict(self) -> State:
        """State from which another commander can continue; plain data."""
        return {}

    def load_state_dict(self, state_dict: State) -> None:
        """Continue from a `state_dict`; called while no task is open."""


def commander_section(cfg: Settings, cls: type[BaseCommander]) -> EasyDict:
    """A commander's settings, with defaults.

    Args:
        cfg: The main config (``policy.other.commander``), or these settings alone.

    Raises:
        ConfigError: An invalid number of tasks or seconds.
    """
    own = section(cfg, "policy", "other", "commander") or cfg
    merged = EasyDict(deep_merge_dicts(cls.default_config(), dict(own)))
    for key in ("collector_task_space", "learner_task_space", "eval_interval"):
        value = merged.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(f"policy.other.commander.{key} is {value!r}; expected a number >= 0")
    return merged


def collector_task(
    cfg: Settings, task_id: str, buffer_id: str, **settings: object
) -> CollectorTask:
    """A collector's task of the main config; ``settings`` override
    ``policy.collect.collector``."""
    collector_cfg = {
        **section(cfg, "policy", "collect", "collector"),
        "policy": section(cfg, "policy"),
        "env": section(cfg, "env"),
        "exp_name": cfg.get("exp_name", "default_experiment"),
        **settings,
    }
    task: CollectorTask
    task = {"task_id": task_id, "buffer_id": buffer_id, "collector_cfg": collector_cfg}
    return _own_copy(task)


def learner_task(
    cfg: Settings, task_id: str, policy_id: str, buffer_id: str, **settings: object
) -> LearnerTask:
    """A learner's task of the main config; ``settings`` are added to
    ``policy.learn.learner``."""
    task: LearnerTask = {
        "task_id": task_id,
        "policy_id": policy_id,
        "buffer_id": buffer_id,
        "learner_cfg": {
            **section(cfg, "policy", "learn", "learner"),
            "exp_name": cfg.get("exp_name", "default_experiment"),
            **({"reward_model": section(cfg, "reward_model")} if cfg.get("reward_model") else {}),
            **settings,
        },
        "replay_buffer_cfg": section(cfg, "policy", "other", "replay_buffer"),
        "policy": section(cfg, "policy"),
    }
    return _own_copy(task)


def _own_copy(task: AnyTask) -> AnyTask:
    # A copy: a worker in this process adds defaults to the config in place.
    return cast(AnyTask, EasyDict(copy.deepcopy(dict(task))))


def task_env(cfg: Settings, is_eval: bool) -> dict[str, Any]:
    """The env config of a collector's task, which determines its number of episodes.

    ``manager.episode_num`` is per environment: ``env.collector_episode_num``, or unlimited without
    it. Evaluations use ``env.evaluator_episode_num``, or the number that is needed for
    ``env.n_evaluator_episode`` in total.
    """
    env = dict(section(cfg, "env"))
    episodes = env.get("collector_episode_num") or math.inf
    if is_eval:
        env_num = env.get("evaluator_env_num") or 1
        episodes = env.get("evaluator_episode_num") or math.ceil(
            (env.get("n_evaluator_episode") or env_num) / env_num
        )
        env["n_evaluator_episode"] = env.get("n_evaluator_episode") or episodes * env_num
    env["manager"] = {**(env.get("manager") or {}), "episode_num": episodes}
    return env


def section(cfg: Settings, *path: str) -> Settings:
    """A section of a config; empty if it does not exist."""
    for key in path:
        cfg = cfg.get(key) or {}
    return cfg


def command_settings(cfg: Settings) -> tuple[SettingsOf, SettingsOf]:
    """Functions that return the settings of collecting and of evaluating."""
    policy_cfg = EasyDict(copy.deepcopy(dict(section(cfg, "policy"))))
    if not str(policy_cfg.type).endswith("_command"):
        policy_cfg.type = f"{policy_cfg.type}_command"
    if policy_cfg.get("cuda") and not torch.cuda.is_available():
        warn_of_no_gpu()
    # The coordinator only needs settings: its host may have no GPU, or need the memory of one.
    policy_cfg.cuda = policy_cfg.multi_gpu = False
    # The settings do not depend on a network.
    policy: Any = create_policy(policy_cfg, model=torch.nn.Identity(), enable_field=["command"])
    mode = policy.command_mode
    return mode.get_setting_collect, mode.get_setting_eval


@dataclass(eq=False)
class Trainee:
    """A policy that a learner trains."""

    policy_id: str  # name of its weights under ``path_policy``
    buffer_id: str  # buffer of its data
    player_id: str | None = None  # a league's player
    learner_step: int = 0
    envstep: int = 0  # env steps collected for it; ``greedy_steps`` by greedy collectors
    greedy_steps: int = 0

    def facts(self) -> dict[str, int]:
        """The facts on which settings depend."""
        return {"learner_step": self.learner_step, "envstep": self.envstep}

    def with_own_buffer(self) -> "Trainee":
        """The same policy with a new buffer, since its old one is closed."""
        of = f"buffer_{self.player_id}" if self.player_id else "buffer"
        return replace(self, buffer_id=f"{of}_{uuid.uuid4().hex[:8]}")

    def trained(self, info: LearnerInfo) -> None:
        """Process a learner's report."""
        self.learner_step = max(self.learner_step, as_count(info.get("learner_step")))


@dataclass(eq=False)
class OpenTask:
    """A collector's open task."""

    trainee: Trainee
    is_eval: bool
    settings: dict[str, object] = field(default_factory=dict)  # fields of ``collector_cfg``
    league_job: LeagueJob | None = None
    since: float = 0.0  # time of its assignment, in seconds
    steps: int = 0  # env steps reported so far
    is_closing: bool = False  # the collector was asked to stop
    is_whole: bool = False  # at least as many episodes have ended as it has environments
    is_last: bool = False  # it was created after the end of training
    is_greedy: bool = False  # the collector explores as little as at the end of the run
    #: Settings from the policy's command mode, such as ``{"eps": 0.9}``.
    collect_setting: Mapping[str, object] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Prefix of the report's scalars. Exploring and greedy collectors have separate ones, since
        their ε and returns differ."""
        if self.is_eval:
            return "evaluator"
        return "collector_greedy" if self.is_greedy else "collector"

    def count(self, steps: object) -> None:
        """Count the env steps of the collector so far."""
        new = max(0, as_count(steps) - self.steps)
        # Reports contain sums over the task and may be late: count only the difference.
        self.steps += new
        if not self.is_eval:
            self.trainee.envstep += new
            self.trainee.greedy_steps += new if self.is_greedy else 0


class TaskSpace(Generic[Note]):
    """Slots for tasks: ``space`` may be open at once; each has a note, by task id."""

    def __init__(self, kind: str, space: int) -> None:
        self.space = int(space)
        self.opened: dict[str, Note] = {}
        self.issued = 0
        self._kind = kind

    @property
    def has_room(self) -> bool:
        return len(self.opened) < self.space

    def open(self, note: Note) -> str:
        """Occupy a slot; returns the id of the new task, unique over all runs."""
        self.issued += 1
        task_id = f"{self._kind}_{self.issued}_{uuid.uuid4().hex[:8]}"
        self.opened[task_id] = note
        return task_id

    def close(self, task_id: object) -> Note | None:
        """Free a task's slot; returns its note, or None if it was freed before."""
        return self.opened.pop(str(task_id), None)


#: Reported figures, and their names in serial runs.
_TAGS = {
    "real_episode_count": "episode_count",
    "step_count": "envstep_count",
    "sample_count": "train_sample_count",
    "avg_step_per_episode": "avg_envstep_per_episode",
    "avg_sample_per_episode": "avg_sample_per_episode",
    "reward_mean": "reward_mean",
    "reward_std": "reward_std",
}
_EVAL_TAGS = {
    **{name: tag for name, tag in _TAGS.items() if "sample" not in name},
    "duration": "evaluate_time",
    "avg_time_per_episode": "avg_time_per_episode",
}
#: Times that are logged as rates, their inverses.
_RATES = {
    "avg_time_per_step": "avg_envstep_per_sec",
    "avg_time_per_train_sample": "avg_train_sample_per_sec",
    "avg_time_per_episode": "avg_episode_per_sec",
}
_EVAL_RATES = {"avg_time_per_step": "avg_envstep_per_sec"}
#: Figures that are undefined without episodes.
_OF_EPISODES = frozenset(name for name in _TAGS if "per_episode" in name or "reward" in name) | {
    "avg_time_per_episode"
}


def epsilon(setting: object) -> float:
    """The ε of a task's ``collect_setting``; NaN if there is none."""
    eps = setting.get("eps") if isinstance(setting, Mapping) else None
    return eps if isinstance(eps, int | float) else math.nan


def write_scalars(
    tb_logger: ScalarWriter,
    source: str,
    is_eval: bool,
    info: CollectorReport,
    learner_step: int,
    envstep: int,
) -> None:
    """Write a report under ``<source>_iter/`` and ``<source>_step/``.

    The iteration is the report's ``train_iter``, or else ``learner_step``.
    """
    train_iter = as_count(info["train_iter"]) if "train_iter" in info else learner_step
    for tag, value in _row(info, is_eval).items():
        tb_logger.add_scalar(f"{source}_iter/{tag}", value, train_iter)
        tb_logger.add_scalar(f"{source}_step/{tag}", value, envstep)


def _row(info: CollectorReport, is_eval: bool) -> dict[str, float]:
    """A report's figures by the names of serial runs; invalid ones are left out."""
    has_return = mean_return(info, is_eval) is not None
    given = {
        name: float(value)
        for name, value in info.items()
        if isinstance(value, int | float) and math.isfinite(value)
        if has_return or name not in _OF_EPISODES
    }
    tags, rates = (_EVAL_TAGS, _EVAL_RATES) if is_eval else (_TAGS, _RATES)
    row = {tag: given[name] for name, tag in tags.items() if name in given}
    row |= {tag: 1 / given[name] for name, tag in rates.items() if given.get(name, 0) > 0}
    raw = info.get("reward_raw")
    returns = raw if has_return and isinstance(raw, list) else []
    if returns and all(isinstance(one, int | float) and math.isfinite(one) for one in returns):
        row |= {"reward_max": max(returns), "reward_min": min(returns)}
    eps = epsilon(info.get("collect_setting"))
    if not is_eval and math.isfinite(eps):
        row["eps"] = eps
    return row
