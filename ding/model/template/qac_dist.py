"""Actors with a distributional critic (D4PG) or an ensemble of critics (EDAC)."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from ding.model.common.dense import linear_layers
from ding.model.common.distributional_head import DistributionHead
from ding.model.common.head import (
    column,
    flat_size,
    vector_size,
)
from ding.model.template.actor_critic import ByMode, continuous_actor, continuous_output
from ding.torch_utils.network.activation import Activation, activation_layers
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("qac_dist")
class QACDIST(ByMode):
    """Continuous actions: an actor, and a critic that predicts probabilities of ``n_atom`` returns.

    Args:
        action_space: ``'regression'``: one action, in (-1, 1).
        critic_head_type: ``'categorical'``: returns from ``v_min`` to ``v_max``.
    """

    mode = ["compute_actor", "compute_critic"]

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        action_space: str = "regression",
        critic_head_type: str = "categorical",
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        v_min: float | None = -10,
        v_max: float | None = 10,
        n_atom: int | None = 51,
    ) -> None:
        super().__init__()
        for name, value, known in (
            ("action_space", action_space, "regression"),
            ("critic_head_type", critic_head_type, "categorical"),
        ):
            if value != known:
                raise ConfigError(f"QACDIST: {name} is {value!r}; it has {known!r} only")
        obs_size, action_size = vector_size(obs_shape, "QACDIST"), flat_size(action_shape)
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        sizes = (obs_size, actor_head_hidden_size)
        self.actor = continuous_actor(
            action_space, sizes, action_shape, actor_head_layer_num, **common
        )
        width = critic_head_hidden_size
        atoms: dict[str, Any] = {"n_atom": n_atom, "v_min": v_min, "v_max": v_max}
        self.critic = nn.Sequential(
            *linear_layers([obs_size + action_size, width], **common),
            DistributionHead(width, 1, critic_head_layer_num, **atoms, **common),
        )

    def compute_actor(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'action': [B, A]}``."""
        return continuous_output(self.actor(inputs), inputs)

    def compute_critic(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """``{'q_value': [B], 'distribution': [B, n_atom]}``.

        Args:
            inputs: ``obs``, and ``action`` ``[B, A]`` (or ``[B]`` for a single dimension).
        """
        action = column(inputs["action"], inputs["obs"])
        output = self.critic(torch.cat([inputs["obs"], action], dim=-1))
        return {
            "q_value": output["logit"].squeeze(-1),
            "distribution": output["distribution"].squeeze(-2),
        }


@MODEL_REGISTRY.register("edac")
class EDAC(ByMode):
    """A Gaussian actor as in `ContinuousQAC`, and ``ensemble_num`` critics in one pass.

    Args:
        ensemble_num: Number of critics.
        actor_head_layer_num: Hidden layers after the actor's first one.
        critic_head_layer_num: Number of hidden layers of a critic.
        kwargs: ``twin_critic`` and ``action_space`` of `ContinuousQAC`, which are ignored.
    """

    mode = ["compute_actor", "compute_critic"]

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        ensemble_num: int = 2,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        **kwargs: Any,
    ) -> None:
        if ensemble_num < 1:
            raise ConfigError(f"EDAC: ensemble_num is {ensemble_num}; expected at least 1")
        if unknown := sorted(kwargs.keys() - {"twin_critic", "action_space"}):
            raise ConfigError(f"EDAC takes no {', '.join(unknown)}: remove them from policy.model")
        if norm_type is not None:
            raise ConfigError(f"EDAC: norm_type is {norm_type!r}; its critics have no norm")
        super().__init__()
        obs_size, action_size = vector_size(obs_shape, "EDAC"), flat_size(action_shape)
        self.actor = continuous_actor(
            "reparameterization",
            (obs_size, actor_head_hidden_size),
            action_shape,
            actor_head_layer_num,
            activation=activation,
        )
        sizes = [obs_size + action_size, *[critic_head_hidden_size] * critic_head_layer_num]
        self.critic = EnsembleMLP(ensemble_num, sizes, 1, activation)

    def compute_actor(self, obs: torch.Tensor) -> dict[str, Any]:
        """``{'logit': [mu, sigma]}``, ``[B, A]`` each."""
        return continuous_output(self.actor(obs), obs)

    def compute_critic(self, inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
        """``{'q_value': [ensemble_num, B]}``.

        Args:
            inputs: ``obs`` ``[B, obs_shape]`` and ``action`` ``[B, A]``, or both with a first
                dimension of the size ``ensemble_num``, separate for each critic.
        """
        x = torch.cat([inputs["obs"], inputs["action"]], -1)
        return {"q_value": self.critic(x).squeeze(-1)}


class EnsembleLinear(nn.Module):
    """``E`` linear layers in one: ``[E, B, in]`` (or ``[B, in]``, the same for all) to
    ``[E, B, out]``. Each is initialised as an ``nn.Linear``.

    Parameters have the shapes of old checkpoints, which are those of a grouped convolution:
    ``weight`` ``[E * out, in, 1]``, ``bias`` ``[E * out]``, layer by layer.
    """

    def __init__(self, ensemble_num: int, in_features: int, out_features: int) -> None:
        super().__init__()
        self.shape = ensemble_num, out_features, in_features
        self.weight = nn.Parameter(torch.empty(ensemble_num * out_features, in_features, 1))
        self.bias = nn.Parameter(torch.empty(ensemble_num * out_features))
        bound = 1 / math.sqrt(in_features)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        number, out, _ = self.shape
        if x.dim() == 2:
            x = x.expand(number, -1, -1)
        weight = self.weight.view(self.shape).transpose(1, 2)
        return torch.baddbmm(self.bias.view(number, 1, out), x, weight)


class EnsembleMLP(nn.Module):
    """``ensemble_num`` networks of the same sizes; ``sizes`` are the widths before the output."""

    def __init__(
        self, ensemble_num: int, sizes: list[int], output_size: int, activation: Activation
    ) -> None:
        super().__init__()
        layers = [
            nn.Sequential(EnsembleLinear(ensemble_num, *pair), *activation_layers(activation))
            for pair in pairwise(sizes)
        ]
        last = nn.Sequential(EnsembleLinear(ensemble_num, sizes[-1], output_size))
        self.pred = nn.Sequential(*layers, last)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[E, B, sizes[0]]`` or ``[B, sizes[0]]`` to ``[E, B, output_size]``."""
        return self.pred(x)
