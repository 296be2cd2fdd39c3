"""Networks of policies with logits: PG, VAC, PPG and ACER."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.encoder import IMPALAConvEncoder, build_encoder
from ding.model.common.head import DiscreteHead, RegressionHead, build_policy_head
from ding.model.common.utils import takes_as
from ding.model.template.actor_critic import ActorCritic, ByMode, ValueActorCritic, value_heads
from ding.torch_utils.network.activation import Activation
from ding.utils.default_helper import one_size
from ding.utils.errors import ConfigError, check_one_of
from ding.utils.registry_factory import MODEL_REGISTRY

#: Arguments of `VAC` that other networks with the same sizes do not take.
_GAUSSIAN_OPTIONS = ("sigma_type", "fixed_sigma_value", "bound_type", "encoder")


@MODEL_REGISTRY.register("vac")
class VAC(ValueActorCritic):
    """Actor-critic network: a policy and a state value, from one encoder or two.

    ``logit`` depends on ``action_space``:

    - ``'discrete'``: ``[B, action_shape]``, or a list of these for several action dimensions.
    - ``'continuous'``: ``{'mu', 'sigma'}``, each ``[B, action_shape]``.
    - ``'hybrid'``: ``{'action_type': [B, action_type_shape], 'action_args': {'mu', 'sigma'}}``;
      ``action_shape`` is a mapping of ``action_type_shape`` and ``action_args_shape``.

    ``value`` is ``[B]``.

    Args:
        obs_shape: An int or ``[n]`` for vectors, ``[C, H, W]`` for images.
        actor_head_hidden_size: Width of the actor's head; likewise ``critic_head_hidden_size``.
        actor_head_layer_num: Layers of the actor's head; likewise ``critic_head_layer_num``.
        activation: Activation between layers; a module or its name.
        norm_type: Normalisation between layers, ``'BN'`` or ``'LN'``; none by default.
        sigma_type: ``'independent'`` (parameters), ``'conditioned'`` (on the observation) or
            ``'fixed'`` (``fixed_sigma_value``).
        bound_type: ``'tanh'`` bounds ``mu`` to ``[-1, 1]``.
        encoder: A custom encoder; without ``share_encoder`` the critic gets a copy. Its output
            width is its ``output_size`` if it has one, else the last of
            ``encoder_hidden_size_list``.
        impala_cnn_encoder: Use `IMPALAConvEncoder`, with ``encoder_hidden_size_list`` as its
            channels, and its last element as the output width.

    Example:

        >>> import torch
        >>> from ding.model import VAC
        >>> model = VAC(obs_shape=4, action_shape=2)
        >>> output = model(torch.zeros(8, 4), mode="compute_actor_critic")
        >>> output["logit"].shape, output["value"].shape
        (torch.Size([8, 2]), torch.Size([8]))
    """

    action_spaces = ("discrete", "continuous", "hybrid")

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int] | Mapping[str, Any],
        action_space: str = "discrete",
        share_encoder: bool = True,
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        sigma_type: str | None = "independent",
        fixed_sigma_value: float | None = 0.3,
        bound_type: str | None = None,
        encoder: nn.Module | None = None,
        impala_cnn_encoder: bool = False,
    ) -> None:
        check_one_of("VAC: action_space", action_space, self.action_spaces)
        if encoder is not None and not isinstance(encoder, nn.Module):
            raise ConfigError(f"VAC: encoder is {encoder!r}; expected a torch.nn.Module instance")
        sizes = encoder_hidden_size_list

        def make_encoder() -> nn.Module:
            if impala_cnn_encoder:
                shape: Any = obs_shape
                return IMPALAConvEncoder(shape, channels=sizes, outsize=sizes[-1])
            return build_encoder(obs_shape, sizes, activation, norm_type)

        if encoder is None:
            encoder = make_encoder()
            critic_encoder = None if share_encoder else make_encoder()
        else:
            critic_encoder = None if share_encoder else copy.deepcopy(encoder)
        width = getattr(encoder, "output_size", sizes[-1])
        gaussian = {
            "sigma_type": sigma_type,
            "fixed_sigma_value": fixed_sigma_value,
            "bound_type": bound_type,
        }
        heads = value_heads(
            _parts(action_space, action_shape),
            width,
            (actor_head_hidden_size, actor_head_layer_num),
            (critic_head_hidden_size, critic_head_layer_num),
            gaussian,
            activation=activation,
            norm_type=norm_type,
        )
        super().__init__(encoder, critic_encoder, heads)
        self.action_space = action_space

    def forward(self, x: Any, mode: str) -> dict[str, Any]:
        """Call the method ``mode``, one of the class's `mode`."""
        return super().forward(x, mode)

    def _logit(self, feature: torch.Tensor, x: Any) -> Any:
        if self.action_space == "discrete":
            return self.actor_head(feature)["logit"]
        if self.action_space == "continuous":
            return self.actor_head(feature)
        type_head, args_head = self.actor_head
        return {"action_type": type_head(feature)["logit"], "action_args": args_head(feature)}


