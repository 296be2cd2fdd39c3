"""Nested mappings of arrays: the shape of a dict observation."""

from collections.abc import Callable, Mapping
from typing import Any


def tree_map(fn: Callable[[Any], Any], tree: Any) -> Any:
    """Apply ``fn`` to each leaf of nested mappings; a bare array is its own leaf."""
    if isinstance(tree, Mapping):
        return {key: tree_map(fn, value) for key, value in tree.items()}
    return fn(tree)


def tree_take(tree: Any, index: Any) -> Any:
    """Index each leaf along its first dimension."""
    return tree_map(lambda leaf: leaf[index], tree)


def tree_length(tree: Any) -> int:
    """Length of the first leaf's first dimension."""
    while isinstance(tree, Mapping):
        tree = next(iter(tree.values()))
    return len(tree)
