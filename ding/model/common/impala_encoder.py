"""The residual image encoder of IMPALA (Espeholt et al. 2018, figure 3, right)."""

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn import functional as F

from ding.torch_utils.model_helper import quick_layout
from ding.utils.default_helper import sizes_of
from ding.utils.errors import ConfigError

Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)


def _scaled_(layer: Layer, scale: float) -> Layer:
    """Set the norm of each output unit's weights to ``scale``, and its bias to 0, in place."""
    with torch.no_grad():
        dims = list(range(1, layer.weight.dim()))
        layer.weight.mul_(scale / torch.linalg.vector_norm(layer.weight, dim=dims, keepdim=True))
        layer.bias.zero_()  # type: ignore[union-attr]  # built with a bias
    return layer


class IMPALACnnResidualBlock(nn.Module):
    """``x + conv(relu(conv(relu(x))))``; the shape ``[B, in_channnel, H, W]`` is kept.

    Args:
        in_channnel: Channels of input and output.
        scale: Gain of the initial weights, shared by the two convolutions.
        batch_norm: Whether each convolution's input is normalised over the batch.
    """

    def __init__(self, in_channnel: int, scale: float = 1, batch_norm: bool = False) -> None:
        super().__init__()
        # Two layers share the block's gain.
        scale = math.sqrt(scale)
        self.conv0 = _scaled_(nn.Conv2d(in_channnel, in_channnel, 3, padding=1), scale)
        self.conv1 = _scaled_(nn.Conv2d(in_channnel, in_channnel, 3, padding=1), scale)
        self.bn0 = nn.BatchNorm2d(in_channnel) if batch_norm else nn.Identity()
        self.bn1 = nn.BatchNorm2d(in_channnel) if batch_norm else nn.Identity()

    def residual(self, x: torch.Tensor) -> torch.Tensor:
        """The residual branch, ``[B, in_channnel, H, W]``."""
        x = self.conv0(F.relu(self.bn0(x)))
        return self.conv1(F.relu(self.bn1(x)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.residual(x)


class IMPALACnnDownStack(nn.Module):
    """A convolution, a max-pool that halves height and width, then residual blocks.

    ``[B, in_channnel, H, W]`` to ``[B, out_channel, ceil(H / 2), ceil(W / 2)]``; without the pool H
    and W are unchanged.

    Args:
        in_channnel: Channels of the input. (The name is that of the public API.)
        nblock: Number of residual blocks.
        out_channel: Channels of the output.
        scale: Gain of the initial weights, shared by the blocks.
        pool: Whether there is a max-pool.
        **kwargs: Arguments of each `IMPALACnnResidualBlock`.
    """

    def __init__(
        self,
        in_channnel: int,
        nblock: int,
        out_channel: int,
        scale: float = 1,
        pool: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.out_channel = out_channel
        self.pool = pool
        self.firstconv = _scaled_(nn.Conv2d(in_channnel, out_channel, 3, padding=1), 1.0)
        block_scale = scale / math.sqrt(nblock) if nblock else scale
        self.blocks = nn.Sequential(
            *(IMPALACnnResidualBlock(out_channel, block_scale, **kwargs) for _ in range(nblock))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.firstconv(x)
        if self.pool:
            x = F.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        return self.blocks(x)

    def output_shape(self, inshape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Map the shape ``(C, H, W)`` of the input to that of the output."""
        _, height, width = inshape
        if self.pool:
            return self.out_channel, (height + 1) // 2, (width + 1) // 2
        return self.out_channel, height, width


class IMPALAConvEncoder(nn.Module):
    """Images ``[B, C, H, W]``, any dtype, to ``[B, outsize] float32`` (Espeholt et al. 2018).

    Args:
        obs_shape: ``[C, H, W]``.
        channels: Output channels of each stack of convolution, pool and residual blocks.
        outsize: Numbers per image.
        scale_ob: Divisor of pixel values.
        nblock: Residual blocks in each stack.
        final_relu: Whether to apply ReLU to the output.
        **kwargs: Arguments of each `IMPALACnnResidualBlock` (``batch_norm``).

    Raises:
        ConfigError: ``obs_shape`` is not an image shape.
    """

    name = "IMPALAConvEncoder"

    def __init__(
        self,
        obs_shape: Sequence[int],
        channels: Sequence[int] = (16, 32, 32),
        outsize: int = 256,
        scale_ob: float = 255.0,
        nblock: int = 2,
        final_relu: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.obs_shape = shape = tuple(sizes_of(obs_shape, "IMPALAConvEncoder: obs_shape"))
        if len(shape) != 3:
            raise ConfigError(f"IMPALAConvEncoder: obs_shape is {obs_shape!r}; expected [C, H, W]")
        self.scale_ob = scale_ob
        self.output_size = outsize
        scale = 1 / math.sqrt(len(channels))
        stacks = []
        for out_channel in channels:
            stacks.append(IMPALACnnDownStack(shape[0], nblock, out_channel, scale, **kwargs))
            shape = stacks[-1].output_shape(shape)
        self.stacks = nn.Sequential(*stacks)
        self.dense = _scaled_(nn.Linear(math.prod(shape), outsize), math.sqrt(2))
        self.final_relu = final_relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stacks(quick_layout(x.to(self.dense.weight.dtype) / self.scale_ob))
        x = self.dense(F.relu(x.flatten(1)))
        return F.relu(x) if self.final_relu else x
