"""Settings that are kept twice or do not fit: read where one reading is sensible, else refused."""

import math
from collections.abc import Mapping

import numpy as np
from easydict import EasyDict

from ding.config.check import Notes, Problems, check_ranges, is_int
from ding.config.parts import PARALLEL_COMPONENTS
from ding.config.schema import OLD_NAMES, TWINS
from ding.utils import PARALLEL_COLLECTOR_REGISTRY
from ding.utils.settings import at, has, put
from ding.utils.types import Config, Settings

#: What says the same of a policy and of its network; Q-value critics' networks have other words.
_SPACES = (None, "discrete", "continuous", "hybrid")
#: Replay buffers without priorities.
UNIFORM_BUFFERS = ("naive", "elastic", "sequence", "episode")
#: Collectors of a parallel run, and collectors' tasks at the same time.
COLLECTOR_NUM = "policy.collect.collector.collector_num"
TASK_SPACE = "policy.other.commander.collector_task_space"
# Twins that are written even where the config had no value.
_ALWAYS = ("policy.eval.evaluator.", "policy.collect.env_num", "policy.eval.env_num")


def twins_of(path: str) -> list[str]:
    """Other places of the value at a path; those of types are in ``create_config``."""
    types = {name: one.place for name, one in PARALLEL_COMPONENTS.items() if one.place}
    pairs = [*TWINS, *((f"create_config.{name}.type", f"{types[name]}.type") for name in types)]
    return [other for pair in pairs if path in pair for other in pair if other != path]


def settle_copies(cfg: EasyDict, user: Settings, notes: Notes) -> None:
    """Give what the merged config keeps twice the value that the user wrote, in place."""
    for first, second in TWINS:
        # What only some policies have, such as `action_space`, is not forced upon others.
        known = first.startswith("env.") or has(cfg, first)
        if not known or not isinstance(at(cfg, second.rpartition(".")[0]), dict):
            continue
        if second == "policy.model.action_space" and at(cfg, second) not in _SPACES:
            continue
        wanted, copy = at(user, first), at(user, second)
        if wanted is None and copy is not None:
            put(cfg, first, copy)
        elif at(cfg, first) is not None and (has(cfg, second) or second.startswith(_ALWAYS)):
            put(cfg, second, at(cfg, first))
            if wanted is not None and copy is not None and wanted != copy:
                notes.adapt(f"{first}={wanted!r} counts, not {second}={copy!r}")


def take_old_names(user: EasyDict, defaults: Settings) -> None:
    """Let keys of older configs set what has another name now, in place."""
    policy, known = user.policy, defaults["policy"]
    for old, new in OLD_NAMES:
        value = at(user, old)
        # Of some policies the old name is a key of today.
        renamed = has(defaults, new) and not has(defaults, old)
        if value is not None and renamed and not has(user, new):
            put(user, new, value)
    own_words = policy.get("action_space"), at(policy, "model.action_space")
    is_older = "action_space" in known and "continuous" not in known and own_words == (None, None)
    if is_older and isinstance(policy.get("continuous"), bool):
        policy.action_space = "continuous" if policy.continuous else "discrete"


def without_copies(main: Config) -> Config:
    """A compiled config with each setting only where users set it, changed in place."""
    for first, second in TWINS:
        section, _, key = second.rpartition(".")
        if has(main, second) and has(main, first) and at(main, second) == at(main, first):
            del at(main, section)[key]
    return main


def fit_settings(cfg: EasyDict, notes: Notes) -> None:
    """Change what does not fit together, in place; each change is noted."""
    episodes, envs = at(cfg, "policy.eval.evaluator.n_episode"), at(cfg, "env.evaluator_env_num")
    if _are_sizes(episodes, envs) and episodes < envs:
        cfg.env.evaluator_env_num = cfg.policy.eval.env_num = episodes
        notes.adapt(
            f"env.evaluator_env_num={envs} is more than env.n_evaluator_episode={episodes}: "
            f"{episodes} environments evaluate, an episode each"
        )
    _adapt_replay(cfg.policy, notes)
    _adapt_collection(cfg, notes)
    collectors, tasks = at(cfg, COLLECTOR_NUM), at(cfg, TASK_SPACE)
    if _are_sizes(collectors, tasks) and tasks < collectors:
        notes.adapt(
            f"{TASK_SPACE}={tasks} is less than {COLLECTOR_NUM}={collectors}: "
            f"{collectors - tasks} collectors wait until others are lost"
        )


def _adapt_replay(policy: EasyDict, notes: Notes) -> None:
    if policy.get("priority_IS_weight") and not policy.get("priority"):
        policy.priority_IS_weight = False
        notes.adapt(
            "policy.priority_IS_weight=True without policy.priority=True: there are no priorities "
            "to weigh, so it is off"
        )
    if policy.get("on_policy"):
        return
    kind = at(policy, "other.replay_buffer.type")
    if policy.get("priority") and kind in UNIFORM_BUFFERS:
        for section in (policy, policy.other.replay_buffer):
            section.update({key: False for key in section if key.startswith("priority")})
        notes.adapt(f"policy.priority=True: the replay buffer {kind!r} has no priorities")
    size = at(policy, "other.replay_buffer.replay_buffer_size")
    batch = at(policy, "learn.batch_size")
    if _are_sizes(size, batch) and size < batch:
        policy.learn.batch_size = size
        notes.adapt(
            f"policy.learn.batch_size={batch} is more than "
            f"policy.other.replay_buffer.replay_buffer_size={size}: batches have {size} samples"
        )


