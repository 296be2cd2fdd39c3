"""Types of an update's data: batches of samples, network outputs, losses and logs.

Batches are dicts of tensors with declared keys, so that the type of a policy's `_learn` shows what
it reads. Samples of a custom policy may have more keys.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, TypedDict

import numpy as np
from torch import Tensor

#: Observations ``[B, *obs_shape]``, or nested dicts of them.
Obs: TypeAlias = Any
#: Actions ``[B]`` or ``[B, A]``; a dict in hybrid spaces, ``[B, K]`` for K independent choices.
Action: TypeAlias = Any
#: Exploration rate: one number, or one for each environment.
Eps: TypeAlias = float | Tensor
#: Arrays of trajectories or samples by name, with the same leading length.
Arrays: TypeAlias = dict[str, Any]
#: One transition or sample as a dict.
Row: TypeAlias = dict[str, Any]
#: A network, possibly in wrappers.
Network: TypeAlias = Any
#: Network outputs for a batch, by name: a tensor, or a list with one for each part of an action.
Output: TypeAlias = dict[str, Any]
#: Log of an update: numbers by name; ``priority`` ``[B]`` if samples get new priorities.
Log: TypeAlias = dict[str, Any]
#: Samples in any form: `ding.data.Columns`, a list of rows, or a dict of tensors.
Samples: TypeAlias = Any


class _Samples(TypedDict):
    obs: Obs
    next_obs: Obs
    action: Action
    reward: Tensor
    done: Tensor
    weight: Tensor | None


class Steps(_Samples, total=False):
    """Samples of single steps: ``reward`` ``[nstep, B]``, other scalars ``[B]``."""

    #: Discount of the bootstrap value; higher for samples with fewer than ``nstep`` rewards.
    value_gamma: Tensor
    #: 1 for demonstrations; the observation after the first of the n steps (DQfD).
    is_expert: Tensor
    next_obs_1step: Obs
    done_1step: Tensor
    #: Importance weights of prioritised samples.
    IS: Tensor
    #: Advantages of the actions (IQL).
    advantage: Tensor


#: Separate from `Rollout`, since ``return`` cannot be a class attribute.
_Returns = TypedDict("_Returns", {"return": Tensor}, total=False)


class Rollout(_Samples, _Returns, total=False):
    """Trajectories, one after the other: ``[N]``, for several agents ``[N, agents]``."""

    logit: Any
    value: Tensor
    adv: Tensor
    #: Observations in their original form (PPG).
    seen: Obs
    traj_flag: Tensor
    step_id: Tensor
    #: HAPPO: the probability ratio, new to old, of the agents updated before this one.
    factor: Tensor


class Sequences(_Samples, total=False):
    """Sequences, time first: ``obs`` ``[T + 1, B, ...]``, scalars per step ``[T, B]``.

    ``mask`` is 0 at padding; ``weight`` is ``[B]``, and ``[T, B]`` in unrolled policies.
    """

    mask: Tensor
    prev_state: Any
    is_expert: Tensor
    eps: Tensor
    logit: Any
    discount: Tensor


class Loss(NamedTuple):
    """The loss to minimise, the priority of each sample ``[B]``, and scalars to log."""

    loss: Tensor
    priority: Tensor
    log: Mapping[str, Tensor] = {}


class CriticLoss(NamedTuple):
    """The loss to minimise, the priorities ``[B]``, each critic's loss, and scalars to log."""

    loss: Tensor
    priority: Tensor
    losses: list[Tensor]
    log: Mapping[str, Tensor] = {}


#: The loss, the errors ``[T, B]``, and scalars to log.
TeamLoss: TypeAlias = tuple[Tensor, Tensor, dict[str, Tensor]]
#: The loss, and scalars to log.
LoggedLoss: TypeAlias = tuple[Tensor, Log]
#: The losses by name, and other scalars to log.
Losses: TypeAlias = tuple[dict[str, Tensor], Log]
#: Lengths of trajectories, int64 ``[n_traj]``.
Lengths: TypeAlias = np.ndarray
