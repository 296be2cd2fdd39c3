"""Networks for value-based policies."""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.dense import leaves
from ding.model.common.distributional_head import (
    DistributionHead,
    FractionProposalHead,
    ImplicitQuantileHead,
    QuantileHead,
    RainbowHead,
)
from ding.model.common.encoder import build_encoder
from ding.model.common.head import (
    BranchingHead,
    DiscreteHead,
    DuelingHead,
    build_discrete_head,
)
from ding.model.common.old_names import TwoForms
from ding.model.common.utils import takes_as
from ding.model.template.drqn import DRQN
from ding.torch_utils.network import NoiseLinearLayer
from ding.torch_utils.network.activation import Activation
from ding.utils.default_helper import one_size
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY

__all__ = ["BDQ", "C51DQN", "DQN", "DRQN", "FQF", "IQN", "QRDQN", "RainbowDQN"]


class QNetwork(nn.Module):
    """An encoder and a head, or one head for each action dimension.

    Args:
        obs_shape: An int or ``[n]`` for vectors, ``[C, H, W]`` for images.
        head_hidden_size: The encoder's last size unless given.
        encoder: Replaces the encoder that `build_encoder` would choose.
        head_kwargs: Further arguments of the head.
    """

    _head_cls: type[nn.Module] = DiscreteHead

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        *,
        dropout: float | None = None,
        encoder: Any = None,
        **head_kwargs: Any,
    ) -> None:
        super().__init__()
        options = (activation, norm_type, dropout)
        self.encoder = encoder or build_encoder(obs_shape, encoder_hidden_size_list, *options)
        if dropout is not None:
            head_kwargs["dropout"] = dropout
        self.head = build_discrete_head(
            self._head_cls,
            head_hidden_size or self.encoder.output_size,
            action_shape,
            input_size=self.encoder.output_size,
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
            **head_kwargs,
        )

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return self.head(self.encoder(x))


@MODEL_REGISTRY.register("dqn")
class DQN(QNetwork):
    """Q-network: float32 ``[B, *obs_shape]`` to ``{"logit": [B, action_shape]}``.

    With several action dimensions ``logit`` is a list with one tensor per dimension.

    Args:
        obs_shape: An int or ``[n]`` for vectors, ``[C, H, W]`` for images.
        action_shape: Number of actions; a list of them for several action dimensions.
        encoder_hidden_size_list: Widths of the encoder's layers; for images, channels.
        dueling: Whether the head has a state value and advantages (Wang et al. 2016).
        head_hidden_size: The encoder's last size unless given.
        head_layer_num: Number of layers of the head.
        activation: Activation between layers; a module or its name.
        norm_type: Normalisation between layers, ``'BN'`` or ``'LN'``; none by default.
        dropout: Dropout probability in the head.
        init_bias: Initial bias of the Q-values (of V if dueling), their initial level.
        noise: Noisy linear layers in the head; see `ding.torch_utils.network.NoiseLinearLayer`.

    Example:

        >>> import torch
        >>> from ding.model import DQN
        >>> DQN(obs_shape=4, action_shape=2)(torch.zeros(8, 4))["logit"].shape
        torch.Size([8, 2])
    """

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        dueling: bool = True,
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        dropout: float | None = None,
        init_bias: float | None = None,
        noise: bool = False,
    ) -> None:
        self._head_cls = DuelingHead if dueling else DiscreteHead
        super().__init__(
            *(obs_shape, action_shape, encoder_hidden_size_list, head_hidden_size, head_layer_num),
            *(activation, norm_type),
            dropout=dropout,
            noise=noise,
        )
        if init_bias is not None:
            self._set_value_bias(init_bias)

    def _set_value_bias(self, value: float) -> None:
        for head in self.head.modules():
            if isinstance(head, (DuelingHead, DiscreteHead)):
                last = [*leaves([head.V if isinstance(head, DuelingHead) else head.Q])][-1]
                bias = last.bias_mu if isinstance(last, NoiseLinearLayer) else last.bias
                nn.init.constant_(bias, value)  # type: ignore[arg-type]