def _adapt_collection(cfg: EasyDict, notes: Notes) -> None:
    collect = at(cfg, "policy.collect") or {}
    n_sample, n_episode = collect.get("n_sample"), collect.get("n_episode")
    kind, counted, other = _counting(cfg)
    if n_sample is not None and n_episode is not None:
        notes.adapt(
            f"policy.collect.{counted}={collect[counted]} counts for the collector {kind!r}, not "
            f"policy.collect.{other}={collect[other]}"
        )
        del collect[other]
    nstep, envs = at(cfg, "policy.nstep"), at(cfg, "env.collector_env_num")
    whole_episodes = at(cfg, "policy.traj_len_inf") or collect.get("traj_len_inf")
    # Collectors of parallel runs choose how long trajectories are.
    is_free = kind in PARALLEL_COLLECTOR_REGISTRY or counted != "n_sample" or whole_episodes
    if is_free or not _are_sizes(nstep, envs, n_sample):
        return
    length = max(collect.get("unroll_len") or 1, math.ceil(n_sample / envs))
    if length < nstep:
        notes.adapt(
            f"policy.collect.n_sample={n_sample} over env.collector_env_num={envs} environments "
            f"gives trajectories of {length} steps, and policy.nstep={nstep} needs {nstep}: they "
            f"have {nstep} steps, so that about {nstep * envs} samples are collected at a time"
        )


def _counting(cfg: Settings) -> tuple[str, str, str]:
    """The type of the collector, the key that it counts in, and the one that it does not."""
    kind = at(cfg, "policy.collect.collector.type") or "sample"
    names = ("n_sample", "n_episode")
    return (kind, *(reversed(names) if kind.startswith("episode") else names))


#: Collectors, evaluators and commanders of one policy.
_OF_ONE_PLAYER = ("sample", "episode", "zergling", "interaction", "metric", "solo", "naive")


def find_contradictions(cfg: Settings, complete: bool, problems: Problems, parallel: bool) -> None:
    """Report values of a completed config that cannot be.

    If it is ``complete``, a run is built from it alone, and how much to collect must be in it;
    ``parallel`` is for the main config of a parallel run.
    """
    check_ranges(cfg, problems)
    _check_values(cfg, problems)
    kind, counted, _ = _counting(cfg)
    if parallel:
        _check_parallel(cfg, problems)
    elif complete and at(cfg, f"policy.collect.{counted}") is None:
        problems.add(
            f"missing key policy.collect.{counted}: how much the collector {kind!r} collects "
            "between two rounds of training"
        )


# Collectors by the commander whose games they can play.
_COLLECTORS = {"solo": ("zergling",), "one_vs_one": ("marine", "zergling")}


def _check_parallel(cfg: Settings, problems: Problems) -> None:
    policy, rewards = cfg["policy"], at(cfg, "reward_model.type")
    if rewards == "her":
        problems.add(
            "reward_model.type='her' adds transitions that no chunk has, and a parallel run fills "
            "the buffer of a resumed learner from chunks: use serial_reward_model"
        )
    elif rewards in ("gail", "guided_cost", "trex", "drex", "pwil"):
        problems.add(
            f"reward_model.type={rewards!r} learns from demonstrations, which the serial pipelines "
            "bring: use them"
        )
    elif rewards and (nstep := policy.get("nstep", 1)) != 1:
        problems.add(
            f"reward_model.type={rewards!r}: in a parallel run rewards are rewritten where the "
            f"replay buffer is, in samples of one step: set policy.nstep=1, got {nstep!r}"
        )
    collector, commander = at(policy, "collect.collector.type"), at(policy, "other.commander.type")
    playable = _COLLECTORS.get(commander, (collector,))
    if collector not in playable and any(collector in own for own in _COLLECTORS.values()):
        problems.add(
            f"policy.other.commander.type={commander!r} needs policy.collect.collector.type="
            f"{' or '.join(map(repr, playable))}, got {collector!r}"
        )


def _check_values(cfg: Settings, problems: Problems) -> None:
    goal = at(cfg, "env.stop_value")
    goals = goal if isinstance(goal, list | tuple | np.ndarray) and len(goal) else [goal]
    wrong = [one for one in goals if not (is_int(one) or isinstance(one, float | np.floating))]
    if goal is not None and wrong:
        problems.add(
            f"env.stop_value must be a number, or a list of numbers (one for each player), got "
            f"{type(goal).__name__} {goal!r}"
        )
    elif len(goals) > 1 and not _has_players(cfg):
        problems.add(
            f"env.stop_value must be a number, got {goal!r}: a list has one for each player of a "
            "battle"
        )
    for shape in ("obs_shape", "action_shape"):
        value = at(cfg, f"policy.model.{shape}")
        if value is None or isinstance(value, Mapping):
            continue
        sizes = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
        if not sizes or not _are_sizes(*sizes):
            problems.add(
                f"policy.model.{shape} must be a number of at least 1 or a list of such, "
                f"got {value!r}"
            )


def _has_players(cfg: Settings) -> bool:
    """Whether several policies may play against each other: in a league, or by a custom class."""
    types = [
        at(cfg, f"policy.{place}.type")
        for place in ("collect.collector", "eval.evaluator", "other.commander")
    ]
    return not {None, *_OF_ONE_PLAYER}.issuperset(types)


def _are_sizes(*values: object) -> bool:
    return all(is_int(value) and value >= 1 for value in values)
