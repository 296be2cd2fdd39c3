"""Actors, and critics of actions, for off-policy policies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.dense import Dense, linear_layers
from ding.model.common.encoder import build_encoder
from ding.model.common.head import (
    DiscreteHead,
    RegressionHead,
    build_discrete_head,
    column,
    flat_size,
)
from ding.model.common.utils import takes_as
from ding.model.template.actor_critic import ActorCritic, continuous_actor, continuous_output
from ding.torch_utils.network.activation import Activation
from ding.utils.default_helper import sizes_of
from ding.utils.errors import ConfigError, check_one_of
from ding.utils.registry_factory import MODEL_REGISTRY


class _QAC(ActorCritic):
    """An actor, and one or two critics, behind encoders; subclasses define the heads.

    Args:
        obs_shape: An int or ``[n]`` for vectors, ``[C, H, W]`` for images.
        twin_critic: Use two critics; ``q_value`` is then a list.
        actor_head_hidden_size: Width of the actor's head; likewise ``critic_head_hidden_size``.
        actor_head_layer_num: Layers of the actor's head; likewise ``critic_head_layer_num``.
        activation: Activation between layers; a module or its name.
        norm_type: Normalisation between layers, ``'BN'`` or ``'LN'``; none by default.
        encoder_hidden_size_list: An encoder before the heads; required for images.
        share_encoder: Use one encoder for actor and critics.
    """

    mode = ["compute_actor", "compute_critic"]
    #: Widths of the observation features that the heads of actor and critics get.
    actor_size: int
    critic_size: int
    #: Builds a head from an observation's width, the action's shape, hidden width, layers, options.
    _build_actor: Callable[[int, Any, int, int, dict[str, Any]], nn.Module]
    _build_critic: Callable[[int, Any, int, int, dict[str, Any]], nn.Module]

    def __init__(
        self,
        obs_shape: int | Sequence[int] | Mapping[str, int],
        action_shape: int | Sequence[int] | Mapping[str, Any],
        twin_critic: bool = False,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        encoder_hidden_size_list: Sequence[int] | None = None,
        share_encoder: bool | None = False,
    ) -> None:
        if isinstance(obs_shape, Mapping):  # each agent's part, and the critics' observation
            super().__init__(nn.Identity(), nn.Identity())
            self.actor_size = flat_size(obs_shape["agent_state"])
            self.critic_size = flat_size(obs_shape["global_state"])
        elif encoder_hidden_size_list is not None:
            options = (obs_shape, encoder_hidden_size_list, activation, norm_type)
            encoder = build_encoder(*options)
            super().__init__(encoder, None if share_encoder else build_encoder(*options))
            self.actor_size = self.critic_size = encoder.output_size
        else:
            shape = sizes_of(obs_shape, f"{type(self).__name__}: obs_shape")
            if len(shape) != 1:
                raise ConfigError(
                    f"{type(self).__name__}: obs_shape {obs_shape} needs an encoder; give "
                    "encoder_hidden_size_list"
                )
            super().__init__(nn.Identity(), nn.Identity())
            self.actor_size = self.critic_size = shape[0]
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        self.actor_head = self._build_actor(
            self.actor_size, action_shape, actor_head_hidden_size, actor_head_layer_num, common
        )
        sizes = (self.critic_size, action_shape, critic_head_hidden_size, critic_head_layer_num)
        heads = [self._build_critic(*sizes, common) for _ in range(1 + bool(twin_critic))]
        self.critic_head = nn.ModuleList(heads) if twin_critic else heads[0]

    def _q_value(self, x: torch.Tensor, key: str) -> dict[str, Any]:
        if isinstance(self.critic_head, nn.ModuleList):
            return {"q_value": [head(x)[key] for head in self.critic_head]}
        return {"q_value": self.critic_head(x)[key]}


@MODEL_REGISTRY.register("continuous_qac")
class ContinuousQAC(_QAC):
    """Actor-critic network for continuous actions: an actor, and one or two Q-value critics.

    The other arguments are described in `_QAC`.

    Args:
        action_space: ``'regression'`` (DDPG, TD3: one action), ``'reparameterization'`` (SAC: a
            Gaussian, its sigma a function of the observation) or ``'hybrid'`` (logits of a discrete
            type and arguments; ``action_shape`` is a mapping of ``action_type_shape`` and
            ``action_args_shape``).

    Example:

        >>> import torch
        >>> from ding.model import ContinuousQAC
        >>> model = ContinuousQAC(obs_shape=3, action_shape=1, action_space="regression")
        >>> action = model(torch.zeros(8, 3), mode="compute_actor")["action"]
        >>> inputs = {"obs": torch.zeros(8, 3), "action": action}
        >>> model(inputs, mode="compute_critic")["q_value"].shape
        torch.Size([8])
    """

    action_spaces = ("regression", "reparameterization", "hybrid")
    #: Further arguments of the Gaussian's `ReparameterizationHead`.
    _gaussian: Mapping[str, Any] = {"sigma_type": "conditioned"}

    @takes_as(_QAC, ("obs_shape", "action_shape"))
    def __init__(
        self,
        obs_shape: int | Sequence[int] | Mapping[str, int],
        action_shape: int | Sequence[int] | Mapping[str, Any],
        action_space: str,
        **kwargs: Any,
    ) -> None:
        check_one_of("ContinuousQAC: action_space", action_space, self.action_spaces)
        self.action_space = action_space
        super().__init__(obs_shape, action_shape, **kwargs)

    def _build_actor(
        self, size: int, action_shape: Any, width: int, layer_num: int, common: dict[str, Any]
    ) -> nn.Module:
        """A linear layer and the head; for a hybrid space a dict of heads by output."""
        if self.action_space != "hybrid":
            sizes = (size, width)
            return continuous_actor(
                self.action_space, sizes, action_shape, layer_num, self._gaussian, **common
            )
        stem, options = linear_layers([size, width], **common), {**common, "layer_num": layer_num}
        args_size = _size(action_shape["action_args_shape"])
        heads = {
            "stem": Dense(*stem),
            "action_args": RegressionHead(width, args_size, final_tanh=True, **options),
            "logit": DiscreteHead(width, action_shape["action_type_shape"], **options),
        }
        return nn.ModuleDict(heads)

    def _build_critic(
        self, size: int, action_shape: Any, width: int, layer_num: int, common: dict[str, Any]
    ) -> nn.Module:
        # The head first, so that a seed gives the same weights as in earlier versions.
        head = RegressionHead(width, 1, layer_num, **common)
        return Dense(*linear_layers([size + _size(action_shape), width], **common), head)

    def compute_actor(self, obs: torch.Tensor) -> dict[str, Any]:
        """``{'action': [B, A]}`` in (-1, 1), ``{'logit': [mu, sigma]}`` with ``[B, A]`` each, or
        ``{'logit': [B, N], 'action_args': [B, A]}``, by action space."""
        x = self.actor_feature(obs)
        if self.action_space != "hybrid":
            return continuous_output(self.actor_head(x), x)
        x = self.actor_head["stem"](x)
        return {
            "logit": self.actor_head["logit"](x)["logit"],
            "action_args": column(self.actor_head["action_args"](x)["pred"], x),
        }

    def compute_critic(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """``{'q_value': [B]}``, or a list of two.

        Args:
            inputs: ``obs`` and ``action``, ``[B, A]`` (or ``[B]`` for a single dimension); for a
                hybrid action space ``action`` is ``{'action_args': [B, A]}``, and the
                inputs also have ``logit`` ``[B, N]``.
        """
        return self._q_value(self._critic_input(inputs), "pred")

    def _critic_input(self, inputs: dict[str, Any]) -> torch.Tensor:
        x = self.critic_feature(inputs["obs"])
        action = inputs["action"]
        if self.action_space == "hybrid":
            action = torch.cat([inputs["logit"], column(action["action_args"], x)], dim=-1)
        return torch.cat([x, column(action, x)], dim=-1)


@MODEL_REGISTRY.register("discrete_qac")
class DiscreteQAC(_QAC):
    """Actor-critic network for discrete actions: one or two critics with a value per action.

    See `_QAC` for the arguments. With several action dimensions outputs are lists.
    """

    def _build_actor(
        self, size: int, action_shape: Any, width: int, layer_num: int, common: dict[str, Any]
    ) -> nn.Module:
        stem = linear_layers([size, width], **common)
        options = {"layer_num": layer_num, **common}
        return Dense(*stem, build_discrete_head(DiscreteHead, width, action_shape, **options))

    _build_critic = _build_actor

    def compute_actor(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'logit': [B, N]}``."""
        return self.actor_head(self.actor_feature(inputs))

    def compute_critic(self, inputs: torch.Tensor) -> dict[str, Any]:
        """``{'q_value': [B, N]}``, or a list of two."""
        return self._q_value(self.critic_feature(inputs), "logit")


