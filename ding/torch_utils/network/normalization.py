"""Normalisation layers by name."""

from collections.abc import Callable

from torch import nn

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
        KeyError: An unknown type or dimension.
    """
    if norm_type in _ANY_DIM:
        return _ANY_DIM[norm_type]
    if norm_type not in _BY_DIM:
        known = [*_BY_DIM, *_ANY_DIM]
        raise KeyError(f"got norm_type {norm_type!r}: expected one of {known}")
    if dim not in _BY_DIM[norm_type]:
        raise KeyError(f"got dim {dim!r} for {norm_type}: expected 1, 2 or 3")
    return _BY_DIM[norm_type][dim]
