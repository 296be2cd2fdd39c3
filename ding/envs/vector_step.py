"""What environments, wrappers and env managers exchange: names of types, and vector steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypedDict

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from ding.utils.types import Config, Tree

#: A space, of whatever elements.
Space: TypeAlias = spaces.Space[Any]
#: An environment of any API: gymnasium's, an old gym's, or a user's own.
AnyEnv: TypeAlias = Any
#: Makes an environment.
EnvFn: TypeAlias = Callable[..., AnyEnv]
#: An observation: an array, a nested dict of arrays, or whatever else an environment shows; or
#: columns of observations.
Obs: TypeAlias = Any
#: An action as an environment takes it.
Action: TypeAlias = Any
#: A number, or an array with one for each player.
Reward: TypeAlias = Any
#: What an environment reports about a step.
Info: TypeAlias = dict[str, Tree]
#: What ``reset`` and ``step`` of a gymnasium environment return.
EnvReset: TypeAlias = tuple[Obs, Info]
EnvStep: TypeAlias = tuple[Obs, Reward, bool, bool, Info]
#: What ``step`` returned, before anything is known about it: four or five values.
StepResult: TypeAlias = tuple[Any, ...]
#: Actions of several environments: ``[n, *action_shape]`` or a sequence of n.
Actions: TypeAlias = Sequence[Action] | np.ndarray


class ResetArgs(TypedDict, total=False):
    """What ``reset`` of a gymnasium environment takes."""

    seed: int | None
    options: Config | None


class WholeAction(np.ndarray):
    """A whole number in an array of shape ``(1,)`` that passes for a number, too.

    Environments index it, or call ``int(action)``, which numpy 2.4 takes from 0-d arrays alone.
    """

    def __int__(self) -> int:
        return int(self.item())

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.item())


def number_as_action(number: ArrayLike) -> np.ndarray:
    """A single number in the form in which environments get their actions."""
    array = np.atleast_1d(number)
    return array.view(WholeAction) if array.dtype.kind in "iu" else array


def composite_actions(columns: Mapping[str, Tree]) -> np.ndarray:
    """Actions of several parts, one by one: an object array ``[n]`` of dicts.

    `columns` has the parts, ``[n, ...]`` each, or nested dicts of such: ``action_type`` int64
    ``[n]`` and ``action_args`` float32 ``[n, A]`` of a hybrid action space, for example.
    """
    parts = [
        composite_actions(col)
        if isinstance(col, Mapping)
        else [number_as_action(part.copy()) for part in np.asarray(col)]
        for col in columns.values()
    ]
    actions = np.empty(len(parts[0]), object)
    actions[:] = [dict(zip(columns, row)) for row in zip(*parts)]
    return actions


class PlayerActions(np.ndarray):
    """Actions ``[n, players, *action_shape]``: each environment gets a list, one per player."""


@dataclass(slots=True)
class VectorStep:
    """One step of n environments, in columns.

    Attributes:
        env_ids: int64 ``[n]``, which environments stepped.
        obs: ``[n, *obs_shape]`` or a nested dict of such arrays: the observation after the step,
            at an episode's end its true last one. The manager does not write to it again.
        reward: float32 ``[n]``, or ``[n, players]``.
        done: bool ``[n]``, terminated or truncated.
        truncated: bool ``[n]``, ended from outside (a time limit): its value is bootstrapped.
        abnormal: bool ``[n]``, the environment failed and was reset; the step does not count.
        infos: By env id, the info dicts of the environments whose episode ended.
    """

    env_ids: np.ndarray
    obs: Obs
    reward: np.ndarray
    done: np.ndarray
    truncated: np.ndarray
    abnormal: np.ndarray | None = None
    infos: dict[int, Info] = field(default_factory=dict)
