"""Values split into an agent's independent part and an interactive part (Zhang et al. 2020)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.head import flat_size
from ding.model.template.agents import AgentNetwork, AgentsModel, State
from ding.model.template.qmix import Mixer
from ding.rl_utils.nstep import of_action
from ding.torch_utils.network.activation import Activation
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY


class AllyAttention(nn.Module):
    """Attention over the other agents in an observation; returns one vector.

    ``[..., n]`` to ``[..., n - ally features + attention_size]``.

    Args:
        self_range: Columns ``[start, stop)`` of an observation that describe the agent itself.
        ally_range: Columns that describe the others, equally many for each of them.
        ally_num: Number of other agents.
    """

    def __init__(
        self, self_range: Sequence[int], ally_range: Sequence[int], ally_num: int, size: int
    ) -> None:
        super().__init__()
        self._self, self._ally = slice(*self_range), slice(*ally_range)
        self._ally_num = ally_num
        features = ally_range[1] - ally_range[0]
        if ally_num < 1 or features < 1 or features % ally_num:
            raise ConfigError(
                f"policy.model.ally_feature_range={list(ally_range)} has {features} features; "
                f"expected as many for each of {ally_num} allies"
            )
        self.query = nn.Linear(self_range[1] - self_range[0], size)
        self.key = nn.Linear(features // ally_num, size)
        self.value = nn.Linear(features // ally_num, size)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        allies = obs[..., self._ally].unflatten(-1, (self._ally_num, -1))
        query = self.query(obs[..., self._self]).unsqueeze(-2)
        seen = nn.functional.scaled_dot_product_attention(
            query, self.key(allies), self.value(allies)
        ).squeeze(-2)
        return torch.cat([obs[..., : self._ally.start], obs[..., self._ally.stop :], seen], -1)


@MODEL_REGISTRY.register("collaq")
class CollaQ(AgentsModel):
    """CollaQ (Zhang et al. 2020): agent values with an independent and an interactive part.

    Observations have ``agent_alone_state`` ``[agents, k]`` without information on other agents, and
    ``agent_alone_padding_state`` ``[agents, n]`` with zeros instead. A state has the parts
    ``'alone'``, ``'together'`` and ``'nobody'``, that of the second network without other agents.
    Arguments as in `QMix`, and:

    Args:
        alone_obs_shape: Size of ``agent_alone_state``.
        attention: See `AllyAttention`; needs both ranges.
    """

    def __init__(
        self,
        agent_num: int,
        obs_shape: int,
        alone_obs_shape: int,
        global_obs_shape: int,
        action_shape: int,
        hidden_size_list: Sequence[int],
        attention: bool = False,
        self_feature_range: Sequence[int] | None = None,
        ally_feature_range: Sequence[int] | None = None,
        attention_size: int = 32,
        mixer: bool = True,
        lstm_type: str = "gru",
        activation: Activation = nn.ReLU(),
        dueling: bool = False,
    ) -> None:
        super().__init__(agent_num)
        together = obs_shape
        if attention:
            if self_feature_range is None or ally_feature_range is None:
                raise ConfigError(
                    "policy.model.attention=True needs self_feature_range and ally_feature_range, "
                    "[start, stop) of an observation's columns"
                )
            self._attention = AllyAttention(
                self_feature_range, ally_feature_range, agent_num - 1, attention_size
            )
            together += attention_size - (ally_feature_range[1] - ally_feature_range[0])
        self.attention = attention

        def network(size: int) -> AgentNetwork:
            return AgentNetwork(
                size,
                action_shape,
                hidden_size_list,
                dueling=dueling,
                lstm_type=lstm_type,
                activation=activation,
            )

        self._q_network, self._q_alone_network = network(together), network(alone_obs_shape)
        self.mixer = mixer
        if mixer:
            self._mixer = Mixer(
                agent_num, flat_size(global_obs_shape), hidden_size_list[-1], activation=activation
            )

    def initial_state(self, batch: int = 1) -> State:
        together = self._q_network.initial_state(batch, self.agent_num)
        alone = self._q_alone_network.initial_state(batch, self.agent_num)
        return {"alone": alone, "together": together, "nobody": together}

    def unroll(self, obs: Mapping[str, torch.Tensor], state: State) -> dict[str, Any]:
        """``nobody_logit`` is the interactive part without other agents, which must be zero."""
        network = self._q_network
        alone, s_alone, _ = self._q_alone_network.unroll(obs["agent_alone_state"], state["alone"])
        together, s_together, _ = network.unroll(self._see(obs["agent_state"]), state["together"])
        nobody, s_nobody, _ = network.unroll(
            self._see(obs["agent_alone_padding_state"]), state["nobody"]
        )
        return {
            "logit": alone + together,
            "nobody_logit": nobody,
            "next_state": {"alone": s_alone, "together": s_together, "nobody": s_nobody},
        }

    def judge(self, output: dict[str, Any], obs: Mapping[str, torch.Tensor], action: Any) -> Any:
        """``total_q`` ``[T, B]``, and ``nobody_q`` ``[T, B, agents]``."""
        agent_q = of_action(output["logit"], action)
        return {
            "total_q": self._mixer(agent_q, obs["global_state"]) if self.mixer else agent_q.sum(-1),
            "nobody_q": of_action(output["nobody_logit"], action),
        }

    def _see(self, obs: torch.Tensor) -> torch.Tensor:
        return self._attention(obs) if self.attention else obs
