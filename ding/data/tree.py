"""Functions for nested mappings of arrays (trees), such as dict observations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import torch

from ding.utils.types import Tree

#: Rows to select: integers, a boolean mask or a slice.
Index: TypeAlias = np.ndarray | torch.Tensor | list[int] | slice
#: Names on the path to a leaf.
Path = tuple[str, ...]
#: Checked first: ``isinstance(..., Mapping)`` takes several times as long.
_ARRAYS = frozenset({np.ndarray, torch.Tensor})


def tree_map(fn: Callable[[Tree], object], tree: Tree) -> Tree:
    """Apply ``fn`` to each leaf of nested mappings; a bare array is a leaf."""
    if type(tree) not in _ARRAYS and isinstance(tree, Mapping):
        return {key: tree_map(fn, value) for key, value in tree.items()}
    return fn(tree)


def tree_paths(tree: Mapping[str, Tree], path: Path = ()) -> Iterator[tuple[Path, Tree]]:
    """Each leaf with its path."""
    for name, value in tree.items():
        if type(value) not in _ARRAYS and isinstance(value, Mapping):
            yield from tree_paths(value, (*path, name))
        else:
            yield (*path, name), value


def tree_leaves(tree: Tree) -> Iterator[Tree]:
    """The leaves; a bare array is a leaf."""
    if isinstance(tree, Mapping):
        for _, leaf in tree_paths(tree):
            yield leaf
    else:
        yield tree


def tree_take(tree: Tree, index: Index | int | tuple[slice, int]) -> Tree:
    """Index each leaf along its first dimension."""
    return tree_map(lambda leaf: leaf[index], tree)


def tree_join(fn: Callable[[list[Tree]], object], trees: Sequence[Tree]) -> Tree:
    """Apply ``fn`` to the list of corresponding leaves of trees with the same structure."""
    if isinstance(trees[0], Mapping):
        return {key: tree_join(fn, [tree[key] for tree in trees]) for key in trees[0]}
    return fn(list(trees))


def tree_rows(tree: Tree) -> list[Tree]:
    """One tree per index of the leaves' first dimension."""
    if isinstance(tree, Mapping):
        parts = [tree_rows(part) for part in tree.values()]
        return [dict(zip(tree, row)) for row in zip(*parts)]
    return list(tree)


def tree_length(tree: Tree) -> int:
    """Length of the first leaf's first dimension."""
    while type(tree) not in _ARRAYS and isinstance(tree, Mapping):
        tree = next(iter(tree.values()))
    return len(tree)
