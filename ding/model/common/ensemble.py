"""Networks of one shape that are computed in one pass."""

import math
from itertools import pairwise

import torch
from torch import nn

from ding.torch_utils.network.activation import Activation, activation_layers


class EnsembleLinear(nn.Module):
    """``E`` linear layers in one: ``[E, B, in]`` (or the same ``[B, in]`` for all) to
    ``[E, B, out]``. Each starts as an ``nn.Linear`` does.

    Parameters have the shapes that old checkpoints have, those of a grouped convolution: ``weight``
    ``[E * out, in, 1]``, ``bias`` ``[E * out]``, layer by layer.
    """

    def __init__(self, ensemble_num: int, in_features: int, out_features: int) -> None:
        super().__init__()
        self.shape = ensemble_num, out_features, in_features
        self.weight = nn.Parameter(torch.empty(ensemble_num * out_features, in_features, 1))
        self.bias = nn.Parameter(torch.empty(ensemble_num * out_features))
        bound = 1 / math.sqrt(in_features)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        number, out, _ = self.shape
        if x.dim() == 2:
            x = x.expand(number, -1, -1)
        weight = self.weight.view(self.shape).transpose(1, 2)
        return torch.baddbmm(self.bias.view(number, 1, out), x, weight)


class EnsembleMLP(nn.Module):
    """``ensemble_num`` networks of the same layers; ``sizes`` are those before the output."""

    def __init__(
        self, ensemble_num: int, sizes: list[int], output_size: int, activation: Activation
    ) -> None:
        super().__init__()
        layers = [
            nn.Sequential(EnsembleLinear(ensemble_num, *pair), *activation_layers(activation))
            for pair in pairwise(sizes)
        ]
        last = nn.Sequential(EnsembleLinear(ensemble_num, sizes[-1], output_size))
        self.pred = nn.Sequential(*layers, last)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[E, B, sizes[0]]`` or ``[B, sizes[0]]`` to ``[E, B, output_size]``."""
        return self.pred(x)