def _parts(action_space: str, action_shape: Any) -> list[tuple[str, Any]]:
    """Space and shape of an action, or of the parts of a hybrid one."""
    if action_space != "hybrid":
        return [(action_space, action_shape)]
    if not isinstance(action_shape, Mapping):
        raise ConfigError(
            f"VAC: action_shape is {action_shape!r}; a hybrid action space needs a mapping of "
            "action_type_shape and action_args_shape"
        )
    return [
        ("discrete", action_shape["action_type_shape"]),
        ("continuous", action_shape["action_args_shape"]),
    ]


@MODEL_REGISTRY.register("pg")
class PG(nn.Module):
    """A policy network: ``[B, *obs_shape]`` to ``{'logit'}``.

    ``logit`` is ``[B, action_shape]``, a list of these for several action dimensions, or with
    ``action_space='continuous'`` ``{'mu', 'sigma'}``, each ``[B, action_shape]``; sigma is a
    learned parameter, the same for every observation.

    Args:
        head_hidden_size: The last of ``encoder_hidden_size_list`` unless given.
    """

    action_spaces = ("discrete", "continuous")

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        action_space: str = "discrete",
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
    ) -> None:
        super().__init__()
        check_one_of("PG: action_space", action_space, self.action_spaces)
        width = encoder_hidden_size_list[-1]
        self.action_space = action_space
        self.encoder = build_encoder(obs_shape, encoder_hidden_size_list, activation, norm_type)
        self.head = build_policy_head(
            *(action_space, action_shape, width, head_hidden_size or width),
            gaussian={"sigma_type": "independent"},
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
        )

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        """``{'logit'}``."""
        output = self.head(self.encoder(x))
        return output if self.action_space == "discrete" else {"logit": output}


@MODEL_REGISTRY.register("ppg")
class PPG(ByMode):
    """The two networks of phasic policy gradient (Cobbe et al. 2020).

    ``actor_critic`` is the policy network, whose value is its auxiliary task; ``aux_critic`` is the
    value network, which shares no weights with it. Both start with the same weights.

    Arguments and outputs are those of `VAC`.
    """

    mode = VAC.mode

    @takes_as(VAC, _GAUSSIAN_OPTIONS, actor_head_layer_num=2)
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self.actor_critic = VAC(**kwargs)
        self.aux_critic = copy.deepcopy(self.actor_critic.critic)

    def compute_actor(self, x: torch.Tensor) -> dict[str, Any]:
        """``{'logit'}`` of the policy network."""
        return self.actor_critic(x, mode="compute_actor")

    def compute_critic(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'value'}`` of the value network."""
        encoder, head = self.aux_critic
        return {"value": head(encoder(x))["pred"]}

    def compute_actor_critic(self, x: torch.Tensor) -> dict[str, Any]:
        """``{'logit', 'value'}`` of the policy network."""
        return self.actor_critic(x, mode="compute_actor_critic")


@MODEL_REGISTRY.register("acer")
class ACER(ActorCritic):
    """Logits of one discrete action, and the values of all actions, from separate encoders.

    ``forward(x, mode)`` with mode ``'compute_actor'`` returns ``{'logit': [B, N]}``, with
    ``'compute_critic'`` ``{'q_value': [B, N]}``.
    """

    mode = ["compute_actor", "compute_critic"]

    @takes_as(VAC, (*_GAUSSIAN_OPTIONS, "action_space", "share_encoder", "impala_cnn_encoder"))
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        who = "ACER: action_shape", "it has one discrete action"
        actions = one_size(kwargs["action_shape"], *who)
        common = {name: kwargs[name] for name in ("activation", "norm_type")}
        options = (kwargs["obs_shape"], kwargs["encoder_hidden_size_list"])
        encoder, critic_encoder = (build_encoder(*options, **common) for _ in range(2))
        (actor_size, actor_layers), (critic_size, critic_layers) = (
            (kwargs[f"{part}_head_hidden_size"], kwargs[f"{part}_head_layer_num"])
            for part in ("actor", "critic")
        )
        width = encoder.output_size
        critic = RegressionHead(width, actions, critic_layers, hidden_size=critic_size, **common)
        actor = DiscreteHead(actor_size, actions, actor_layers, input_size=width, **common)
        super().__init__(encoder, critic_encoder, (actor, critic))

    def compute_actor(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'logit': [B, N]}``."""
        return self.actor_head(self.actor_feature(inputs))

    def compute_critic(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'q_value': [B, N]}``."""
        return {"q_value": self.critic_head(self.critic_feature(inputs))["pred"]}
