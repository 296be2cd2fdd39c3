"""From what environments answered to vector steps and timesteps, checked."""

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.env.base_env import BaseEnvTimestep, is_truncated
from ding.envs.env_manager._env_types import (
    GroupStep,
)
from ding.envs.env_manager._obs_store import (
    ObjectStore,
    ObsColumns,
    column_row,
    nan_position,
    quick_sum,
)
from ding.envs.vector_step import VectorStep
from ding.utils.errors import DataError, EnvDataError

# Per environment: the reward and the info as the environment gave them.
Rows = Sequence[tuple[Any, dict[str, Any]]]


def vector_step(env_ids: np.ndarray, obs: Any, step: GroupStep, strict: bool = True) -> VectorStep:
    """Columns of a group's step.

    Args:
        env_ids: int64 ``[n]``.
        obs: The observations as columns, or a list of those that do not fit columns.
        step: Everything else.
        strict: Whether rewards have to be numbers or arrays of one shape.
    """
    n = len(env_ids)
    reward = reward_column(step.rewards, strict)
    if not step.ended and not step.abnormal:
        none = _none(n)
        return VectorStep(env_ids, obs, reward, none, none)
    done, truncated = np.zeros(n, bool), np.zeros(n, bool)
    done[step.ended] = True
    for position in step.ended:
        info = step.infos[position]
        truncated[position] = is_truncated(info if isinstance(info, Mapping) else info[0])
    abnormal = None
    if step.abnormal:
        abnormal = np.zeros(n, bool)
        abnormal[step.abnormal] = True
    infos = {int(env_ids[p]): step.infos[p] for p in (*step.ended, *step.abnormal)}
    return VectorStep(env_ids, obs, reward, done, truncated, abnormal, infos)


def check_step(step: VectorStep, store: ObsColumns | ObjectStore, count: int) -> VectorStep:
    """`step` itself, unless it must not be learned from.

    Args:
        store: Where the observations are, if they are not copies.
        count: The number of the manager's step, for the message.

    Raises:
        EnvDataError: NaN or infinity in rewards, NaN in observations; names the environment.
    """
    # The sum of finite rewards may still overflow.
    if not -np.inf < quick_sum(step.reward) < np.inf and not np.isfinite(step.reward).all():
        finite = np.isfinite(step.reward).reshape(len(step.env_ids), -1).all(axis=1)
        position = int(finite.argmin())
        raise _bad_data(int(step.env_ids[position]), f"reward {step.reward[position]}", count)
    if isinstance(store, ObsColumns) and step.obs is store.view():
        nan_at = store.nan_row()
    else:
        nan_at = nan_position(step.obs)
    if nan_at is not None:
        raise _bad_data(int(step.env_ids[nan_at]), "an observation with NaN", count)
    return step


def timesteps(step: VectorStep, rows: Rows) -> dict[int, BaseEnvTimestep]:
    """Timesteps by env id; observations and rewards are copies."""
    done = step.done.tolist()
    return {
        env_id: BaseEnvTimestep(column_row(step.obs, i), copy.copy(reward), done[i], info)
        for i, (env_id, (reward, info)) in enumerate(zip(step.env_ids.tolist(), rows))
    }


def reward_column(rewards: Sequence[Any], strict: bool) -> np.ndarray:
    """float32 ``[n]`` or ``[n, players]``; zeros, unless `strict`, if there are other rewards."""
    try:
        column = np.array(rewards, np.float32)
    except (TypeError, ValueError) as error:
        if all(np.size(reward) == 1 for reward in rewards):  # some numbers, some arrays
            return np.array([np.ravel(reward)[0] for reward in rewards], np.float32)
        if not strict:
            return np.zeros(len(rewards), np.float32)
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
    """No environment of so many."""
    none = np.zeros(count, bool)
    none.setflags(write=False)
    return none


def _bad_data(env_id: int, what: str, count: int) -> EnvDataError:
    return EnvDataError(
        f"env {env_id} gave {what} at the env manager's step {count}; nothing can be learned from "
        "it: look into the environment and its wrappers",
        env_id,
    )