def _size(action_shape: int | Sequence[int] | Mapping[str, Any]) -> int:
    if isinstance(action_shape, Mapping):
        return sum(_size(action_shape[key]) for key in ("action_type_shape", "action_args_shape"))
    return flat_size(action_shape)


@MODEL_REGISTRY.register("continuous_qvac")
class ContinuousQVAC(ContinuousQAC):
    """`ContinuousQAC` with a state-value network of the same sizes as the critics.

    In the space ``'reparameterization'``, the actor has a mean in (-1, 1) and one sigma for all
    observations (Kostrikov et al. 2021).
    """

    mode = ["compute_actor", "compute_critic", "compute_value"]
    _gaussian = {"sigma_type": "independent", "bound_type": "tanh"}

    @takes_as(ContinuousQAC, action_space="reparameterization", twin_critic=True)
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        common = {name: kwargs[name] for name in ("activation", "norm_type")}
        width = kwargs["critic_head_hidden_size"]
        self.value_head = nn.Sequential(
            *linear_layers([self.critic_size, width], **common),
            RegressionHead(width, 1, kwargs["critic_head_layer_num"], **common),
        )

    @property
    def critic(self) -> nn.ModuleList:
        """Encoder and heads of all action and state values."""
        return nn.ModuleList([*super().critic, self.value_head])

    def compute_value(self, obs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'v_value': [B]}``."""
        return {"v_value": self.value_head(self.critic_feature(obs))["pred"]}


#: Arguments that networks of agents, whose observations are vectors, do not take.
_NOT_OF_AGENTS = ("obs_shape", "encoder_hidden_size_list", "share_encoder")


class _OfAgents:
    """Takes observations ``{'agent_state': [B, agents, n], 'global_state': [B, m]}``.

    ``global_state`` may also be given per agent, ``[B, agents, m]``. All agents share one actor
    and one critic; outputs are ``[B, agents, ...]``.
    """

    def actor_feature(self, x: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return x["agent_state"]

    def critic_feature(self, x: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return state_of_each(x)


@MODEL_REGISTRY.register("discrete_maqac")
class DiscreteMAQAC(_OfAgents, DiscreteQAC):
    """Discrete actions of several agents; see `_OfAgents` and `DiscreteQAC`."""

    @takes_as(DiscreteQAC, _NOT_OF_AGENTS)
    def __init__(self, agent_obs_shape: int, global_obs_shape: int, **kwargs: Any) -> None:
        super().__init__(_by_part(agent_obs_shape, global_obs_shape), **kwargs)


@MODEL_REGISTRY.register("continuous_maqac")
class ContinuousMAQAC(_OfAgents, ContinuousQAC):
    """Continuous actions of several agents; see `_OfAgents` and `ContinuousQAC`."""

    @takes_as(ContinuousQAC, _NOT_OF_AGENTS)
    def __init__(self, agent_obs_shape: int, global_obs_shape: int, **kwargs: Any) -> None:
        super().__init__(_by_part(agent_obs_shape, global_obs_shape), **kwargs)


def state_of_each(x: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The ``global_state`` for each agent, ``[B, agents, m]``."""
    agents, state = x["agent_state"], x["global_state"]
    if state.dim() == agents.dim():
        return state
    return state.unsqueeze(-2).expand(*agents.shape[:-1], -1)


def _by_part(agent_obs_shape: Any, global_obs_shape: Any) -> dict[str, int]:
    shapes = {"agent_state": agent_obs_shape, "global_state": global_obs_shape}
    return {name: flat_size(shape) for name, shape in shapes.items()}
