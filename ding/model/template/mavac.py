"""Actor and critic of several agents, for on-policy policies."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.blocks import linear_layers
from ding.model.common.head import (
    DiscreteHead,
    RegressionHead,
    ReparameterizationHead,
    build_discrete_head,
)
from ding.model.template.actor_critic import ActorCritic
from ding.model.template.maqac import state_of_each
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY

# As good as impossible, and still a number: entropies and ratios are made of it.
_MASKED = -1e8


@MODEL_REGISTRY.register("mavac")
class MAVAC(ActorCritic):
    """One actor and one critic that all agents share (Yu et al. 2022, MAPPO).

    Takes ``{'agent_state': [B, agents, n], 'global_state': [B, m] or [B, agents, m]}``, and
    ``action_mask`` ``[B, agents, N]`` with zeros where an action is not to be had. ``logit`` is
    ``[B, agents, N]``, or ``{'mu', 'sigma'}`` of ``[B, agents, action_shape]``; ``value``
    ``[B, agents]``.

    Args:
        encoder: An encoder of ``agent_state`` and one of ``global_state``, of the widths
            ``actor_head_hidden_size`` and ``critic_head_hidden_size``.
    """

    mode = ["compute_actor", "compute_critic", "compute_actor_critic"]
    action_spaces = ("discrete", "continuous")

    def __init__(
        self,
        agent_obs_shape: int | Sequence[int],
        global_obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        agent_num: int,
        actor_head_hidden_size: int = 256,
        actor_head_layer_num: int = 2,
        critic_head_hidden_size: int = 512,
        critic_head_layer_num: int = 1,
        action_space: str = "discrete",
        activation: nn.Module | None = nn.ReLU(),
        norm_type: str | None = None,
        sigma_type: str | None = "independent",
        bound_type: str | None = None,
        encoder: Sequence[nn.Module] | None = None,
    ) -> None:
        if action_space not in self.action_spaces:
            raise ConfigError(
                f"MAVAC: action_space is {action_space!r}; expected one of {self.action_spaces}"
            )
        if encoder is None:
            sizes = (
                [_size(agent_obs_shape), actor_head_hidden_size],
                [_size(global_obs_shape), critic_head_hidden_size],
            )
            encoder = [nn.Sequential(*linear_layers(s, activation, norm_type)) for s in sizes]
        super().__init__(*encoder)
        self.action_space = action_space
        self.agent_num = agent_num
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        self.critic_head = RegressionHead(
            critic_head_hidden_size, 1, critic_head_layer_num, **common
        )
        common["layer_num"] = actor_head_layer_num
        if action_space == "discrete":
            self.actor_head = build_discrete_head(
                DiscreteHead, actor_head_hidden_size, action_shape, **common
            )
        else:
            self.actor_head = ReparameterizationHead(
                actor_head_hidden_size,
                _size(action_shape),
                sigma_type=sigma_type,
                bound_type=bound_type,
                **common,
            )

    def forward(self, inputs: Mapping[str, torch.Tensor], mode: str) -> dict:
        """Runs the method that ``mode`` names, one of `MAVAC.mode`."""
        return self.run_mode(mode, inputs)

    def compute_actor(self, x: Mapping[str, torch.Tensor]) -> dict:
        """``{'logit'}``; masked actions have next to no probability."""
        output = self.actor_head(self.actor_encoder(x["agent_state"]))
        if self.action_space == "continuous":
            return {"logit": output}
        logit = output["logit"]
        if "action_mask" in x:
            logit = logit.masked_fill(x["action_mask"] == 0, _MASKED)
        return {"logit": logit}

    def compute_critic(self, x: Mapping[str, torch.Tensor]) -> dict:
        """``{'value'}``."""
        return {"value": self.critic_head(self.critic_encoder(state_of_each(x)))["pred"]}

    def compute_actor_critic(self, x: Mapping[str, torch.Tensor]) -> dict:
        """``{'logit', 'value'}``."""
        return {**self.compute_actor(x), **self.compute_critic(x)}


def _size(shape: int | Sequence[int]) -> int:
    return shape if isinstance(shape, int) else math.prod(shape)
