"""Networks of one shape that are computed in one pass."""

import math
from itertools import pairwise

import torch
from torch import nn

from ding.torch_utils.network.activation import Activation, activation_layers


class EnsembleLinear(nn.Module):
    """``E`` linear layers side by side: ``[E, B, in]`` (or the same ``[B, in]`` for all) to
    ``[E, B, out]``. Each starts as an ``nn.Linear`` does."""

    def __init__(self, ensemble_num: int, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(ensemble_num, in_features, out_features))
        self.bias = nn.Parameter(torch.empty(ensemble_num, 1, out_features))
        bound = 1 / math.sqrt(in_features)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() == 2:
            x = x.expand(len(self.weight), -1, -1)
        return torch.baddbmm(self.bias, x, self.weight)


def ensemble_mlp(
    ensemble_num: int, sizes: list[int], output_size: int, activation: Activation
) -> nn.Sequential:
    """The hidden layers of ``ensemble_num`` networks, and their last linear layers."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers.append(EnsembleLinear(ensemble_num, n_in, n_out))
        layers += activation_layers(activation)
    return nn.Sequential(*layers, EnsembleLinear(ensemble_num, sizes[-1], output_size))
