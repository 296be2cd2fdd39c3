"""Facts about a model."""

import torch


def get_num_params(model: torch.nn.Module) -> int:
    """Number of elements of all parameters."""
    return sum(param.numel() for param in model.parameters())
