"""Walks nested containers of tensors and arrays; a dict that keeps no tensor alive."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch


def map_leaves(
    fn: Callable[[Any], Any],
    item: Any,
    ignore_keys: Collection[str] = (),
    is_leaf: Callable[[list | tuple], bool] | None = None,
) -> Any:
    """Apply ``fn`` to every leaf of nested dicts, lists, tuples and named tuples.

    A container of columns (``ding.data.Columns``) is mapped array by array, never row by row.

    Args:
        fn: Takes and returns one leaf.
        ignore_keys: Values under these keys of a mapping are handed on as they are.
        is_leaf: Whether a list or tuple is a leaf itself.
    """
    if isinstance(item, list):
        if getattr(item, "is_columnar", False):
            return _map_columns(fn, item, ignore_keys)
        if is_leaf is not None and is_leaf(item):
            return fn(item)
        return [map_leaves(fn, value, ignore_keys, is_leaf) for value in item]
    if isinstance(item, Mapping):
        return {
            key: value if key in ignore_keys else map_leaves(fn, value, ignore_keys, is_leaf)
            for key, value in item.items()
        }
    if isinstance(item, tuple):
        if is_leaf is not None and is_leaf(item):
            return fn(item)
        values = [map_leaves(fn, value, ignore_keys, is_leaf) for value in item]
        return rebuild_tuple(item, values)
    return fn(item)


def rebuild_tuple(like: tuple, values: list[Any]) -> tuple:
    """A tuple of the same type, named or not."""
    return type(like)(*values) if hasattr(like, "_fields") else type(like)(values)


def _map_columns(fn: Callable[[Any], Any], data: Any, ignore_keys: Collection[str]) -> Any:
    mapped = data.map_columns(fn)
    kept = {name: column for name, column in data.columns.items() if name in ignore_keys}
    return mapped.with_columns(**kept) if kept else mapped


class LogDict(dict):
    """A dict whose tensors become numbers (one element) or lists as they are put in."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(value) is not float:
            value = map_leaves(_detached, value)
        super().__setitem__(key, value)

    def update(self, data: dict) -> None:  # type: ignore[override]
        for key, value in data.items():
            self[key] = value


def build_log_buffer() -> LogDict:
    """An empty log entry."""
    return LogDict()


def _detached(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.item() if leaf.numel() == 1 else leaf.tolist()
    return leaf
