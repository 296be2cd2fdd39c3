"""Actor-critics of agents for on-policy policies: shared (MAVAC) or separate (HAVAC)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.data import tree_join, tree_map
from ding.model.common.dense import linear_layers
from ding.model.common.encoder import build_encoder
from ding.model.common.head import RegressionHead, build_policy_head, flat_size
from ding.model.template.actor_critic import ValueActorCritic, value_heads
from ding.model.template.qac import state_of_each
from ding.torch_utils.network.activation import Activation
from ding.utils.errors import ConfigError, check_one_of
from ding.utils.registry_factory import MODEL_REGISTRY

#: Logit of an illegal action: its probability is practically 0, but entropies, ratios and products
#: with a temperature stay finite.
MASKED = -1e8


class AgentActorCritic(ValueActorCritic):
    """An actor on an agent's observation, and a critic on the global state.

    Takes ``{'agent_state': [B, n], 'global_state': [B, m]}``, and ``action_mask`` ``[B, N]``, zero
    for illegal actions. ``logit`` is ``[B, N]`` or ``{'mu', 'sigma'}``, ``value`` ``[B]``. All may
    have a dimension of agents after the first.
    """

    def actor_feature(self, x: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return self.actor_encoder(x["agent_state"])

    def critic_feature(self, x: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return self.critic_encoder(state_of_each(x))

    def _logit(self, feature: torch.Tensor, x: Mapping[str, torch.Tensor]) -> Any:
        """The logit, with `MASKED` for illegal actions."""
        output = self.actor_head(feature)
        if "logit" not in output:
            return output
        logit = output["logit"]
        return logit.masked_fill(x["action_mask"] == 0, MASKED) if "action_mask" in x else logit


@MODEL_REGISTRY.register("mavac")
class MAVAC(AgentActorCritic):
    """One actor and one critic that all agents share (Yu et al. 2022, MAPPO).

    Takes ``{'agent_state': [B, agents, n], 'global_state': [B, m] or [B, agents, m]}``, and
    ``action_mask`` ``[B, agents, N]``, zero for illegal actions. ``logit`` is ``[B, agents, N]``,
    or ``{'mu', 'sigma'}`` of ``[B, agents, action_shape]``; ``value`` ``[B, agents]``.

    Args:
        encoder: An encoder of ``agent_state`` and one of ``global_state``, with the widths
            ``actor_head_hidden_size`` and ``critic_head_hidden_size``.
    """

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
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        sigma_type: str | None = "independent",
        bound_type: str | None = None,
        encoder: Sequence[nn.Module] | None = None,
    ) -> None:
        check_one_of("MAVAC: action_space", action_space, self.action_spaces)
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        if encoder is None:
            sizes = (
                [flat_size(agent_obs_shape), actor_head_hidden_size],
                [flat_size(global_obs_shape), critic_head_hidden_size],
            )
            encoder = [nn.Sequential(*linear_layers(s, **common)) for s in sizes]
        # The critic's head first, so that a seed gives the same weights as in earlier versions.
        critic = RegressionHead(critic_head_hidden_size, 1, critic_head_layer_num, **common)
        width = actor_head_hidden_size
        actor = build_policy_head(
            *(action_space, action_shape, width, width),
            gaussian={"sigma_type": sigma_type, "bound_type": bound_type},
            layer_num=actor_head_layer_num,
            **common,
        )
        super().__init__(encoder[0], encoder[1], (actor, critic))
        self.action_space = action_space
        self.agent_num = agent_num


@MODEL_REGISTRY.register("havac")
class HAVAC(nn.Module):
    """Separate networks of agents (Kuba et al. 2022, HAPPO): an `AgentActorCritic` for each.

    Takes ``{'agent_state': [B, agents, n], 'global_state': [B, m] or [B, agents, m]}``, and
    ``action_mask`` ``[B, agents, N]``; outputs are stacked over agents, ``[B, agents, ...]``.

    Args:
        use_lstm: Not supported; nor are ``lstm_type`` and ``res_link``, which belong to it.
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
        action = [(action_space, action_shape)]
        actor = (actor_head_hidden_size, actor_head_layer_num)
        critic = (critic_head_hidden_size, critic_head_layer_num)
        gaussian = {"sigma_type": sigma_type, "bound_type": bound_type}
        self.agent_models = nn.ModuleList(
            AgentActorCritic(
                build_encoder(agent_obs_shape, sizes, **common),
                build_encoder(global_obs_shape, sizes, **common),
                value_heads(action, sizes[-1], actor, critic, gaussian, **common),
            )
            for _ in range(agent_num)
        )

    def forward(self, inputs: Mapping[str, torch.Tensor], mode: str) -> dict[str, Any]:
        """The outputs of each agent's method ``mode``, stacked."""
        outputs = [
            model(self.seen_by(agent, inputs), mode=mode)
            for agent, model in enumerate(self.agent_models)
        ]
        return tree_join(lambda leaves: torch.stack(leaves, dim=1), outputs)

    @staticmethod
    def seen_by(agent: int, x: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """One agent's part of the observations."""
        return tree_map(lambda leaf: leaf[:, agent], {**x, "global_state": state_of_each(x)})
