"""Invertible rescaling of values."""

import torch


def value_transform(x: torch.Tensor, eps: float = 1e-2) -> torch.Tensor:
    """``sign(x) * (sqrt(|x| + 1) - 1) + eps * x``, elementwise (Pohlen et al. 2018)."""
    return torch.sign(x) * (torch.sqrt(torch.abs(x) + 1) - 1) + eps * x


def value_inv_transform(x: torch.Tensor, eps: float = 1e-2) -> torch.Tensor:
    """Inverse of ``value_transform`` with the same ``eps``, elementwise."""
    root = torch.sqrt(1 + 4 * eps * (torch.abs(x) + 1 + eps))
    return torch.sign(x) * (((root - 1) / (2 * eps)) ** 2 - 1)


def symlog(x: torch.Tensor) -> torch.Tensor:
    """``sign(x) * log(|x| + 1)`` (Hafner et al. 2023)."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def inv_symlog(x: torch.Tensor) -> torch.Tensor:
    """Inverse of ``symlog``."""
    return torch.sign(x) * torch.expm1(torch.abs(x))
