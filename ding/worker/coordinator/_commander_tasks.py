"""What commanders are made of: their base, tasks of the main config, open tasks, and scalars."""

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
#: Settings by ``learner_step``, ``envstep`` and ``greedy``.
SettingsOf = Callable[[Mapping[str, int]], dict[str, object]]


class BaseCommander(Configurable, ABC):
    """Makes tasks, and is notified how they went. The coordinator makes one call at a time.

    What is not abstract here does nothing: a commander defines what it wants to know.

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

    def note_end(self) -> bool:
        """The run ends, and its tasks with it.

        Returns:
            Whether `state_dict` is still one to resume from when they have ended. If not, a resumed
            run has the state of now, without what the tasks report last.
        """
        return False

    def state_dict(self) -> State:
        """State that makes another commander continue like this one; plain data."""
        return {}

    def load_state_dict(self, state_dict: State) -> None:
        """Continue from a `state_dict`; no task is open then."""


def commander_section(cfg: Settings, cls: type[BaseCommander]) -> EasyDict:
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


def collector_task(
    cfg: Settings, task_id: str, buffer_id: str, **settings: object
) -> CollectorTask:
    """A collector's task of the main config, with ``settings`` instead of those of
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
    """A learner's task of the main config, with ``settings`` in addition to those of
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
    # A copy: a worker in a thread of this process completes the config that it is given.
    return cast(AnyTask, EasyDict(copy.deepcopy(dict(task))))


def task_env(cfg: Settings, is_eval: bool) -> dict[str, Any]:
    """The env config of a collector's task, which says how many episodes it has.

    ``manager.episode_num`` are those of each environment: ``env.collector_episode_num``, no end
    without it. Evaluations have ``env.evaluator_episode_num``, or as many as it takes for
    ``env.n_evaluator_episode`` in all.
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
    """A part of a config; empty where there is none."""
    for key in path:
        cfg = cfg.get(key) or {}
    return cfg


def command_settings(cfg: Settings) -> tuple[SettingsOf, SettingsOf]:
    """What returns the settings of collecting and of evaluating."""
    policy_cfg = EasyDict(copy.deepcopy(dict(section(cfg, "policy"))))
    if not str(policy_cfg.type).endswith("_command"):
        policy_cfg.type = f"{policy_cfg.type}_command"
    if policy_cfg.get("cuda") and not torch.cuda.is_available():
        warn_of_no_gpu()
    # The coordinator only asks for settings: it must not take memory of a GPU, which its host may
    # not have.
    policy_cfg.cuda = policy_cfg.multi_gpu = False
    # The settings do not depend on a network.
    policy: Any = create_policy(policy_cfg, model=torch.nn.Identity(), enable_field=["command"])
    mode = policy.command_mode
    return mode.get_setting_collect, mode.get_setting_eval


@dataclass(eq=False)
class Trainee:
    """A policy that a learner trains."""

    policy_id: str  # file of its weights under ``path_policy``
    buffer_id: str  # where its data goes
    player_id: str | None = None  # a league's player
    learner_step: int = 0
    envstep: int = 0  # env steps that were collected for it, ``greedy_steps`` by greedy collectors
    greedy_steps: int = 0

    def facts(self) -> dict[str, int]:
        """What settings depend on."""
        return {"learner_step": self.learner_step, "envstep": self.envstep}

    def with_own_buffer(self) -> "Trainee":
        """The same policy with a new buffer: the one that it had is closed."""
        of = f"buffer_{self.player_id}" if self.player_id else "buffer"
        return replace(self, buffer_id=f"{of}_{uuid.uuid4().hex[:8]}")

    def trained(self, info: LearnerInfo) -> None:
        """Take in a learner's report."""
        self.learner_step = max(self.learner_step, as_count(info.get("learner_step")))


@dataclass(eq=False)
class OpenTask:
    """What a collector is asked to do."""

    trainee: Trainee
    is_eval: bool
    settings: dict[str, object] = field(default_factory=dict)  # fields of ``collector_cfg``
    league_job: LeagueJob | None = None
    since: float = 0.0  # when it was handed out, seconds
    steps: int = 0  # env steps reported so far
    is_closing: bool = False  # the collector was asked to stop
    is_whole: bool = False  # as many episodes have ended as it has environments
    is_last: bool = False  # it was handed out when training was over
    is_greedy: bool = False  # the collector explores as little as at the end of the run
    #: What the policy's command mode gave, such as ``{"eps": 0.9}``.
    collect_setting: Mapping[str, object] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Whose scalars its report becomes. Exploring collectors have their own: the ε and the
        returns of greedy ones are others."""
        if self.is_eval:
            return "evaluator"
        return "collector_greedy" if self.is_greedy else "collector"

    def count(self, steps: object) -> None:
        """Count the env steps that the collector has made so far."""
        new = max(0, as_count(steps) - self.steps)
        # Reports are sums of the task and may come late: only what is new counts.
        self.steps += new
        if not self.is_eval:
            self.trainee.envstep += new
            self.trainee.greedy_steps += new if self.is_greedy else 0


class TaskSpace(Generic[Note]):
    """Places for tasks: ``space`` may be open at once, with a note of each by its id."""

    def __init__(self, kind: str, space: int) -> None:
        self.space = int(space)
        self.opened: dict[str, Note] = {}
        self.issued = 0
        self._kind = kind

    @property
    def has_room(self) -> bool:
        return len(self.opened) < self.space

    def open(self, note: Note) -> str:
        """Take a place; returns the id of the new task, unique over all runs."""
        self.issued += 1
        task_id = f"{self._kind}_{self.issued}_{uuid.uuid4().hex[:8]}"
        self.opened[task_id] = note
        return task_id

    def close(self, task_id: object) -> Note | None:
        """Return the place of a task: its note, or None if that was done before."""
        return self.opened.pop(str(task_id), None)


#: What workers report, and what serial runs call it.
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
#: Times that are logged as rates, their inverse.
_RATES = {
    "avg_time_per_step": "avg_envstep_per_sec",
    "avg_time_per_train_sample": "avg_train_sample_per_sec",
    "avg_time_per_episode": "avg_episode_per_sec",
}
_EVAL_RATES = {"avg_time_per_step": "avg_envstep_per_sec"}
#: What is unknown without an episode.
_OF_EPISODES = frozenset(name for name in _TAGS if "per_episode" in name or "reward" in name) | {
    "avg_time_per_episode"
}


def epsilon(setting: object) -> float:
    """How much a collector explores by its task's ``collect_setting``; NaN if that has no eps."""
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

    Updates are those of the report's ``train_iter``, or ``learner_step``.
    """
    train_iter = as_count(info["train_iter"]) if "train_iter" in info else learner_step
    for tag, value in _row(info, is_eval).items():
        tb_logger.add_scalar(f"{source}_iter/{tag}", value, train_iter)
        tb_logger.add_scalar(f"{source}_step/{tag}", value, envstep)


def _row(info: CollectorReport, is_eval: bool) -> dict[str, float]:
    """The figures of a report by the names of serial runs; nonsense is left out."""
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
