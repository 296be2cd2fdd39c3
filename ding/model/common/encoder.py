"""Encoders: from an observation to a feature vector of the width `output_size`."""

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import nn

from ding.model.common.dense import Dense, linear_layers, run_layers
from ding.model.common.impala_encoder import (
    IMPALACnnDownStack,
    IMPALACnnResidualBlock,
    IMPALAConvEncoder,
)
from ding.torch_utils.model_helper import quick_layout
from ding.torch_utils.network import ResBlock, ResFCBlock, conv2d_block
from ding.torch_utils.network.activation import Activation, activation_or_identity
from ding.utils.default_helper import sizes_of
from ding.utils.errors import ConfigError, DataError

__all__ = [
    "ConvEncoder",
    "FCEncoder",
    "IMPALACnnDownStack",
    "IMPALACnnResidualBlock",
    "IMPALAConvEncoder",
    "build_encoder",
]


def build_encoder(
    obs_shape: int | Sequence[int],
    hidden_size_list: Sequence[int],
    activation: Activation = nn.ReLU(),
    norm_type: str | None = None,
    dropout: float | None = None,
) -> "FCEncoder | ConvEncoder":
    """The encoder for an observation shape.

    Args:
        obs_shape: ``n`` or ``[n]`` for vectors, ``[C, H, W]`` for images.
        hidden_size_list: See `FCEncoder` and `ConvEncoder`, also for the other arguments.
        activation: A module or its name.
        norm_type: Normalisation of layers.
        dropout: For vectors only.

    Raises:
        ConfigError: Any other shape.
    """
    shape = _as_tuple(obs_shape)
    if len(shape) == 1:
        return FCEncoder(
            shape[0], hidden_size_list, activation=activation, norm_type=norm_type, dropout=dropout
        )
    if len(shape) == 3:
        return ConvEncoder(shape, hidden_size_list, activation, norm_type=norm_type)
    raise ConfigError(
        f"obs_shape is {obs_shape!r}; expected an int or [n] for vectors, or [C, H, W] for images. "
        "Flatten the observation, or pass a custom encoder."
    )


