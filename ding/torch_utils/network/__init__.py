"""Building blocks of networks."""

from ding.torch_utils.network.activation import build_activation
from ding.torch_utils.network.entities import ScatterConnection, Transformer
from ding.torch_utils.network.nn_module import (
    MLP,
    NoiseLinearLayer,
    build_normalization,
    conv2d_block,
    fc_block,
    noise_block,
    one_hot,
    set_noise_mode,
)
from ding.torch_utils.network.res_block import ResBlock, ResFCBlock, ResNet, resnet18

__all__ = [
    "MLP",
    "NoiseLinearLayer",
    "ResBlock",
    "ResFCBlock",
    "ResNet",
    "ScatterConnection",
    "Transformer",
    "build_activation",
    "build_normalization",
    "conv2d_block",
    "fc_block",
    "noise_block",
    "one_hot",
    "resnet18",
    "set_noise_mode",
]
