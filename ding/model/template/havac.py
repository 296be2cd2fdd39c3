"""Actors and critics of several agents, each with networks of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.data import tree_join, tree_map
from ding.model.common.encoder import build_encoder
from ding.model.common.head import RegressionHead, build_policy_head
from ding.model.template.maqac import state_of_each
from ding.model.template.mavac import AgentActorCritic
from ding.torch_utils.network.activation import Activation
from ding.utils.errors import ConfigError, check_one_of
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("havac")
class HAVAC(nn.Module):
    """Agents that share nothing (Kuba et al. 2022, HAPPO): an `AgentActorCritic` for each.

    Takes ``{'agent_state': [B, agents, n], 'global_state': [B, m] or [B, agents, m]}``, and
    ``action_mask`` ``[B, agents, N]``; outputs are those of all agents, ``[B, agents, ...]``.

    Args:
        use_lstm: Not to be had; ``lstm_type`` and ``res_link`` belong to it.
    """

    mode = AgentActorCritic.mode
    action_spaces = ("discrete", "continuous")

    def __init__(
        self,
        agent_obs_shape: int | Sequence[int],
        global_obs_shape: int | Sequence[int],
        action_shape: int,
        agent_num: int,
        use_lstm: bool = False,
        lstm_type: str = "gru",
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 2,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        action_space: str = "discrete",
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        sigma_type: str | None = "independent",
        bound_type: str | None = None,
        res_link: bool = False,
    ) -> None:
        super().__init__()
        check_one_of("HAVAC: action_space", action_space, self.action_spaces)
        if use_lstm:
            raise ConfigError("HAVAC: use_lstm=True; its networks have no memory: set it to False")
        self.agent_num = agent_num
        sizes = encoder_hidden_size_list
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        width = sizes[-1]

        gaussian = {"sigma_type": sigma_type, "bound_type": bound_type}
        self.agent_models = nn.ModuleList(
            AgentActorCritic(
                build_encoder(agent_obs_shape, sizes, activation, norm_type),
                build_encoder(global_obs_shape, sizes, activation, norm_type),
                build_policy_head(
                    *(action_space, action_shape, width, actor_head_hidden_size, gaussian),
                    layer_num=actor_head_layer_num,
                    **common,
                ),
                RegressionHead(
                    width, 1, critic_head_layer_num, hidden_size=critic_head_hidden_size, **common
                ),
            )
            for _ in range(agent_num)
        )

    def forward(self, inputs: Mapping[str, torch.Tensor], mode: str) -> dict:
        """What the method of each agent that ``mode`` names says, side by side."""
        outputs = [
            model(self.seen_by(agent, inputs), mode=mode)
            for agent, model in enumerate(self.agent_models)
        ]
        return tree_join(lambda leaves: torch.stack(leaves, dim=1), outputs)

    @staticmethod
    def seen_by(agent: int, x: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """One agent's part of the observations."""
        return tree_map(lambda leaf: leaf[:, agent], {**x, "global_state": state_of_each(x)})
