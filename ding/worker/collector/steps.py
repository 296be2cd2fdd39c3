"""What collectors and evaluators are given and give."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

#: The namedtuple of functions that is a policy's collect or eval mode; users make their own.
Mode: TypeAlias = Any
#: A `BaseEnvManager`, or what offers as much of it as it says it does.
Envs: TypeAlias = Any
#: An array, or nested mappings of arrays.
Tree: TypeAlias = Any
#: What an environment says of a step, by name.
Info: TypeAlias = Mapping[str, Any]
#: Keyword arguments of a policy's ``forward``.
Kwargs: TypeAlias = Mapping[str, Any]
#: Part of a config.
Config: TypeAlias = Mapping[str, Any]
#: What a `state_dict` gives: arrays, numbers and containers of them.
State: TypeAlias = dict[str, Any]
#: `Columns` or a list of rows.
Samples: TypeAlias = list[dict[str, Any]]
#: Samples, and how many of them belong to each trajectory.
Harvest: TypeAlias = tuple[Samples, list[int]]
#: A policy's judge's result: a number, or whatever a metric makes of the data.
Result: TypeAlias = Any
#: Called at each episode's end: source, env id, return, length, envstep, train_iter.
OnEpisode: TypeAlias = Callable[[str, int, float, int, int, int], None]
#: Takes the transitions of trajectories by name, ``[N, ...]`` each, and the trajectories' lengths,
#: int64 ``[M]``; returns both, rewritten.
OnTrajectories: TypeAlias = Callable[
    [dict[str, Any], np.ndarray], tuple[dict[str, Any], np.ndarray]
]
#: Called with a file name when the result is the best so far.
SaveFn: TypeAlias = Callable[[str], object] | None
#: One of these for all players, or one for each.
PlayersKwargs: TypeAlias = Kwargs | Sequence[Kwargs] | None

#: The ``seed`` of a transition for which none was given, where others have one.
NO_SEED = -1


class VideoLog(Protocol):
    """The part of a TensorBoard writer that takes what evaluators render."""

    def add_video(self, tag: str, vid_tensor: np.ndarray, global_step: int) -> object: ...


@dataclass
class Player:
    """One policy's part in a rollout.

    Attributes:
        mode: The policy's collect or eval mode.
        kwargs: Keyword arguments of its ``forward``.
        train_iter: Training iteration of its weights; each transition carries it.
        level_seeds: Seed of each environment's level, if transitions are to carry it.
        wanted: Whether anybody wants its data.
    """

    mode: Mode
    kwargs: Kwargs = field(default_factory=dict)
    train_iter: int = 0
    level_seeds: Sequence[int] | None = None
    wanted: bool = True


def attribute(mode: Mode, name: str) -> Result:
    """An attribute of a policy; ``None`` if a policy from elsewhere does not have it."""
    try:
        return mode.get_attribute(name)
    except AttributeError:
        return None


def sample_counts(mode: Mode, lengths: np.ndarray) -> np.ndarray:
    """How many training samples a policy makes of trajectories, int64 ``[n]``.

    Policies with their own ``get_train_sample`` are expected to make a sample of every
    ``unroll_len`` steps, and one of the rest.

    Args:
        lengths: Transitions of each trajectory, int64 ``[n]``.
    """
    batched = getattr(mode, "batched", None)
    if batched is not None:
        return np.asarray(batched.count_samples(lengths))
    return -(-lengths // (attribute(mode, "unroll_len") or 1))
