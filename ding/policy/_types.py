"""The data of an update: samples as batches, outputs of networks, losses and logs.

Dicts of tensors with declared keys, so that a policy's `_learn` says what it reads. Samples of a
user's own policy may have more.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, TypedDict

import numpy as np
from torch import Tensor

#: Observations ``[B, *obs_shape]``, or nested dicts of them.
Obs: TypeAlias = Any
#: Actions ``[B]`` or ``[B, A]``; of hybrid spaces a dict, of several choices ``[B, K]``.
Action: TypeAlias = Any
#: Exploration rate: one number, or one for each environment.
Eps: TypeAlias = float | Tensor
#: Trajectories or samples as arrays of one leading length, by name.
Arrays: TypeAlias = dict[str, Any]
#: One transition or sample, by name.
Row: TypeAlias = dict[str, Any]
#: A network, or wrappers around one.
Network: TypeAlias = Any
#: Outputs of a network for a batch, by name: a tensor, or one for each part of an action.
Output: TypeAlias = dict[str, Any]
#: What an update logs: numbers by name; ``priority`` ``[B]`` of samples that get new ones.
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
    """Samples of single steps: ``reward`` ``[nstep, B]``, all other numbers ``[B]``."""

    #: Factor of the value that follows, where fewer than ``nstep`` rewards were to be had.
    value_gamma: Tensor
    #: 1 for demonstrations; what follows the first of the steps (DQfD).
    is_expert: Tensor
    next_obs_1step: Obs
    done_1step: Tensor
    #: Importance weights of prioritised samples.
    IS: Tensor
    #: How much better than expected actions were (IQL).
    advantage: Tensor


#: Of rollouts; a class cannot have an attribute of this name.
_Returns = TypedDict("_Returns", {"return": Tensor}, total=False)


class Rollout(_Samples, _Returns, total=False):
    """Trajectories, one after the other: ``[N]``, with several agents ``[N, agents]``."""

    logit: Any
    value: Tensor
    adv: Tensor
    #: Observations in the form in which they came (PPG).
    seen: Obs
    traj_flag: Tensor
    step_id: Tensor
    #: Of HAPPO: the probability ratio of the agents updated before this one, new to old.
    factor: Tensor


class Sequences(_Samples, total=False):
    """Sequences, time first: ``obs`` ``[T + 1, B, ...]``, numbers of a step ``[T, B]``.

    ``mask`` is 0 at padding; ``weight`` is ``[B]``, of unrolled policies ``[T, B]``.
    """

    mask: Tensor
    prev_state: Any
    is_expert: Tensor
    eps: Tensor
    logit: Any
    discount: Tensor


class Loss(NamedTuple):
    """What is minimised, the priority of each sample ``[B]``, and scalars to log."""

    loss: Tensor
    priority: Tensor
    log: Mapping[str, Tensor] = {}


class CriticLoss(NamedTuple):
    """What is minimised, the priority of each sample ``[B]``, each critic's loss, and scalars."""

    loss: Tensor
    priority: Tensor
    losses: list[Tensor]
    log: Mapping[str, Tensor] = {}


#: The loss, the errors ``[T, B]``, and what to log.
TeamLoss: TypeAlias = tuple[Tensor, Tensor, dict[str, Tensor]]
#: The loss, and what to log.
LoggedLoss: TypeAlias = tuple[Tensor, Log]
#: The loss, by name, and what else to log.
Losses: TypeAlias = tuple[dict[str, Tensor], Log]
#: Lengths of trajectories, int64 ``[n_traj]``.
Lengths: TypeAlias = np.ndarray
