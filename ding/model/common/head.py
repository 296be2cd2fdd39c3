"""Heads: from a feature vector to named outputs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.dense import Dense, linear_layers, run_layers
from ding.torch_utils.network.activation import Activation
from ding.utils.default_helper import sizes_of
from ding.utils.errors import ConfigError, check_one_of


class DiscreteHead(nn.Module):
    """Logits or Q-values of actions: ``[*, input_size]`` to ``{'logit': [*, output_size]}``.

    Args:
        hidden_size: Width of the hidden layers.
        layer_num: Number of hidden layers before the last linear layer.
        layers: Further arguments of `head_mlp`, as in all value heads.
    """

    def __init__(
        self, hidden_size: int, output_size: int, layer_num: int = 1, **layers: Any
    ) -> None:
        super().__init__()
        self.Q = head_mlp(hidden_size, output_size, layer_num, **layers)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logit": self.Q(x)}


class DuelingHead(nn.Module):
    """``Q = V + A - mean(A)`` (Wang et al. 2016, equation 9); shapes as in `DiscreteHead`.

    Args:
        a_layer_num: Hidden layers of the advantage branch, ``layer_num`` unless given.
        v_layer_num: Hidden layers of the value branch, ``layer_num`` unless given.
    """

    def __init__(
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        a_layer_num: int | None = None,
        v_layer_num: int | None = None,
        **layers: Any,
    ) -> None:
        super().__init__()
        a_layer_num = layer_num if a_layer_num is None else a_layer_num
        v_layer_num = layer_num if v_layer_num is None else v_layer_num
        self.A = head_mlp(hidden_size, output_size, a_layer_num, **layers)
        self.V = head_mlp(hidden_size, 1, v_layer_num, **layers)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        advantage = self.A(x)
        offset = self.V(x) - advantage.mean(dim=-1, keepdim=True)
        return {"logit": advantage + offset}


class BranchingHead(nn.Module):
    """A shared state value and an advantage per branch (Tavakoli et al. 2018, equation 1).

    ``[*, input_size]`` to ``{'logit': [*, num_branches, action_bins_per_branch]}``.

    Args:
        layer_num: Hidden layers of each part, before its last linear layer.
        a_layer_num: Hidden layers of the advantages, ``layer_num`` unless given.
        v_layer_num: Hidden layers of the value, ``layer_num`` unless given.
    """

    def __init__(
        self,
        hidden_size: int,
        num_branches: int,
        action_bins_per_branch: int,
        layer_num: int = 1,
        a_layer_num: int | None = None,
        v_layer_num: int | None = None,
        **layers: Any,
    ) -> None:
        super().__init__()
        a_layer_num = layer_num if a_layer_num is None else a_layer_num
        v_layer_num = layer_num if v_layer_num is None else v_layer_num
        self.V = head_mlp(hidden_size, 1, v_layer_num, **layers)
        self.branches = nn.ModuleList(
            head_mlp(hidden_size, action_bins_per_branch, a_layer_num, **layers)
            for _ in range(num_branches)
        )

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        advantage = torch.stack([branch(x) for branch in self.branches], -2)
        value = self.V(x).unsqueeze(-1)
        return {"logit": value + advantage - advantage.mean(-1, keepdim=True)}


class RegressionHead(nn.Module):
    """``[*, input_size]`` to ``{'pred': [*, output_size]}``, or ``[*]`` when ``output_size`` is 1.

    Args:
        layer_num: Number of hidden layers before the last linear layer.
        final_tanh: Bound the output to (-1, 1).
        hidden_size: ``input_size`` unless given.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        layer_num: int = 2,
        final_tanh: bool = False,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        hidden_size: int | None = None,
    ) -> None:
        super().__init__()
        sizes = [input_size] + [hidden_size or input_size] * layer_num
        self.main = Dense(*linear_layers(sizes, activation, norm_type))
        self.last = nn.Linear(sizes[-1], output_size)
        self._final_tanh = final_tanh
        self._scalar = output_size == 1

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        modules = self._modules
        pred = run_layers((modules["main"], modules["last"]), x)  # type: ignore[arg-type]
        if self._final_tanh:
            pred = torch.tanh(pred)
        return {"pred": pred.squeeze(-1) if self._scalar else pred}


