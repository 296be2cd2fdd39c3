"""Settings that are each fine and cannot work together."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.config.check import Problems, at
from ding.utils import PARALLEL_COLLECTOR_REGISTRY

_POSITIVE = (
    *("env.collector_env_num", "env.evaluator_env_num", "env.n_evaluator_episode"),
    *("policy.nstep", "policy.learn.batch_size", "policy.learn.update_per_collect"),
    *("policy.learn.epoch_per_collect", "policy.learn.target_update_freq"),
    *("policy.learn.learning_rate", "policy.collect.n_sample", "policy.collect.n_episode"),
    *("policy.collect.unroll_len", "policy.eval.evaluator.eval_freq"),
    *("policy.other.replay_buffer.replay_buffer_size", "policy.other.eps.decay"),
)
_FRACTIONS = (
    *("policy.discount_factor", "policy.collect.discount_factor", "policy.collect.gae_lambda"),
    *("policy.other.eps.start", "policy.other.eps.end", "policy.learn.target_theta"),
)
_MAY_BE_NONE = (
    *("policy.learn.target_update_freq", "policy.collect.n_sample", "policy.collect.n_episode"),
    *("env.collector_env_num", "env.evaluator_env_num", "env.n_evaluator_episode"),
)
# Collectors by the commander whose games they can play.
_COLLECTORS = {"solo": "zergling", "one_vs_one": "marine"}
_COUNTS = (
    *("policy.learn.learner.learner_num", "policy.collect.collector.collector_num"),
    *("policy.learn.learner.send_policy_freq", "policy.other.commander.collector_task_space"),
    *("policy.other.commander.learner_task_space", "env.collector_episode_num"),
)
_WITHOUT_PRIORITIES = ("naive", "elastic", "sequence", "episode")


def find_contradictions(
    cfg: Mapping[str, Any], complete: bool, problems: Problems, parallel: bool = False
) -> None:
    """Look through a completed config; see the messages for what is looked for.

    Args:
        complete: Whether a run is built from the config alone: then how much to collect must be
            in it.
        parallel: Whether it is the main config of a parallel run.
    """
    _check_ranges(cfg, problems)
    _check_shapes(cfg, problems)
    _check_evaluation(cfg, problems)
    _check_replay(cfg, problems)
    if parallel:
        _check_parallel(cfg, problems)
    else:
        _check_collection(cfg, complete, problems)


def _check_parallel(cfg: Mapping[str, Any], problems: Problems) -> None:
    policy = cfg.get("policy", {})
    if policy.get("on_policy"):
        type_ = str(policy.get("type")).removesuffix("_command")
        problems.add(
            f"policy {type_!r} (policy.on_policy=True) learns from what it has just collected, and "
            "parallel mode learns from a replay buffer: use an off-policy one, or serial_onpolicy"
        )
    collector, commander = (
        at(cfg, f"policy.{place}.type") for place in ("collect.collector", "other.commander")
    )
    if _COLLECTORS.get(commander, collector) != collector and collector in _COLLECTORS.values():
        problems.add(
            f"policy.other.commander.type={commander!r} needs policy.collect.collector.type="
            f"{_COLLECTORS[commander]!r}, got {collector!r}"
        )
    for path in _COUNTS:
        value = at(cfg, path)
        if value is not None and value < 1:
            problems.add(f"{path} must be at least 1, got {value!r}")
    # Without unrolling, trajectories become as long as nstep needs them.
    _check_unroll(at(cfg, "policy.nstep") or 1, at(cfg, "policy.collect.unroll_len") or 1, problems)


def _check_ranges(cfg: Mapping[str, Any], problems: Problems) -> None:
    for path in _POSITIVE:
        section, _, key = path.rpartition(".")
        value = at(cfg, path)
        if value is None and path not in _MAY_BE_NONE and key in (at(cfg, section) or {}):
            problems.add(f"{path} must be greater than 0, got None")
        elif isinstance(value, int | float) and not value > 0:
            problems.add(f"{path} must be greater than 0, got {value!r}")
    for path in _FRACTIONS:
        value = at(cfg, path)
        if isinstance(value, int | float) and not 0 <= value <= 1:
            problems.add(f"{path} must be between 0 and 1, got {value!r}")
    kind = at(cfg, "policy.other.eps.type")
    if kind not in (None, "exp", "linear"):
        problems.add(f"policy.other.eps.type must be 'exp' or 'linear', got {kind!r}")


def _check_shapes(cfg: Mapping[str, Any], problems: Problems) -> None:
    for key in ("obs_shape", "action_shape"):
        value = at(cfg, f"policy.model.{key}")
        if value is None or isinstance(value, Mapping):
            continue
        sizes = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
        if not sizes or not all(_is_size(size) for size in sizes):
            problems.add(
                f"policy.model.{key} must be a number of at least 1 or a list of such, "
                f"got {value!r}"
            )


def _is_size(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def _check_evaluation(cfg: Mapping[str, Any], problems: Problems) -> None:
    episodes, envs = at(cfg, "policy.eval.evaluator.n_episode"), at(cfg, "env.evaluator_env_num")
    if episodes is not None and envs is not None and 0 < episodes < envs:
        given = at(cfg, "env.n_evaluator_episode") == episodes
        key = "env.n_evaluator_episode" if given else "policy.eval.evaluator.n_episode"
        problems.add(
            f"{key}={episodes} is less than env.evaluator_env_num={envs}: some "
            f"environments would have no episode to run; set both to {episodes}, or raise the first"
        )


def _check_collection(cfg: Mapping[str, Any], complete: bool, problems: Problems) -> None:
    collect = at(cfg, "policy.collect") or {}
    n_sample, n_episode = collect.get("n_sample"), collect.get("n_episode")
    kind = at(cfg, "policy.collect.collector.type") or "sample"
    counted = "n_episode" if kind.startswith("episode") else "n_sample"
    if collect.get(counted) is None:
        if complete:
            problems.add(
                f"missing key policy.collect.{counted}: how much the collector {kind!r} collects "
                "between two rounds of training"
            )
        return
    if n_sample is not None and n_episode is not None:
        problems.add(
            f"policy.collect.n_sample={n_sample} and policy.collect.n_episode={n_episode} "
            f"contradict each other: keep {counted} for the collector {kind!r}"
        )
    # Collectors of parallel runs choose how long trajectories are.
    if kind in PARALLEL_COLLECTOR_REGISTRY:
        return
    if counted == "n_sample" and not at(cfg, "policy.traj_len_inf"):
        _check_window(cfg, n_sample, collect, problems)


def _check_window(
    cfg: Mapping[str, Any], n_sample: Any, collect: Mapping[str, Any], problems: Problems
) -> None:
    nstep = at(cfg, "policy.nstep") or 1
    unroll_len = collect.get("unroll_len") or 1
    envs = at(cfg, "env.collector_env_num")
    if not _check_unroll(nstep, unroll_len, problems):
        return
    if envs is None or envs < 1 or n_sample < 1 or nstep < 1:
        return
    traj_len = max(unroll_len, math.ceil(n_sample / envs))
    if nstep > traj_len:
        problems.add(
            f"policy.nstep={nstep} needs trajectories of at least {nstep} steps, but "
            f"policy.collect.n_sample={n_sample} over env.collector_env_num={envs} environments "
            f"gives {traj_len}: set n_sample to {nstep * envs} or more, or lower nstep or "
            "collector_env_num"
        )


def _check_unroll(nstep: int, unroll_len: int, problems: Problems) -> bool:
    fits = unroll_len == 1 or nstep < unroll_len
    if not fits:
        problems.add(
            f"policy.nstep={nstep} does not fit into policy.collect.unroll_len={unroll_len}: "
            "nstep must be less"
        )
    return fits


def _check_replay(cfg: Mapping[str, Any], problems: Problems) -> None:
    policy = cfg.get("policy", {})
    if policy.get("priority_IS_weight") and not policy.get("priority"):
        problems.add(
            "policy.priority_IS_weight=True needs policy.priority=True: without priorities there "
            "is nothing to weigh"
        )
    buffer = at(cfg, "policy.other.replay_buffer") or {}
    if policy.get("on_policy") or not buffer:
        return
    if policy.get("priority") and buffer.get("type") in _WITHOUT_PRIORITIES:
        problems.add(
            "policy.priority=True needs policy.other.replay_buffer.type='advanced' (or 'deque'), "
            f"got {buffer.get('type')!r}, which draws uniformly"
        )
    size, batch = buffer.get("replay_buffer_size"), at(cfg, "policy.learn.batch_size")
    if isinstance(size, int) and isinstance(batch, int) and batch > size:
        problems.add(
            f"policy.learn.batch_size={batch} is more than "
            f"policy.other.replay_buffer.replay_buffer_size={size}: no batch could ever be sampled"
        )