class FCEncoder(nn.Module):
    """Linear layers for vectors: ``[*, obs_shape] float32`` to ``[*, hidden_size_list[-1]]``.

    Args:
        obs_shape: Numbers per observation, ``n`` or ``[n]``.
        hidden_size_list: Width of each layer.
        res_block: Whether each size after the first is a residual block instead of a layer; all
            sizes must then be equal.
        activation: A module or its name (``'tanh'``).
        norm_type: ``'BN'``, ``'LN'`` or none, after each layer.
        dropout: Dropout probability after each layer; none if not given.

    Raises:
        ConfigError: Inconsistent shapes or sizes.
    """

    def __init__(
        self,
        obs_shape: int,
        hidden_size_list: Sequence[int],
        res_block: bool = False,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.obs_shape = _as_tuple(obs_shape)
        if len(self.obs_shape) != 1:
            raise ConfigError(f"FCEncoder: obs_shape is {obs_shape!r}; expected an int or [n]")
        sizes = _checked_sizes(hidden_size_list, "FCEncoder")
        self.output_size = sizes[-1]
        if res_block and len(set(sizes)) > 1:
            raise ConfigError(f"FCEncoder: res_block needs one width, hidden_size_list is {sizes}")

        options = (activation, norm_type, dropout)
        # The names are those of old checkpoints.
        self.init, *after = linear_layers([self.obs_shape[0], sizes[0]], *options)
        self.after_init = Dense(*after)
        if res_block:
            self.main = Dense(*(ResFCBlock(n, activation, norm_type, dropout) for n in sizes[1:]))
        else:
            self.main = Dense(*linear_layers(sizes, *options))

    @property
    def stages(self) -> tuple[nn.Module, ...]:
        """The layers and stacks of layers, in order of computation."""
        modules = self._modules
        return modules["init"], modules["after_init"], modules["main"]  # type: ignore[return-value]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return run_layers(self.stages, x)
        except RuntimeError as err:
            _explain(self, x, err)


class ConvEncoder(nn.Module):
    """Convolutions and a linear layer for images: ``[B, C, H, W] float32`` to ``[B, last size]``.

    The first ``len(kernel_size)`` of ``hidden_size_list`` are channels of convolutions, the last is
    the width of the output; sizes between them, equal to the last channels, are residual blocks.

    Args:
        obs_shape: ``[C, H, W]``.
        hidden_size_list: Channels and width, as described above.
        activation: A module or its name (``'tanh'``).
        kernel_size: For each convolution, in pixels.
        stride: For each convolution, in pixels.
        padding: For each convolution, in pixels; none if not given.
        layer_norm: Whether to apply layer norm to the output.
        norm_type: Norm of the residual blocks: ``'BN'``, ``'LN'``, ``'IN'``, ``'GN'`` or none.

    Raises:
        ConfigError: Inconsistent shapes or sizes.
    """

    def __init__(
        self,
        obs_shape: Sequence[int],
        hidden_size_list: Sequence[int] = [32, 64, 64, 128],
        activation: Activation = nn.ReLU(),
        kernel_size: Sequence[int] = [8, 4, 3],
        stride: Sequence[int] = [4, 2, 1],
        padding: Sequence[int] | None = None,
        layer_norm: bool | None = False,
        norm_type: str | None = None,
    ) -> None:
        super().__init__()
        self.obs_shape = _as_tuple(obs_shape)
        if len(self.obs_shape) != 3:
            raise ConfigError(f"ConvEncoder: obs_shape is {obs_shape!r}; expected [C, H, W]")
        sizes = _checked_sizes(hidden_size_list, "ConvEncoder")
        padding = [0] * len(kernel_size) if padding is None else padding
        _check_convolutions(sizes, kernel_size, stride, padding)
        channels = [self.obs_shape[0], *sizes[: len(kernel_size)]]
        between = sizes[len(kernel_size) : -1]
        layers: list[nn.Module] = []
        for n_in, n_out, kernel, step, pad in zip(
            channels, channels[1:], kernel_size, stride, padding
        ):
            layers += conv2d_block(
                n_in, n_out, kernel, step, pad, activation=activation, norm_type=norm_type
            )
        layers += [ResBlock(n, activation, norm_type) for n in between]
        layers.append(nn.Flatten())
        self.output_size = sizes[-1]
        # The names are those of old checkpoints.
        self.main = nn.Sequential(*layers)
        self.mid = nn.Linear(self._flat_size(layers), self.output_size)
        self.norm = nn.LayerNorm(self.output_size) if layer_norm else nn.Identity()
        self.act = activation_or_identity(activation)

    def _flat_size(self, layers: list[nn.Module]) -> int:
        # In training mode, batch norm would include the zeros in its statistics.
        probe = nn.Sequential(*layers).eval()
        try:
            with torch.no_grad():
                size = probe(torch.zeros(1, *self.obs_shape)).shape[1]
        except RuntimeError as err:
            raise ConfigError(
                f"ConvEncoder: images of {list(self.obs_shape)} are too small for these kernels "
                f"and strides ({err})"
            ) from err
        probe.train()
        return size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return self.act(self.norm(self.mid(self.main(quick_layout(x)))))
        except RuntimeError as err:
            _explain(self, x, err)


def _as_tuple(shape: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(sizes_of(shape, "obs_shape"))


def _checked_sizes(hidden_size_list: Sequence[int], who: str) -> list[int]:
    sizes = list(hidden_size_list)
    if not sizes or any(not isinstance(n, int) or n < 1 for n in sizes):
        raise ConfigError(f"{who}: hidden_size_list is {sizes}; expected positive ints, at least 1")
    return sizes


def _check_convolutions(
    sizes: list[int], kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> None:
    number = len(kernel_size)
    if not number == len(stride) == len(padding) or number > len(sizes):
        raise ConfigError(
            f"ConvEncoder: kernel_size {kernel_size}, stride {stride} and padding {padding} "
            f"need one length, and at least that many sizes in hidden_size_list {sizes}"
        )
    channels, between = sizes[number - 1], sizes[number:-1]
    if any(n != channels for n in between):
        raise ConfigError(
            f"ConvEncoder: the sizes {between} between convolutions and output are residual "
            f"blocks and have to equal the {channels} channels before them"
        )


def _explain(encoder: Any, x: torch.Tensor, err: RuntimeError) -> NoReturn:
    """Explain why torch rejected an input; checked only after the error, at no cost before."""
    shape = encoder.obs_shape
    if tuple(x.shape[-len(shape) :]) != shape:
        raise DataError(
            f"{type(encoder).__name__}: an observation batch of shape {list(x.shape)} came; "
            f"expected [batch, {', '.join(map(str, shape))}] as in the model's obs_shape"
        ) from err
    if x.dtype != torch.get_default_dtype():
        raise DataError(
            f"{type(encoder).__name__}: observations of {x.dtype} came; "
            f"expected {torch.get_default_dtype()} (cast them before the model)"
        ) from err
    raise err
