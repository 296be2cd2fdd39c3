"""Linear and convolutional blocks, MLPs, and noisy linear layers."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ding.torch_utils.network.activation import Activation, activation_layers
from ding.utils.types import State

_PADDINGS: dict[str, Callable[[int], nn.Module]] = {
    "reflect": nn.ReflectionPad2d,
    "replication": nn.ReplicationPad2d,
}


def fc_block(
    in_channels: int,
    out_channels: int,
    activation: Activation = None,
    norm_type: str | None = None,
    use_dropout: bool = False,
    dropout_probability: float = 0.5,
) -> nn.Sequential:
    """A linear layer, then optional normalisation, activation and dropout.

    Args:
        in_channels: Width of the input ``[*, in_channels]``.
        out_channels: Width of the output ``[*, out_channels]``.
        activation: A module or its name (``'tanh'``); None for no activation.
        norm_type: ``'BN'``, ``'LN'`` or None.
        use_dropout: Whether to add dropout.
        dropout_probability: Probability of zeros.
    """
    after = layers_after(out_channels, activation, norm_type, use_dropout, dropout_probability)
    return nn.Sequential(nn.Linear(in_channels, out_channels), *after)


def conv2d_block(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    pad_type: str = "zero",
    activation: Activation = None,
    norm_type: str | None = None,
    num_groups_for_gn: int = 1,
    bias: bool = True,
) -> nn.Sequential:
    """A 2-d convolution, then optional normalisation and activation.

    Args:
        pad_type: ``zero``, ``reflect`` or ``replication``.
        norm_type: ``BN``, ``IN``, ``SyncBN``, ``LN`` (over all channels and pixels of a sample)
            or ``GN`` with ``num_groups_for_gn`` groups.
    """
    block: list[nn.Module] = []
    if pad_type != "zero":
        if pad_type not in _PADDINGS:
            raise ValueError(f"got pad_type {pad_type!r}: expected one of zero, {[*_PADDINGS]}")
        block.append(_PADDINGS[pad_type](padding))
        padding = 0
    block.append(
        nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
    )
    if norm_type == "LN":
        # One group normalises over channels and pixels, independent of the image's size.
        block.append(nn.GroupNorm(1, out_channels))
    elif norm_type == "GN":
        block.append(nn.GroupNorm(num_groups_for_gn, out_channels))
    elif norm_type is not None:
        block.append(build_normalization(norm_type, dim=2)(out_channels))
    return nn.Sequential(*block, *activation_layers(activation))


class MLP(nn.Sequential):
    """Multi-layer perceptron, ``[B, in_channels]`` to ``[B, out_channels]``.

    Args:
        hidden_channels: Width of all layers except the last.
        layer_num: Number of layers.
        layer_fn: Creates a layer from its input and output width; by default ``nn.Linear``.
        norm_type: Normalisation after each layer.
        output_activation: Whether the last layer has an activation and dropout.
        output_norm: Whether the last layer has a normalisation.
        last_linear_layer_init_zero: Whether to initialise the last layer with zeros.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        layer_num: int,
        layer_fn: Callable[[int, int], nn.Module] | None = None,
        activation: Activation = None,
        norm_type: str | None = None,
        use_dropout: bool = False,
        dropout_probability: float = 0.5,
        output_activation: bool = True,
        output_norm: bool = True,
        last_linear_layer_init_zero: bool = False,
    ) -> None:
        if layer_num < 1:
            raise ValueError(f"got layer_num={layer_num}: an MLP has at least one layer")
        make = layer_fn or nn.Linear
        widths = [in_channels, *[hidden_channels] * (layer_num - 1), out_channels]
        modules: list[nn.Module] = []
        for index, (inside, outside) in enumerate(itertools.pairwise(widths)):
            last = index == layer_num - 1
            modules.append(layer := make(inside, outside))
            modules += layers_after(
                outside,
                activation if not last or output_activation else None,
                norm_type if not last or output_norm else None,
                use_dropout and (not last or output_activation),
                dropout_probability,
            )
        super().__init__(*modules)
        if last_linear_layer_init_zero:
            with torch.no_grad():
                for param in layer.parameters():
                    param.zero_()


def layers_after(
    width: int,
    activation: Activation,
    norm_type: str | None,
    use_dropout: bool,
    dropout_probability: float,
) -> list[nn.Module]:
    """Optional normalisation, activation and dropout after a linear layer of ``width`` outputs."""
    modules: list[nn.Module] = []
    if norm_type is not None:
        modules.append(build_normalization(norm_type, dim=1)(width))
    modules += activation_layers(activation)
    if use_dropout:
        modules.append(nn.Dropout(dropout_probability))
    return modules


_BY_DIM: dict[str, dict[int, Callable[..., nn.Module]]] = {
    "BN": {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d},
    "IN": {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d},
}
_ANY_DIM: dict[str, Callable[..., nn.Module]] = {
    "LN": nn.LayerNorm,
    "SyncBN": nn.SyncBatchNorm,
    "GN": nn.GroupNorm,
}


