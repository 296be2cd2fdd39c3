"""A network for images (He et al. 2016, "Deep Residual Learning for Image Recognition")."""

import torch
from torch import nn


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with a shortcut."""

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
    """Four stages of basic blocks and a linear layer.

    Args:
        layers: Blocks of each stage; each but the first halves the image and doubles the channels.
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
    """The network of 18 layers for images ``[B, 3, 224, 224]`` and 1000 classes."""
    return ResNet()
