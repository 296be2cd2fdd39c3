"""Agents' own values, and values of a team that sees more, for targets."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ding.model.common.head import flat_size
from ding.model.template.agents import AgentNetwork, AgentsModel, State
from ding.model.template.maqac import state_of_each
from ding.model.template.qmix import Mixer
from ding.rl_utils.nstep import of_action
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("madqn")
class MADQN(AgentsModel):
    """Two recurrent networks: ``current`` acts on what agents see, ``cooperation`` teaches it.

    A state has the parts ``'current'`` and ``'cooperation'``. Arguments as of `QMix`, and:

    Args:
        global_cooperation: The second network sees the global state and which agent it speaks of,
            instead of what that agent sees; needs ``global_obs_shape``.
        mixer: Values of both are joint ones, mixed as in QMIX; without, each agent's by itself.
    """

    def __init__(
        self,
        agent_num: int,
        obs_shape: int,
        action_shape: int,
        hidden_size_list: Sequence[int],
        global_obs_shape: int | None = None,
        mixer: bool = False,
        global_cooperation: bool = True,
        lstm_type: str = "gru",
        dueling: bool = False,
    ) -> None:
        super().__init__(agent_num)
        if global_obs_shape is None and (mixer or global_cooperation):
            raise ConfigError(
                "policy.model.global_obs_shape is missing: mixer=True and global_cooperation=True "
                "look at the global state; give its size, or set both to False"
            )
        size = 0 if global_obs_shape is None else flat_size(global_obs_shape)

        def network(size: int) -> AgentNetwork:
            return AgentNetwork(
                size, action_shape, hidden_size_list, dueling=dueling, lstm_type=lstm_type
            )

        self.global_cooperation, self.mixer = global_cooperation, mixer
        self.current = network(obs_shape)
        self.cooperation = network(size + agent_num if global_cooperation else obs_shape)
        if mixer:
            self.current_mixer = Mixer(agent_num, size, hidden_size_list[-1])
            self.cooperation_mixer = Mixer(agent_num, size, hidden_size_list[-1])

    def initial_state(self, batch: int = 1) -> State:
        return {
            "current": self.current.initial_state(batch, self.agent_num),
            "cooperation": self.cooperation.initial_state(batch, self.agent_num),
        }

    def unroll(self, obs: Mapping[str, torch.Tensor], state: State) -> dict[str, Any]:
        logit, current, _ = self.current.unroll(obs["agent_state"], state["current"])
        seen = self._overview(obs) if self.global_cooperation else obs["agent_state"]
        team_logit, cooperation, _ = self.cooperation.unroll(seen, state["cooperation"])
        return {
            "logit": logit,
            "team_logit": team_logit,
            "next_state": {"current": current, "cooperation": cooperation},
        }

    def judge(self, output: dict[str, Any], obs: Mapping[str, torch.Tensor], action: Any) -> Any:
        """``total_q`` of the first network and ``team_q`` of the second.

        With a mixer ``[T, B]``, without ``[T, B, agents]``.
        """
        own, team = (of_action(output[name], action) for name in ("logit", "team_logit"))
        if self.mixer:
            state = obs["global_state"]
            own, team = self.current_mixer(own, state), self.cooperation_mixer(team, state)
        return {"total_q": own, "team_q": team}

    def _overview(self, obs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The global state, and which agent, for each agent: ``[T, B, agents, m + agents]``."""
        state = state_of_each(obs)
        which = torch.eye(self.agent_num, device=state.device, dtype=state.dtype)
        return torch.cat([state, which.expand(*state.shape[:-1], -1)], -1)
