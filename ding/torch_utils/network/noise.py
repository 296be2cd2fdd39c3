"""Linear layers with learned noise (Fortunato et al. 2018, "Noisy Networks for Exploration")."""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ding.torch_utils.network.activation import Activation
from ding.torch_utils.network.nn_module import layers_after


class NoiseLinearLayer(nn.Module):
    """A linear layer whose weights are ``mu + sigma * noise``, or ``mu`` when noise is off.

    The noise is factorised Gaussian (equations 10 and 11 of the paper): one draw per input and
    one per output, anew in every forward pass. It comes from torch's global generator.

    Args:
        sigma0: Initial noise, times one over the square root of ``in_channels``.

    Attributes:
        enable_noise: ``None`` adds noise in training mode only; ``True`` and ``False`` hold in
            both modes (a collecting policy is in evaluation mode and explores by its noise).
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
        """Draw the weights anew."""
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

    def to_old_form(self, state: dict[str, Any], prefix: str) -> None:
        """Add the entries for the noise itself, which each call draws here: none."""
        state[prefix + "weight_eps"] = torch.zeros_like(state[prefix + "weight_mu"])
        state[prefix + "bias_eps"] = torch.zeros_like(state[prefix + "bias_mu"])

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for name in ("weight_eps", "bias_eps"):
            state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, sigma0={self.sigma0}"


def set_noise_mode(module: nn.Module, mode: bool | None) -> None:
    """Set ``enable_noise`` of every `NoiseLinearLayer` in ``module``, or in a wrapper around it."""
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

    Arguments are those of `fc_block`, and ``sigma0``, which the initial standard deviation of the
    noise is proportional to.
    """
    layer = NoiseLinearLayer(in_channels, out_channels, sigma0)
    return nn.Sequential(
        layer, *layers_after(out_channels, activation, norm_type, use_dropout, dropout_probability)
    )
