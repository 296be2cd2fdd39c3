"""Linear layers of encoders and heads, flat: at small batches nested containers cost time."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from ding.torch_utils.network import fc_block, noise_block
from ding.torch_utils.network.activation import Activation


def linear_layers(
    sizes: Sequence[int],
    activation: Activation,
    norm_type: str | None = None,
    dropout: float | None = None,
    noise: bool = False,
) -> list[nn.Module]:
    """For each two neighbours in ``sizes``: linear, then norm, activation and dropout if given."""
    block = noise_block if noise else fc_block
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += block(n_in, n_out, activation, norm_type, dropout is not None, dropout or 0.0)
    return layers