def build_normalization(norm_type: str, dim: int | None = None) -> Callable[..., nn.Module]:
    """The class of a normalisation layer.

    Args:
        norm_type: ``BN``, ``IN``, ``LN``, ``GN`` or ``SyncBN``.
        dim: Number of spatial dimensions, 1 for features; only ``BN`` and ``IN`` need it.

    Raises:
        KeyError: The type or dimension is unknown.
    """
    if norm_type in _ANY_DIM:
        return _ANY_DIM[norm_type]
    if norm_type not in _BY_DIM:
        known = [*_BY_DIM, *_ANY_DIM]
        raise KeyError(f"got norm_type {norm_type!r}: expected one of {known}")
    if dim not in _BY_DIM[norm_type]:
        raise KeyError(f"got dim {dim!r} for {norm_type}: expected 1, 2 or 3")
    return _BY_DIM[norm_type][dim]


def one_hot(val: torch.LongTensor, num: int, num_first: bool = False) -> torch.FloatTensor:
    """Encode class indices.

    Args:
        val: Any shape ``[*]``, values in ``[0, num)``.
        num: Number of classes.
        num_first: Whether the class dimension is first instead of last.

    Returns:
        float32 ``[*, num]`` or ``[num, *]``.
    """
    if not isinstance(val, torch.Tensor):
        raise TypeError(f"got {type(val).__name__}: one_hot takes a tensor of class indices")
    index = val.long().unsqueeze(-1)
    encoded = torch.zeros(*val.shape, num, device=val.device).scatter_(-1, index, 1.0)
    return encoded.movedim(-1, 0) if num_first else encoded  # type: ignore[return-value]


class NoiseLinearLayer(nn.Module):
    """A linear layer with weights ``mu + sigma * noise`` (Fortunato et al. 2018, "Noisy Networks
    for Exploration"), or ``mu`` if noise is off.

    The noise is factorised Gaussian (equations 10 and 11 of the paper): each forward pass draws one
    number per input and one per output from torch's global generator.

    Args:
        sigma0: The initial ``sigma`` is ``sigma0`` divided by the square root of ``in_channels``.

    Attributes:
        enable_noise: ``None`` adds noise only in training mode; ``True`` and ``False`` apply in
            both modes (a collecting policy is in evaluation mode and explores with the noise).
    """

    def __init__(self, in_channels: int, out_channels: int, sigma0: float = 0.4) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.sigma0 = sigma0
        self.enable_noise: bool | None = None
        self.weight_mu = nn.Parameter(torch.empty(out_channels, in_channels))
        self.weight_sigma = nn.Parameter(torch.empty(out_channels, in_channels))
        self.bias_mu = nn.Parameter(torch.empty(out_channels))
        self.bias_sigma = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise the weights."""
        bound = 1 / math.sqrt(self.in_channels)
        nn.init.uniform_(self.weight_mu, -bound, bound)
        nn.init.uniform_(self.bias_mu, -bound, bound)
        nn.init.constant_(self.weight_sigma, self.sigma0 * bound)
        nn.init.constant_(self.bias_sigma, self.sigma0 * bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[*, in_channels]`` to ``[*, out_channels]``."""
        if not (self.training if self.enable_noise is None else self.enable_noise):
            return F.linear(x, self.weight_mu, self.bias_mu)
        noise = torch.randn(self.in_channels + self.out_channels, device=x.device, dtype=x.dtype)
        noise = noise.sign() * noise.abs().sqrt()
        inputs, outputs = noise.split((self.in_channels, self.out_channels))
        weight = torch.addcmul(self.weight_mu, self.weight_sigma, torch.outer(outputs, inputs))
        return F.linear(x, weight, torch.addcmul(self.bias_mu, self.bias_sigma, outputs))

    def _load_from_state_dict(
        self, state_dict: State, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        # Old checkpoints also contain the noise of the last forward pass.
        for name in ("weight_eps", "bias_eps"):
            state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, sigma0={self.sigma0}"


def set_noise_mode(module: nn.Module, mode: bool | None) -> None:
    """Set ``enable_noise`` of every `NoiseLinearLayer` in ``module``, including wrapped modules."""
    for layer in module.modules():
        if isinstance(layer, NoiseLinearLayer):
            layer.enable_noise = mode


def noise_block(
    in_channels: int,
    out_channels: int,
    activation: Activation = None,
    norm_type: str | None = None,
    use_dropout: bool = False,
    dropout_probability: float = 0.5,
    sigma0: float = 0.4,
) -> nn.Sequential:
    """`fc_block` with a noisy linear layer (Fortunato et al. 2018).

    Arguments as for `fc_block`; ``sigma0`` as for `NoiseLinearLayer`.
    """
    after = layers_after(out_channels, activation, norm_type, use_dropout, dropout_probability)
    return nn.Sequential(NoiseLinearLayer(in_channels, out_channels, sigma0), *after)
