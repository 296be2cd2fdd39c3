"""Helpers on iterables."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def iter_mapping(iter_: Iterable[_In], mapping: Callable[[_In], _Out]) -> Iterator[_Out]:
    """Apply `mapping` to each item, lazily."""
    return map(mapping, iter_)