@MODEL_REGISTRY.register("bdq")
class BDQ(TwoForms):
    """Q-values of many action dimensions: ``{'logit': [B, num_branches, bins]}``.

    Networks of old checkpoints divide the encoder's output by ``num_branches + 1``;
    ``feature_scale`` stores the factor.

    Args:
        obs_shape: An int or ``[n]`` for vectors, ``[C, H, W]`` for images.
        num_branches: Number of action dimensions.
        action_bins_per_branch: Number of actions in each dimension.
        layer_num: Hidden layers of each part of the head; see `BranchingHead`.
        head_hidden_size: The encoder's last size unless given.
    """

    feature_scale: torch.Tensor
    _form = "feature_scale"

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        num_branches: int = 0,
        action_bins_per_branch: int = 2,
        layer_num: int = 3,
        a_layer_num: int | None = None,
        v_layer_num: int | None = None,
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        head_hidden_size: int | None = None,
        norm_type: str | None = None,
        activation: Activation = nn.ReLU(),
    ) -> None:
        super().__init__()
        action_bins_per_branch = one_size(
            action_bins_per_branch, "BDQ: action_bins_per_branch", "the actions of each dimension"
        )
        if num_branches < 1 or action_bins_per_branch < 2:
            raise ConfigError(
                f"BDQ: num_branches={num_branches}, action_bins_per_branch="
                f"{action_bins_per_branch}; expected an action of 1 dimension or more, and 2 "
                "choices or more in each"
            )
        self.encoder = build_encoder(obs_shape, encoder_hidden_size_list, activation, norm_type)
        self.head = BranchingHead(
            head_hidden_size or self.encoder.output_size,
            num_branches,
            action_bins_per_branch,
            layer_num,
            a_layer_num,
            v_layer_num,
            activation=activation,
            norm_type=norm_type,
            input_size=self.encoder.output_size,
        )
        self.register_buffer("feature_scale", torch.tensor(1.0))

    def old_form(self) -> torch.Tensor:
        return torch.tensor(1 / (len(self.head.branches) + 1))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return self.head(self.encoder(x) * self.feature_scale)


@MODEL_REGISTRY.register("c51dqn")
class C51DQN(QNetwork):
    """Q-values from a distribution over returns (Bellemare et al. 2017); see `DistributionHead`.

    ``forward(x)``, ``[B, *obs_shape] float32``, returns ``{'logit': [B, N], 'distribution':
    [B, N, n_atom]}``.

    Args:
        obs_shape: As in `build_encoder`; the others as in `DQN`, and:
        v_min: Return of the first atom.
        v_max: Return of the last atom.
        n_atom: Number of equally spaced atoms.
    """

    _head_cls: type[nn.Module] = DistributionHead

    @takes_as(QNetwork, after="norm_type")
    def __init__(
        self,
        *args: Any,
        v_min: float | None = -10,
        v_max: float | None = 10,
        n_atom: int | None = 51,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs, v_min=v_min, v_max=v_max, n_atom=n_atom)


@MODEL_REGISTRY.register("qrdqn")
class QRDQN(QNetwork):
    """Q-values from quantiles of the return (Dabney et al. 2018a); see `QuantileHead`.

    ``forward(x)``, ``[B, *obs_shape] float32``, returns ``{'logit': [B, N], 'q': [B, N, Q], 'tau':
    [B, Q, 1]}``.

    Args:
        obs_shape: As in `build_encoder`; the others as in `DQN`, and:
        num_quantiles: Number of quantiles, Q.
    """

    _head_cls = QuantileHead

    @takes_as(QNetwork, after="head_layer_num")
    def __init__(self, *args: Any, num_quantiles: int = 32, **kwargs: Any) -> None:
        super().__init__(**kwargs, num_quantiles=num_quantiles)


@MODEL_REGISTRY.register("iqn")
class IQN(QNetwork):
    """Q-values from quantiles at randomly drawn fractions (Dabney et al. 2018b).

    ``forward(x)``, ``[B, *obs_shape] float32``, returns ``{'logit': [B, N], 'q': [B, N, Q], 'tau':
    [B, Q, 1]}``; see `ImplicitQuantileHead`.

    Args:
        obs_shape: As in `build_encoder`; the others as in `DQN`, and:
        num_quantiles: Number of drawn quantile fractions, Q.
        quantile_embedding_size: Width of the embedding of a fraction.
    """

    _head_cls: type[nn.Module] = ImplicitQuantileHead

    @takes_as(QNetwork, after="head_layer_num")
    def __init__(
        self,
        *args: Any,
        num_quantiles: int = 32,
        quantile_embedding_size: int = 128,
        **kwargs: Any,
    ) -> None:
        kwargs |= {"quantile_embedding_size": quantile_embedding_size}
        super().__init__(**kwargs, num_quantiles=num_quantiles)


@MODEL_REGISTRY.register("fqf")
class FQF(IQN):
    """Q-values from quantiles at learned fractions; see `FractionProposalHead`."""

    _head_cls = FractionProposalHead


@MODEL_REGISTRY.register("rainbowdqn")
class RainbowDQN(C51DQN):
    """As `C51DQN`, with dueling branches and noisy layers; see `RainbowHead`."""

    _head_cls = RainbowHead


@MODEL_REGISTRY.register("sqn")
class SQN(nn.Module):
    """Two `DQN` networks with the same arguments, and the minimum of their values.

    ``[B, *obs_shape]`` to ``{'q_value': [two tensors [B, N]], 'logit': [B, N]}``.
    """

    @functools.wraps(DQN.__init__)  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.q0 = DQN(*args, **kwargs)
        self.q1 = DQN(*args, **kwargs)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        values = [network(x)["logit"] for network in (self.q0, self.q1)]
        return {"q_value": values, "logit": torch.minimum(*values)}
