"""Residual blocks (He et al. 2016, "Deep Residual Learning for Image Recognition")."""

import functools

import torch
from torch import nn

from ding.torch_utils.network.activation import Activation, activation_or_identity
from ding.torch_utils.network.nn_module import conv2d_block, fc_block


class ResBlock(nn.Module):
    """Convolutions with a residual connection, ``[B, C, H, W]``.

    Args:
        res_type: ``basic`` (two 3×3 convolutions), ``bottleneck`` (1×1, 3×3, 1×1) or
            ``downsample`` (basic with stride 2 and a convolution in the shortcut).
        out_channels: By default ``in_channels``; only ``downsample`` can change the number.
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
    """Two linear layers with a residual connection, ``[B, in_channels]`` to the same shape.

    Args:
        in_channels: Width.
        activation: A module or its name.
        norm_type: ``'BN'``, ``'LN'`` or None, after each layer.
        dropout: Dropout probability of the output; None for no dropout.
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


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with a residual connection."""

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.act = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or in_channels != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(self.act(self.bn1(self.conv1(x)))))
        return self.act(out + self.downsample(x))


class ResNet(nn.Module):
    """Residual network: stages of basic blocks and a linear layer.

    Args:
        layers: Blocks per stage; each stage except the first halves the image and doubles
            the channels.
        num_classes: Number of outputs.
        in_chans: Channels of the image.
    """

    def __init__(
        self, layers: tuple[int, ...] = (2, 2, 2, 2), num_classes: int = 1000, in_chans: int = 3
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_chans, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.act = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        width, self.stage_num = 64, len(layers)
        for stage, count in enumerate(layers):
            channels = 64 * 2**stage
            strides = [1 if stage == 0 else 2] + [1] * (count - 1)
            inputs = [width] + [channels] * (count - 1)
            blocks = [BasicBlock(a, channels, stride) for a, stride in zip(inputs, strides)]
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
            width = channels
        self.fc = nn.Linear(width, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images ``[B, in_chans, H, W]`` to ``[B, num_classes]``."""
        x = self.maxpool(self.act(self.bn1(self.conv1(x))))
        for stage in range(self.stage_num):
            x = self.get_submodule(f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))


def resnet18() -> ResNet:
    """ResNet with 18 layers for images ``[B, 3, 224, 224]`` and 1000 classes."""
    return ResNet()
