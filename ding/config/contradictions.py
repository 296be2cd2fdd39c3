"""Values that no run can have, and settings that are each fine and cannot work together."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.config.adapt import counts_of
from ding.config.check import Problems, at

_POSITIVE = (
    *("env.collector_env_num", "env.evaluator_env_num", "env.n_evaluator_episode"),
    *("policy.nstep", "policy.learn.batch_size", "policy.learn.update_per_collect"),
    *("policy.learn.epoch_per_collect", "policy.learn.target_update_freq"),
    *("policy.learn.learning_rate", "policy.collect.n_sample", "policy.collect.n_episode"),
    *("policy.collect.unroll_len", "policy.unroll_len", "policy.eval.evaluator.eval_freq"),
    *("policy.other.replay_buffer.replay_buffer_size", "policy.other.eps.decay"),
)
_FRACTIONS = (
    *("policy.discount_factor", "policy.collect.discount_factor", "policy.collect.gae_lambda"),
    *("policy.other.eps.start", "policy.other.eps.end", "policy.learn.target_theta"),
    *("policy.other.commander.eval_share", "policy.other.commander.greedy_share"),
)
_MAY_BE_NONE = (
    *("policy.learn.target_update_freq", "policy.collect.n_sample", "policy.collect.n_episode"),
    *("env.collector_env_num", "env.evaluator_env_num", "env.n_evaluator_episode"),
    "policy.unroll_len",
)
# Collectors by the commander whose games they can play.
_COLLECTORS = {"solo": "zergling", "one_vs_one": "marine"}
_COUNTS = (
    *("policy.learn.learner.learner_num", "policy.collect.collector.collector_num"),
    *("policy.learn.learner.send_policy_freq", "policy.other.commander.learner_task_space"),
    "env.collector_episode_num",
)


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
    space = at(cfg, "policy.other.commander.collector_task_space")
    if space is not None and space < 0:
        problems.add(
            f"policy.other.commander.collector_task_space must be 0 or more, got {space!r}"
        )


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
    goal = at(cfg, "env.stop_value")
    goals = goal if isinstance(goal, list | tuple | np.ndarray) and len(goal) else [goal]
    if goal is not None and not all(_is_number(one) for one in goals):
        problems.add(
            f"env.stop_value must be a number, or a list of numbers (one for each player), got "
            f"{type(goal).__name__} {goal!r}"
        )
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def _check_collection(cfg: Mapping[str, Any], complete: bool, problems: Problems) -> None:
    kind = at(cfg, "policy.collect.collector.type") or "sample"
    counted, _ = counts_of(kind)
    if complete and at(cfg, f"policy.collect.{counted}") is None:
        problems.add(
            f"missing key policy.collect.{counted}: how much the collector {kind!r} collects "
            "between two rounds of training"
        )
