"""Actors that see what their agent sees, and Q-value critics that see all."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.head import flat_size
from ding.model.template.qac import ContinuousQAC, DiscreteQAC
from ding.torch_utils.network.activation import Activation
from ding.utils.registry_factory import MODEL_REGISTRY


class _OfAgents:
    """Takes observations ``{'agent_state': [B, agents, n], 'global_state': [B, m]}``.

    ``global_state`` may also be told for each agent, ``[B, agents, m]``. All agents share one actor
    and one critic; outputs are ``[B, agents, ...]``.
    """

    def actor_feature(self, x: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return x["agent_state"]

    def critic_feature(self, x: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return state_of_each(x)


@MODEL_REGISTRY.register("discrete_maqac")
class DiscreteMAQAC(_OfAgents, DiscreteQAC):
    """Discrete actions of several agents; see `_OfAgents` and `DiscreteQAC`."""

    def __init__(
        self,
        agent_obs_shape: int,
        global_obs_shape: int,
        action_shape: int | Sequence[int],
        twin_critic: bool = False,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
    ) -> None:
        super().__init__(
            _by_part(agent_obs_shape, global_obs_shape),
            action_shape,
            twin_critic,
            actor_head_hidden_size,
            actor_head_layer_num,
            critic_head_hidden_size,
            critic_head_layer_num,
            activation,
            norm_type,
        )


@MODEL_REGISTRY.register("continuous_maqac")
class ContinuousMAQAC(_OfAgents, ContinuousQAC):
    """Continuous actions of several agents; see `_OfAgents` and `ContinuousQAC`."""

    def __init__(
        self,
        agent_obs_shape: int,
        global_obs_shape: int,
        action_shape: int | Sequence[int],
        action_space: str,
        twin_critic: bool = False,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
    ) -> None:
        super().__init__(
            _by_part(agent_obs_shape, global_obs_shape),
            action_shape,
            action_space,
            twin_critic,
            actor_head_hidden_size,
            actor_head_layer_num,
            critic_head_hidden_size,
            critic_head_layer_num,
            activation,
            norm_type,
        )


def state_of_each(x: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The ``global_state`` for each agent, ``[B, agents, m]``."""
    agents, state = x["agent_state"], x["global_state"]
    if state.dim() == agents.dim():
        return state
    return state.unsqueeze(-2).expand(*agents.shape[:-1], -1)


def _by_part(agent_obs_shape: Any, global_obs_shape: Any) -> dict[str, int]:
    shapes = {"agent_state": agent_obs_shape, "global_state": global_obs_shape}
    return {name: flat_size(shape) for name, shape in shapes.items()}
