"""Values of joint actions from the agents' values: QMIX, QTRAN, WQMIX; and MADQN."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.head import flat_size
from ding.model.common.utils import takes_as
from ding.model.template.agents import AgentNetwork, AgentsModel, State
from ding.model.template.qac import state_of_each
from ding.rl_utils.nstep import of_action
from ding.torch_utils.network import fc_block
from ding.torch_utils.network.activation import Activation
from ding.utils.default_helper import one_size
from ding.utils.errors import ConfigError, DataError
from ding.utils.registry_factory import MODEL_REGISTRY


class Mixer(nn.Module):
    """Monotonic mixing network of QMIX; a hypernetwork on the state generates its weights.

    Args:
        agent_num: Number of agents.
        state_dim: Size of the global state.
        mixing_embed_dim: Width of the mixing network.
        hypernet_embed: Width of the hypernetworks.
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
            DataError: The state has another size, or is given per agent.
        """
        wanted = (*agent_qs.shape[:-1], self.state_dim)
        if states.shape != wanted:
            raise DataError(
                f"global_state is [{', '.join(map(str, states.shape[agent_qs.dim() - 1 :]))}]; "
                f"expected one for all agents, [{self.state_dim}] "
                "(policy.model.global_obs_shape)"
            )
        # Non-negative weights make the best joint action consist of the agents' best actions.
        w_1 = self.hyper_w_1(states).abs().unflatten(-1, (self.agent_num, self.embed_dim))
        hidden = (agent_qs.unsqueeze(-2) @ w_1).squeeze(-2) + self.hyper_b_1(states)
        w_final = self.hyper_w_final(states).abs()
        mixed = (nn.functional.elu(hidden) * w_final).sum(-1)
        return mixed + self.V(states).squeeze(-1)


@MODEL_REGISTRY.register("qmix")
class QMix(AgentsModel):
    """One recurrent network for all agents, and a `Mixer`; see `AgentsModel`.

    Args:
        hidden_size_list: Layers of the agents' encoder; the last is also the width of the recurrent
            layer and the mixer.
        mixer: If false, the joint value is the sum of the agents' (VDN, Sunehag et al. 2018).
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


class FreeMixer(nn.Module):
    """Mixing network of agents' values and the state, without the monotonicity constraint.

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
    """Two networks of agents: one acts and is mixed monotonically, the other without constraint.

    Arguments as in `QMix`. A state has the parts ``'acting'`` and ``'free'``.
    """

    @takes_as(QMix, ("mixer", "activation"))
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        agents, sizes = kwargs["agent_num"], kwargs["hidden_size_list"]
        super().__init__(agents)
        parts = (kwargs["obs_shape"], kwargs["action_shape"], sizes)
        options = {name: kwargs[name] for name in ("dueling", "lstm_type")}
        self._q_network = AgentNetwork(*parts, **options)
        self._q_network_star = AgentNetwork(*parts, **options)
        state = flat_size(kwargs["global_obs_shape"])
        self._mixer = Mixer(agents, state, sizes[-1])
        self._mixer_star = FreeMixer(agents, state)

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
        """``total_q``, and the unconstrained ``free_q``, ``[T, B]`` each."""
        state = obs["global_state"]
        return {
            "total_q": self._mixer(of_action(output["logit"], action), state),
            "free_q": self._mixer_star(of_action(output["free_logit"], action), state),
        }


@MODEL_REGISTRY.register("qtran")
class QTran(QMix):
    """Agents' values, a joint value of state, memories and actions, and a state value.

    Arguments as in `QMix`, and:

    Args:
        embedding_size: Width of the networks of the joint value and the state value.
    """

    @takes_as(QMix, ("mixer", "activation"), after="hidden_size_list")
    def __init__(self, *args: Any, embedding_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs, mixer=False)
        memory, size = kwargs["hidden_size_list"][-1], flat_size(kwargs["global_obs_shape"])
        what = "QTRAN: action_shape", "the choices of an agent"
        self._action_shape = one_size(kwargs["action_shape"], *what)
        encoded = memory + self._action_shape
        # In the order of parameters in optimisers of old checkpoints.
        self.Q = _value_network(size + encoded, embedding_size)
        self.V = _value_network(size, embedding_size)
        self.action_encoding = nn.Sequential(
            nn.Linear(encoded, encoded), nn.ReLU(), nn.Linear(encoded, encoded)
        )

    def judge(self, output: dict[str, Any], obs: Mapping[str, torch.Tensor], action: Any) -> Any:
        """``joint_q``, ``total_q``, the sum of agents' values, and ``value``, ``[T, B]`` each."""
        hidden, state = output["hidden"], obs["global_state"]
        one_hot = nn.functional.one_hot(action, self._action_shape).to(hidden.dtype)
        pairs = self.action_encoding(torch.cat([hidden, one_hot], -1)).sum(-2)
        return {
            **super().judge(output, obs, action),
            "joint_q": self.Q(torch.cat([state, pairs], -1)).squeeze(-1),
            "value": self.V(state).squeeze(-1),
        }


def _value_network(size: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(size, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 1),
    )


@MODEL_REGISTRY.register("madqn")
class MADQN(AgentsModel):
    """Two recurrent networks: ``current`` acts on local observations, ``cooperation`` sets targets.

    A state has the parts ``'current'`` and ``'cooperation'``. Arguments as in `QMix`, and:

    Args:
        global_cooperation: The second network gets the global state and the agent's index, instead
            of the agent's observation; needs ``global_obs_shape``.
        mixer: Mix the values of both networks as in QMIX; otherwise each agent has its own.
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
        """For each agent the global state and its index: ``[T, B, agents, m + agents]``."""
        state = state_of_each(obs)
        which = torch.eye(self.agent_num, device=state.device, dtype=state.dtype)
        return torch.cat([state, which.expand(*state.shape[:-1], -1)], -1)
