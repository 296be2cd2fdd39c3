"""Values of joint actions mixed from those of each agent (Rashid et al. 2018)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.head import flat_size
from ding.model.template.agents import AgentNetwork, AgentsModel, State
from ding.rl_utils.nstep import of_action
from ding.torch_utils.network import fc_block
from ding.torch_utils.network.activation import Activation
from ding.utils.errors import DataError
from ding.utils.registry_factory import MODEL_REGISTRY


class Mixer(nn.Module):
    """Agents' values into one that grows with each of them, by weights that the state chooses.

    Args:
        agent_num: Number of agents.
        state_dim: Size of the global state.
        mixing_embed_dim: Width of the mixing network.
        hypernet_embed: Width of the networks that make its weights.
    """

    def __init__(
        self,
        agent_num: int,
        state_dim: int,
        mixing_embed_dim: int,
        hypernet_embed: int = 64,
        activation: Activation = nn.ReLU(),
    ) -> None:
        super().__init__()
        self.agent_num, self.embed_dim, self.state_dim = agent_num, mixing_embed_dim, state_dim

        def network(width: int, size: int) -> nn.Sequential:
            layers = fc_block(state_dim, width, activation)
            return nn.Sequential(*layers, nn.Linear(width, size))

        self.hyper_w_1 = network(hypernet_embed, mixing_embed_dim * agent_num)
        self.hyper_w_final = network(hypernet_embed, mixing_embed_dim)
        self.hyper_b_1 = nn.Linear(state_dim, mixing_embed_dim)
        self.V = network(mixing_embed_dim, 1)

    def forward(self, agent_qs: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """``[..., agents]`` and ``[..., state_dim]`` to ``[...]``.

        Raises:
            DataError: The state is of another size, or told to each agent by itself.
        """
        wanted = (*agent_qs.shape[:-1], self.state_dim)
        if states.shape != wanted:
            raise DataError(
                f"global_state is [{', '.join(map(str, states.shape[agent_qs.dim() - 1 :]))}]; "
                f"expected one for all agents, [{self.state_dim}] "
                "(policy.model.global_obs_shape)"
            )
        # Weights that cannot be negative keep the best joint action that of the agents' own best.
        w_1 = self.hyper_w_1(states).abs().unflatten(-1, (self.agent_num, self.embed_dim))
        hidden = (agent_qs.unsqueeze(-2) @ w_1).squeeze(-2) + self.hyper_b_1(states)
        w_final = self.hyper_w_final(states).abs()
        mixed = (nn.functional.elu(hidden) * w_final).sum(-1)
        return mixed + self.V(states).squeeze(-1)


@MODEL_REGISTRY.register("qmix")
class QMix(AgentsModel):
    """One recurrent network for all agents, and a `Mixer`; see `AgentsModel`.

    Args:
        hidden_size_list: Layers of the agents' encoder; the last is also the memory's width and
            the mixer's.
        mixer: Without, the joint value is the sum of the agents' (VDN, Sunehag et al. 2018).
        lstm_type: ``'gru'``, ``'normal'`` or ``'pytorch'``; see `DRQN`.
    """

    def __init__(
        self,
        agent_num: int,
        obs_shape: int,
        global_obs_shape: int,
        action_shape: int,
        hidden_size_list: Sequence[int],
        mixer: bool = True,
        lstm_type: str = "gru",
        activation: Activation = nn.ReLU(),
        dueling: bool = False,
    ) -> None:
        super().__init__(agent_num)
        self._q_network = AgentNetwork(
            obs_shape,
            action_shape,
            hidden_size_list,
            dueling=dueling,
            lstm_type=lstm_type,
            activation=activation,
        )
        self.mixer = mixer
        if mixer:
            self._mixer = Mixer(
                agent_num, flat_size(global_obs_shape), hidden_size_list[-1], activation=activation
            )

    def initial_state(self, batch: int = 1) -> State:
        return self._q_network.initial_state(batch, self.agent_num)

    def unroll(self, obs: Mapping[str, torch.Tensor], state: State) -> dict[str, Any]:
        logit, after, hidden = self._q_network.unroll(obs["agent_state"], state)
        return {"logit": logit, "next_state": after, "hidden": hidden}

    def judge(self, output: dict[str, Any], obs: Mapping[str, torch.Tensor], action: Any) -> Any:
        """``total_q`` ``[T, B]`` of joint actions, and ``agent_q`` ``[T, B, agents]``."""
        agent_q = of_action(output["logit"], action)
        total_q = self._mixer(agent_q, obs["global_state"]) if self.mixer else agent_q.sum(-1)
        return {"total_q": total_q, "agent_q": agent_q}
