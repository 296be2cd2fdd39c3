"""A monotonic mix of agents' values beside one without that limit (Rashid et al. 2020)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.head import flat_size
from ding.model.template.agents import AgentNetwork, AgentsModel, State
from ding.model.template.qmix import Mixer
from ding.rl_utils.nstep import of_action
from ding.utils.registry_factory import MODEL_REGISTRY


class FreeMixer(nn.Module):
    """Agents' values and the state into one value, without the limit to monotonic ones.

    A feed-forward network with three hidden layers of 256 units, as in the paper's experiments.
    """

    def __init__(self, agent_num: int, state_dim: int, width: int = 256) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(agent_num + state_dim, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )
        self.V = nn.Sequential(nn.Linear(state_dim, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, agent_qs: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """``[..., agents]`` and ``[..., state_dim]`` to ``[...]``."""
        mixed = self.net(torch.cat([agent_qs, states], -1)) + self.V(states)
        return mixed.squeeze(-1)


@MODEL_REGISTRY.register("wqmix")
class WQMix(AgentsModel):
    """Two networks of agents: one acts and is mixed monotonically, the other is mixed freely.

    Arguments as of `QMix`. A state has the parts ``'acting'`` and ``'free'``.
    """

    def __init__(
        self,
        agent_num: int,
        obs_shape: int,
        global_obs_shape: int,
        action_shape: int,
        hidden_size_list: Sequence[int],
        lstm_type: str = "gru",
        dueling: bool = False,
    ) -> None:
        super().__init__(agent_num)

        def network() -> AgentNetwork:
            return AgentNetwork(
                obs_shape, action_shape, hidden_size_list, dueling=dueling, lstm_type=lstm_type
            )

        size = flat_size(global_obs_shape)
        self._q_network, self._q_network_star = network(), network()
        self._mixer = Mixer(agent_num, size, hidden_size_list[-1])
        self._mixer_star = FreeMixer(agent_num, size)

    def initial_state(self, batch: int = 1) -> State:
        return {
            "acting": self._q_network.initial_state(batch, self.agent_num),
            "free": self._q_network_star.initial_state(batch, self.agent_num),
        }

    def unroll(self, obs: Mapping[str, torch.Tensor], state: State) -> dict[str, Any]:
        agents = obs["agent_state"]
        logit, acting, _ = self._q_network.unroll(agents, state["acting"])
        free_logit, free, _ = self._q_network_star.unroll(agents, state["free"])
        return {
            "logit": logit,
            "free_logit": free_logit,
            "next_state": {"acting": acting, "free": free},
        }

    def judge(self, output: dict[str, Any], obs: Mapping[str, torch.Tensor], action: Any) -> Any:
        """``total_q``, and ``free_q`` which is not monotonic, ``[T, B]`` each."""
        state = obs["global_state"]
        return {
            "total_q": self._mixer(of_action(output["logit"], action), state),
            "free_q": self._mixer_star(of_action(output["free_logit"], action), state),
        }
