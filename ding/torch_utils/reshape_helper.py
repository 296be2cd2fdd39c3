"""Merges leading dimensions into one, and splits them again."""

import torch


def fold_batch(x: torch.Tensor, nonbatch_ndims: int = 1) -> tuple[torch.Tensor, torch.Size]:
    """Merge all leading dimensions.

    Args:
        x: ``[*batch, *rest]``.
        nonbatch_ndims: Number of dimensions in ``rest``.

    Returns:
        ``[prod(batch), *rest]`` and the batch shape for ``unfold_batch``.
    """
    split = x.dim() - nonbatch_ndims
    if split < 0:
        raise ValueError(f"got {x.dim()} dimensions, fewer than nonbatch_ndims={nonbatch_ndims}")
    return x.reshape(-1, *x.shape[split:]), x.shape[:split]


def unfold_batch(x: torch.Tensor, batch_dims: torch.Size | tuple[int, ...]) -> torch.Tensor:
    """Inverse of ``fold_batch``: ``[prod(batch), *rest]`` to ``[*batch, *rest]``."""
    return x.reshape(*batch_dims, *x.shape[1:])


def unsqueeze_repeat(x: torch.Tensor, repeat_times: int, unsqueeze_dim: int = 0) -> torch.Tensor:
    """Insert a dimension and repeat the tensor along it, as a view."""
    shape = list(x.shape)
    position = unsqueeze_dim if unsqueeze_dim >= 0 else x.dim() + 1 + unsqueeze_dim
    shape.insert(position, repeat_times)
    return x.unsqueeze(unsqueeze_dim).expand(shape)
