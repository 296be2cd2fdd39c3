"""Recurrent actors, and a critic of each agent's actions given the others' (Foerster 2018)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.dense import Dense
from ding.model.common.head import flat_size
from ding.model.template.agents import AgentNetwork, AgentsModel, State
from ding.model.template.qac import state_of_each
from ding.utils.default_helper import one_size, sizes_of
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY

_CRITIC_WIDTH = 128


@MODEL_REGISTRY.register("coma")
class COMA(AgentsModel):
    """COMA (Foerster et al. 2018): one recurrent actor for all agents, and one critic.

    Args:
        obs_shape: Sizes of ``'agent_state'`` and ``'global_state'`` of one agent. Shapes may begin
            with the number of agents.
        actor_hidden_size_list: Layers of the actor's encoder; the last is also its memory's width.
    """

    mode = ["compute_actor", "compute_critic"]

    def __init__(
        self,
        agent_num: int,
        obs_shape: Mapping[str, Any],
        action_shape: int | Sequence[int],
        actor_hidden_size_list: Sequence[int],
    ) -> None:
        super().__init__(agent_num)
        if not isinstance(obs_shape, Mapping) or not {"agent_state", "global_state"} <= {
            *obs_shape
        }:
            raise ConfigError(
                f"policy.model.obs_shape is {obs_shape!r}; COMA takes a dict with the sizes of "
                "'agent_state' and 'global_state'"
            )
        agent, state = (
            flat_size(_of_one_agent(obs_shape[name], agent_num))
            for name in ("agent_state", "global_state")
        )
        actions = one_size(action_shape, "COMA: action_shape", "the choices of an agent")
        self._action_shape = actions
        self.actor = AgentNetwork(
            agent, actions, actor_hidden_size_list, dueling=False, lstm_type="gru"
        )
        width = _CRITIC_WIDTH
        self.critic = Dense(
            nn.Linear(state + agent + agent_num * actions + agent_num, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, actions),
        )

    def forward(  # type: ignore[override]
        self, inputs: Mapping[str, Any], mode: str = "compute_actor", single_step: bool = True
    ) -> dict[str, Any]:
        """Call the method ``mode``, one of `COMA.mode`."""
        if mode not in self.mode:
            raise ValueError(f"mode is {mode!r}; expected one of {self.mode}")
        if mode == "compute_critic":
            return self.compute_critic(inputs)
        return self.compute_actor(inputs, single_step)

    def compute_actor(self, inputs: Mapping[str, Any], single_step: bool = True) -> dict[str, Any]:
        """``logit`` and ``next_state``; see `AgentsModel.forward`."""
        return super().forward(inputs, single_step)

    def compute_critic(self, inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """``q_value`` ``[..., agents, N]`` of each agent's actions, with the others' fixed.

        Args:
            inputs: ``obs`` with parts ``[..., agents, n]`` and ``[..., m]``, and ``action`` int64
                ``[..., agents]``.
        """
        obs, action = inputs["obs"], inputs["action"]
        agents = obs["agent_state"]
        one_hot = nn.functional.one_hot(action, self._action_shape).to(agents.dtype)
        which = torch.eye(self.agent_num, device=agents.device, dtype=agents.dtype)
        # For each agent, the actions of all others: [..., agents, agents, N] without the diagonal.
        others = one_hot.unsqueeze(-3) * (1 - which).unsqueeze(-1)
        seen = [
            state_of_each(obs),
            agents,
            others.flatten(-2),
            which.expand(*agents.shape[:-1], -1),
        ]
        return {"q_value": self.critic(torch.cat(seen, -1))}

    def initial_state(self, batch: int = 1) -> State:
        return self.actor.initial_state(batch, self.agent_num)

    def unroll(self, obs: Mapping[str, torch.Tensor], state: State) -> dict[str, Any]:
        logit, after, _ = self.actor.unroll(obs["agent_state"], state)
        return {"logit": logit, "next_state": after}


def _of_one_agent(shape: Any, agent_num: int) -> Any:
    sizes = sizes_of(shape, "COMA: obs_shape")
    return sizes[1:] if len(sizes) > 1 and sizes[0] == agent_num else sizes
