"""The scalars of a finished collector task."""

import math
from collections.abc import Mapping
from typing import Any

from ding.worker.coordinator.reported_values import mean_return

_NAMES = (
    *("train_iter", "real_episode_count", "step_count", "sample_count", "duration"),
    *("avg_step_per_episode", "avg_sample_per_episode", "avg_time_per_episode"),
    *("avg_time_per_step", "avg_time_per_train_sample", "reward_mean", "reward_std"),
)
#: What there is nothing to say of without an episode.
_OF_EPISODES = frozenset(
    {
        *("avg_step_per_episode", "avg_sample_per_episode", "avg_time_per_episode"),
        *("reward_mean", "reward_std"),
    }
)


def write_scalars(
    tb_logger: Any, is_eval: bool, info: Mapping[str, Any], learner_step: int, envstep: int
) -> None:
    """Write a finish info under ``collector_iter/``, ``collector_step/``, or ``evaluator_...``.

    Args:
        tb_logger: Has ``add_scalar(tag, value, step)``.
        learner_step: Updates so far, if the info does not tell ``train_iter``.
        envstep: Env steps so far.
    """
    source = "evaluator" if is_eval else "collector"
    train_iter = info.get("train_iter")
    if isinstance(train_iter, bool) or not isinstance(train_iter, int) or train_iter < 0:
        train_iter = learner_step
    has_return = mean_return(info, is_eval) is not None
    for name in _NAMES:
        if name in _OF_EPISODES and not has_return:
            continue
        value = info.get(name)
        if isinstance(value, int | float) and math.isfinite(value):
            tag = "episode_count" if name == "real_episode_count" else name
            tb_logger.add_scalar(f"{source}_iter/{tag}", value, train_iter)
            tb_logger.add_scalar(f"{source}_step/{tag}", value, envstep)
