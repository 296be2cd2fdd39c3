"""From what environments answered to vector steps and timesteps, checked."""

import copy
import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ding.envs.env.answers import reward_fault
from ding.envs.env.base_env import BaseEnvTimestep, is_truncated
from ding.envs.env_manager._obs_store import column_row, nan_position, quick_sum
from ding.envs.env_manager._runner import GroupStep
from ding.envs.vector_step import Obs, Reward, VectorStep
from ding.utils.errors import DataError, EnvDataError

_FLOAT32 = np.dtype(np.float32)


def vector_step(env_ids: np.ndarray, obs: Obs, step: GroupStep, strict: bool = True) -> VectorStep:
    """Columns of a group's step.

    Args:
        env_ids: int64 ``[n]``.
        obs: The observations as columns.
        step: Everything else.
        strict: Whether rewards have to be numbers or arrays of one shape.
    """
    n = len(env_ids)
    reward = reward_column(step.ids, step.rewards, strict)
    if not step.ended and not step.abnormal:
        none = _none(n)
        return VectorStep(env_ids, obs, reward, none, none)
    done, truncated = np.zeros(n, bool), np.zeros(n, bool)
    at = step.ids.index
    for position in map(at, step.ended):
        info = step.infos[position]
        done[position] = True
        truncated[position] = is_truncated(info if isinstance(info, Mapping) else info[0])
    abnormal = None
    if step.abnormal:
        abnormal = np.zeros(n, bool)
        abnormal[list(map(at, step.abnormal))] = True
    infos = {env_id: step.infos[at(env_id)] for env_id in (*step.ended, *step.abnormal)}
    return VectorStep(env_ids, obs, reward, done, truncated, abnormal, infos)


def check_step(step: VectorStep, count: int) -> VectorStep:
    """`step` itself, unless it must not be learned from.

    Args:
        step: What came.
        count: The number of the manager's step, for the message.

    Raises:
        EnvDataError: NaN or infinity in rewards, NaN in observations; names the environment.
    """
    # The sum of finite rewards may still overflow.
    if not math.isfinite(quick_sum(step.reward)) and not np.isfinite(step.reward).all():
        finite = np.isfinite(step.reward).reshape(len(step.env_ids), -1).all(axis=1)
        position = int(finite.argmin())
        what = f"reward {step.reward[position]}"
        if np.isnan(step.reward[position]).any():
            what += " (NaN or None)"
    else:
        nan_at = nan_position(step.obs)
        if nan_at is None:
            return step
        position, what = nan_at, "an observation with NaN"
    env_id = int(step.env_ids[position])
    raise EnvDataError(
        f"env {env_id} gave {what} at the env manager's step {count}; nothing can be learned from "
        "it: look into the environment and its wrappers",
        env_id,
    )


def timesteps(step: VectorStep, given: GroupStep) -> dict[int, BaseEnvTimestep]:
    """Timesteps by env id; observations and rewards are copies."""
    rows = zip(step.env_ids.tolist(), given.rewards, step.done.tolist(), given.infos)
    return {
        env_id: BaseEnvTimestep(column_row(step.obs, i), copy.copy(reward), done, info)
        for i, (env_id, reward, done, info) in enumerate(rows)
    }


def reward_column(
    env_ids: Sequence[int], rewards: Sequence[Reward] | np.ndarray, strict: bool = True
) -> np.ndarray:
    """float32 ``[n]`` or ``[n, players]``; zeros, unless `strict`, if there are other rewards.

    Raises:
        EnvDataError: A reward is no number; names the environment.
    """
    try:
        column = np.array(rewards, _FLOAT32)
    except (TypeError, ValueError) as error:
        faults = list(map(reward_fault, rewards))
        if not any(faults) and all(np.size(reward) == 1 for reward in rewards):
            # some numbers, some arrays
            return np.array([np.ravel(reward)[0] for reward in rewards], np.float32)
        if not strict:
            return np.zeros(len(rewards), np.float32)
        for env_id, fault in zip(env_ids, faults):
            if fault is not None:
                raise EnvDataError(f"env {env_id}: {fault}", env_id) from None
        shapes = [np.shape(reward) for reward in rewards]
        raise DataError(
            f"rewards of shapes {shapes} do not make a column: each has to be a number, or an "
            "array of one number per player"
        ) from error
    if column.ndim > 1 and column.shape[-1] == 1:
        return column[..., 0]
    return column


@functools.cache
def _none(count: int) -> np.ndarray:
    """No environment of `count`."""
    none = np.zeros(count, bool)
    none.setflags(write=False)
    return none
