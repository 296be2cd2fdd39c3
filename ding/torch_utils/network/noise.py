"""Linear layers with learned noise (Fortunato et al. 2018, "Noisy Networks for Exploration")."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from ding.torch_utils.network.normalization import build_normalization


class NoiseLinearLayer(nn.Module):
    """A linear layer whose weights are ``mu + sigma * noise`` in training and ``mu`` otherwise.

    The noise is factorised Gaussian (equations 10 and 11 of the paper): one draw per input and
    one per output. ``reset_noise`` draws anew; until then every forward pass sees the same.

    Args:
        sigma0: Initial noise, times one over the square root of ``in_channels``.
    """

    weight_eps: torch.Tensor
    bias_eps: torch.Tensor

    def __init__(self, in_channels: int, out_channels: int, sigma0: float = 0.4) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.sigma0 = sigma0
        self.weight_mu = nn.Parameter(torch.empty(out_channels, in_channels))
        self.weight_sigma = nn.Parameter(torch.empty(out_channels, in_channels))
        self.bias_mu = nn.Parameter(torch.empty(out_channels))
        self.bias_sigma = nn.Parameter(torch.empty(out_channels))
        self.register_buffer("weight_eps", torch.empty(out_channels, in_channels))
        self.register_buffer("bias_eps", torch.empty(out_channels))
        self.reset_parameters()
        self.reset_noise()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        bound = 1 / math.sqrt(self.in_channels)
        nn.init.uniform_(self.weight_mu, -bound, bound)
        nn.init.uniform_(self.bias_mu, -bound, bound)
        nn.init.constant_(self.weight_sigma, self.sigma0 * bound)
        nn.init.constant_(self.bias_sigma, self.sigma0 * bound)

    def reset_noise(self) -> None:
        """Draw the noise anew."""
        inputs = self._scaled_noise(self.in_channels)
        outputs = self._scaled_noise(self.out_channels)
        # New tensors: the graph of an earlier forward pass may still hold the old ones.
        self.weight_eps = torch.outer(outputs, inputs)
        self.bias_eps = outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[*, in_channels]`` to ``[*, out_channels]``."""
        if not self.training:
            return F.linear(x, self.weight_mu, self.bias_mu)
        weight = torch.addcmul(self.weight_mu, self.weight_sigma, self.weight_eps)
        bias = torch.addcmul(self.bias_mu, self.bias_sigma, self.bias_eps)
        return F.linear(x, weight, bias)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, sigma0={self.sigma0}"

    def _scaled_noise(self, size: int) -> torch.Tensor:
        noise = torch.randn(size, device=self.weight_mu.device)
        return noise.sign() * noise.abs().sqrt()


def noise_block(
    in_channels: int,
    out_channels: int,
    activation: nn.Module | None = None,
    norm_type: str | None = None,
    use_dropout: bool = False,
    dropout_probability: float = 0.5,
    sigma0: float = 0.4,
) -> nn.Sequential:
    """A noisy linear layer, then what is asked for of normalisation, activation and dropout."""
    block: list[nn.Module] = [NoiseLinearLayer(in_channels, out_channels, sigma0)]
    if norm_type is not None:
        block.append(build_normalization(norm_type, dim=1)(out_channels))
    if activation is not None:
        block.append(activation)
    if use_dropout:
        block.append(nn.Dropout(dropout_probability))
    return nn.Sequential(*block)
