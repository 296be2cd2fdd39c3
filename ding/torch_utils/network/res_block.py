"""Residual blocks (He et al. 2016, "Deep Residual Learning for Image Recognition")."""

import functools

import torch
from torch import nn

from ding.torch_utils.network.activation import Activation, activation_or_identity
from ding.torch_utils.network.nn_module import conv2d_block, fc_block


class ResBlock(nn.Module):
    """Convolutions with a shortcut, ``[B, C, H, W]``.

    Args:
        res_type: ``basic`` (two 3×3 convolutions), ``bottleneck`` (1×1, 3×3, 1×1) or
            ``downsample`` (basic with stride 2 and a convolution in the shortcut).
        out_channels: ``in_channels`` by default; only ``downsample`` can change the number.
    """

    def __init__(
        self,
        in_channels: int,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = "BN",
        res_type: str = "basic",
        bias: bool = True,
        out_channels: int | None = None,
    ) -> None:
        super().__init__()
        if res_type not in ("basic", "bottleneck", "downsample"):
            raise ValueError(
                f"got res_type {res_type!r}: expected 'basic', 'bottleneck' or 'downsample'"
            )
        width = in_channels if out_channels is None else out_channels
        if res_type != "downsample" and width != in_channels:
            raise ValueError(f"res_type {res_type!r} keeps {in_channels} channels, got {width}")
        conv = functools.partial(conv2d_block, norm_type=norm_type, bias=bias)
        self.act = activation_or_identity(activation)
        self.shortcut: nn.Module = nn.Identity()
        if res_type == "bottleneck":
            self.body = nn.Sequential(
                conv(in_channels, width, 1, activation=activation),
                conv(width, width, 3, 1, 1, activation=activation),
                conv(width, width, 1),
            )
            return
        stride = 2 if res_type == "downsample" else 1
        self.body = nn.Sequential(
            conv(in_channels, width, 3, stride, 1, activation=activation),
            conv(width, width, 3, 1, 1),
        )
        if res_type == "downsample":
            self.shortcut = conv(in_channels, width, 3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.shortcut(x) + self.body(x))


class ResFCBlock(nn.Module):
    """Two linear layers with a shortcut, ``[B, in_channels]`` to the same.

    Args:
        in_channels: Width.
        activation: A module, or the name of one.
        norm_type: ``'BN'``, ``'LN'`` or none, after each layer.
        dropout: Probability of zeros in the output; none if not given.
    """

    def __init__(
        self,
        in_channels: int,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = "BN",
        dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.act = activation_or_identity(activation)
        self.dropout: nn.Module = nn.Identity() if dropout is None else nn.Dropout(dropout)
        self.body = nn.Sequential(
            fc_block(in_channels, in_channels, activation, norm_type),
            fc_block(in_channels, in_channels, None, norm_type),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.act(x + self.body(x)))
