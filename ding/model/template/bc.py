"""Networks for behaviour cloning: from an observation to the demonstrator's action."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.dense import linear_layers
from ding.model.common.encoder import ConvEncoder
from ding.model.common.head import (
    DiscreteHead,
    DuelingHead,
    RegressionHead,
    ReparameterizationHead,
    flat_size,
    vector_size,
)
from ding.model.common.utils import takes_as
from ding.model.template.actor_critic import continuous_output
from ding.model.template.q_learning import DQN, QNetwork
from ding.torch_utils.network.activation import Activation
from ding.utils.default_helper import sizes_of
from ding.utils.errors import ConfigError, check_one_of
from ding.utils.registry_factory import MODEL_REGISTRY

_KERNELS = [8, 4, 3]


@MODEL_REGISTRY.register("discrete_bc")
class DiscreteBC(QNetwork):
    """Logits of actions: ``[B, *obs_shape] float32`` to ``{'logit': [B, action_shape]}``.

    With several action dimensions ``logit`` is a list with one tensor per dimension.

    Args:
        obs_shape: An int or ``[n]`` for vectors, ``[C, H, W]`` for images.
        head_hidden_size: The encoder's last size unless given.
        strides: Strides of an image encoder's convolutions. Three strides have the usual kernels 8,
            4 and 3; with another number of strides, all kernels are 3.
    """

    @takes_as(DQN, ("dropout", "init_bias", "noise"), after="norm_type")
    def __init__(self, *args: Any, strides: Sequence[int] | None = None, **kwargs: Any) -> None:
        self._head_cls = DuelingHead if kwargs.pop("dueling") else DiscreteHead
        encoder = None if strides is None else _strided_encoder(strides, kwargs)
        super().__init__(**kwargs, encoder=encoder)


def _strided_encoder(strides: Sequence[int], options: dict[str, Any]) -> ConvEncoder:
    image = sizes_of(options["obs_shape"], "DiscreteBC: obs_shape")
    if len(image) != 3:
        raise ConfigError(
            f"DiscreteBC: strides {list(strides)} are of images, and obs_shape is "
            f"{options['obs_shape']}; expected [C, H, W], or no strides"
        )
    kernels = _KERNELS if len(strides) == len(_KERNELS) else [3] * len(strides)
    sizes, activation = options["encoder_hidden_size_list"], options["activation"]
    return ConvEncoder(image, sizes, activation, kernels, strides, norm_type=options["norm_type"])


@MODEL_REGISTRY.register("continuous_bc")
class ContinuousBC(nn.Module):
    """Actions in (-1, 1) for an observation ``[B, obs_shape] float32``.

    Args:
        action_space: ``'regression'``: ``{'action': [B, A]}``. ``'reparameterization'``: a
            Gaussian, to be squashed by tanh, ``{'logit': [mu, sigma]}`` with ``[B, A]`` each.
    """

    action_spaces = ("regression", "reparameterization")

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        action_space: str,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
    ) -> None:
        super().__init__()
        check_one_of("ContinuousBC: action_space", action_space, self.action_spaces)
        self.action_space = action_space
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        width, layers = actor_head_hidden_size, actor_head_layer_num
        size = flat_size(action_shape)
        head: nn.Module
        if action_space == "regression":
            head = RegressionHead(width, size, layers, final_tanh=True, **common)
        else:
            head = ReparameterizationHead(width, size, layers, "conditioned", **common)
        self.actor = nn.Sequential(
            *linear_layers([vector_size(obs_shape, "ContinuousBC"), width], **common), head
        )

    def forward(self, inputs: torch.Tensor) -> dict[str, Any]:
        return continuous_output(self.actor(inputs), inputs)