class ReparameterizationHead(nn.Module):
    """A diagonal Gaussian: ``[*, input_size]`` to ``{'mu', 'sigma'}``, each ``[*, output_size]``.

    Args:
        sigma_type: ``'fixed'`` (``fixed_sigma_value``), ``'independent'`` (a learned vector, the
            same for every input), ``'conditioned'`` (a function of the input) or ``'happo'`` (a
            learned vector squashed into (0, 0.5)).
        bound_type: ``'tanh'`` bounds ``mu`` to (-1, 1); ``None`` does not.
        hidden_size: ``input_size`` unless given.
    """

    sigma_types = ("fixed", "independent", "conditioned", "happo")
    bound_types = (None, "tanh")
    # exp(-20) and exp(2): beyond these, log-probabilities become imprecise in float32.
    log_sigma_range = (-20.0, 2.0)

    sigma: torch.Tensor
    log_sigma_param: nn.Parameter

    def __init__(
        self,
        input_size: int,
        output_size: int,
        layer_num: int = 2,
        sigma_type: str | None = None,
        fixed_sigma_value: float = 1.0,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        bound_type: str | None = None,
        hidden_size: int | None = None,
    ) -> None:
        super().__init__()
        check_one_of("sigma_type", sigma_type, self.sigma_types)
        check_one_of("bound_type", bound_type, self.bound_types)
        self.sigma_type = sigma_type
        self.bound_type = bound_type
        width = hidden_size or input_size
        sizes = [input_size] + [width] * layer_num
        self.main = Dense(*linear_layers(sizes, activation, norm_type))
        self.mu = nn.Linear(sizes[-1], output_size)
        if sigma_type == "fixed":
            sigma = torch.full((output_size,), float(fixed_sigma_value))
            # Not in checkpoints, since the config determines it.
            self.register_buffer("sigma", sigma, persistent=False)
        elif sigma_type == "independent":
            self.log_sigma_param = nn.Parameter(torch.zeros(1, output_size))
        elif sigma_type == "conditioned":
            self.log_sigma_layer = nn.Linear(sizes[-1], output_size)
        else:
            self.log_sigma_param = nn.Parameter(torch.ones(1, output_size))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.main(x)
        mu = self.mu(x)
        if self.bound_type == "tanh":
            mu = torch.tanh(mu)
        if self.sigma_type == "fixed":
            sigma = self.sigma.expand_as(mu)
        elif self.sigma_type == "independent":
            sigma = self.log_sigma_param.exp().expand_as(mu)
        elif self.sigma_type == "conditioned":
            sigma = self.log_sigma_layer(x).clamp(*self.log_sigma_range).exp()
        else:
            sigma = (0.5 * self.log_sigma_param.sigmoid()).expand_as(mu)
        return {"mu": mu, "sigma": sigma}


class MultiHead(nn.Module):
    """One head per action dimension; every output becomes a list with one entry per head.

    Args:
        head_cls: Class of the heads.
        hidden_size: Width of the input ``[B, hidden_size]``.
        output_size_list: Number of actions of each dimension.
        **head_kwargs: Arguments of each head.
    """

    def __init__(
        self,
        head_cls: type[nn.Module],
        hidden_size: int,
        output_size_list: Sequence[int],
        **head_kwargs: Any,
    ) -> None:
        super().__init__()
        self.pred = nn.ModuleList(
            head_cls(hidden_size, size, **head_kwargs) for size in output_size_list
        )

    def forward(self, x: torch.Tensor) -> dict[str, list[torch.Tensor]]:
        outputs = [head(x) for head in self.pred]
        return {key: [output[key] for output in outputs] for key in outputs[0]}


def build_discrete_head(
    head_cls: type[nn.Module],
    hidden_size: int,
    action_shape: int | Sequence[int],
    **head_kwargs: Any,
) -> nn.Module:
    """One head for an int or ``[n]``; a `MultiHead` for several action dimensions."""
    sizes = sizes_of(action_shape, "action_shape")
    if not sizes or min(sizes) < 1:
        raise ConfigError(
            f"action_shape is {action_shape!r}; expected the number of actions, or a list of them"
        )
    if len(sizes) == 1:
        return head_cls(hidden_size, sizes[0], **head_kwargs)
    return MultiHead(head_cls, hidden_size, sizes, **head_kwargs)


def build_policy_head(
    action_space: str,
    action_shape: int | Sequence[int],
    input_size: int,
    hidden_size: int,
    gaussian: Mapping[str, Any] = {},
    **options: Any,
) -> nn.Module:
    """The head for a policy's ``logit``: discrete, or Gaussian for ``'continuous'``.

    Args:
        gaussian: Further arguments of `ReparameterizationHead`.
        options: ``layer_num``, ``activation`` and ``norm_type``.
    """
    if action_space == "discrete":
        return build_discrete_head(
            DiscreteHead, hidden_size, action_shape, input_size=input_size, **options
        )
    size = flat_size(action_shape)
    return ReparameterizationHead(input_size, size, hidden_size=hidden_size, **gaussian, **options)


def flat_size(shape: int | Sequence[int]) -> int:
    """Number of elements of a shape."""
    return math.prod(sizes_of(shape))


def vector_size(obs_shape: int | Sequence[int], who: str) -> int:
    """Size of an observation vector, for networks without an image encoder.

    Raises:
        ConfigError: The shape is not that of a vector.
    """
    shape = sizes_of(obs_shape, f"{who}: obs_shape")
    if len(shape) != 1:
        raise ConfigError(
            f"{who}: obs_shape is {obs_shape!r}; expected an int or [n]: it has no encoder for "
            "images"
        )
    return shape[0]


def column(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Add the last axis to ``value`` if it has size 1 and is missing."""
    return value.unsqueeze(-1) if value.dim() < like.dim() else value


def head_mlp(
    hidden_size: int,
    output_size: int,
    layer_num: int = 1,
    activation: Activation = nn.ReLU(),
    norm_type: str | None = None,
    dropout: float | None = None,
    noise: bool = False,
    input_size: int | None = None,
) -> nn.Sequential:
    """A stack of hidden layers, and a last linear layer without norm or activation.

    Args:
        noise: Use noisy linear layers.
        input_size: ``hidden_size`` unless given.
    """
    sizes = [input_size or hidden_size] + [hidden_size] * layer_num
    return Dense(
        Dense(*linear_layers(sizes, activation, norm_type, dropout, noise)),
        Dense(*linear_layers([sizes[-1], output_size], None, noise=noise)),
    )
