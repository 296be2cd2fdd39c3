"""From what environments answered to vector steps and timesteps, checked."""

import copy
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ding.envs.env.base_env import BaseEnvTimestep, is_truncated
from ding.envs.env_manager._env_types import EnvState
from ding.envs.env_manager._obs_store import column_row, nan_position, quick_sum
from ding.envs.vector_step import VectorStep
from ding.utils.errors import DataError, EnvDataError

_FLOAT32 = np.dtype(np.float32)

# Per environment: the reward and the info as the environment gave them.
Rows = Sequence[tuple[Any, dict[str, Any]]]


@dataclass(slots=True)
class GroupStep:
    """What some environments answered to a step, in this process or from another.

    Attributes:
        ids: Which they are, in the order of all that follows.
        obs: Perhaps the environments' own arrays, good until their next ``step``; empty if they
            are in shared memory.
        rewards: As the environments gave them; ``None`` of those that failed.
        infos: As the environments gave them.
        ended: Ids of those whose episode ended.
        abnormal: Ids of those that failed and have begun a new episode.
        first: By id, the first observations of the episodes that follow.
        states: By id, those that have changed.
    """

    ids: Sequence[int]
    obs: Sequence[Any]
    rewards: Sequence[Any]
    infos: Sequence[dict[str, Any]]
    ended: Sequence[int] = ()
    abnormal: Sequence[int] = ()
    first: dict[int, Any] = field(default_factory=dict)
    states: dict[int, EnvState] = field(default_factory=dict)

    def replace(self, name: str, position: int, value: Any) -> None:
        """Change one item of a column."""
        column = getattr(self, name)
        setattr(self, name, [*column[:position], value, *column[position + 1 :]])

    def zero_abnormal(self, shape: tuple[int, ...]) -> None:
        """Give those that failed a reward of 0, in the form of the other rewards."""
        zero: Any = np.zeros(shape, np.float32) if shape else 0.0
        self.rewards = [zero if reward is None else reward for reward in self.rewards]


def merged(parts: Sequence[GroupStep], ids: list[int]) -> GroupStep:
    """The answers of several groups in one: in the order of `ids`, if it is those that answered."""
    if len(parts) == 1 and parts[0].ids == ids:
        return parts[0]
    whole = GroupStep([], [], [], [], [], [])
    columns = ("ids", "obs", "rewards", "infos")
    for part in parts:
        for name in (*columns, "ended", "abnormal"):
            getattr(whole, name).extend(getattr(part, name))
        whole.first.update(part.first)
    if whole.ids != ids:
        order = ids if set(ids) == set(whole.ids) else sorted(whole.ids)
        at = [whole.ids.index(env_id) for env_id in order]
        for name in columns:
            column = getattr(whole, name)
            setattr(whole, name, [column[position] for position in at] if column else column)
    return whole


def vector_step(env_ids: np.ndarray, obs: Any, step: GroupStep, strict: bool = True) -> VectorStep:
    """Columns of a group's step.

    Args:
        env_ids: int64 ``[n]``.
        obs: The observations as columns.
        step: Everything else.
        strict: Whether rewards have to be numbers or arrays of one shape.
    """
    n = len(env_ids)
    reward = reward_column(step.rewards, strict)
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
        count: The number of the manager's step, for the message.

    Raises:
        EnvDataError: NaN or infinity in rewards, NaN in observations; names the environment.
    """
    # The sum of finite rewards may still overflow.
    if not math.isfinite(quick_sum(step.reward)) and not np.isfinite(step.reward).all():
        finite = np.isfinite(step.reward).reshape(len(step.env_ids), -1).all(axis=1)
        position = int(finite.argmin())
        raise _bad_data(int(step.env_ids[position]), f"reward {step.reward[position]}", count)
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


def reward_column(rewards: Sequence[Any], strict: bool = True) -> np.ndarray:
    """float32 ``[n]`` or ``[n, players]``; zeros, unless `strict`, if there are other rewards."""
    try:
        column = np.array(rewards, _FLOAT32)
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
    """No environment of `count`."""
    none = np.zeros(count, bool)
    none.setflags(write=False)
    return none


def _bad_data(env_id: int, what: str, count: int) -> EnvDataError:
    return EnvDataError(
        f"env {env_id} gave {what} at the env manager's step {count}; nothing can be learned from "
        "it: look into the environment and its wrappers",
        env_id,
    )
