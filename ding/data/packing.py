"""Columns and ids as plain dicts, which files can hold."""

from collections.abc import Mapping
from typing import Any

from ding.data.columns import Columns
from ding.data.id_column import IdColumn
from ding.data.tree import tree_map

_COLUMNS, _IDS = "__columns__", "__ids__"


def packed(item: Any) -> Any:
    """`item` with each `Columns` and `IdColumn` in it as a tagged dict; lists are gone through."""
    if isinstance(item, IdColumn):
        return {_IDS: item.prefix, "numbers": item.numbers}
    if isinstance(item, Columns) and item.is_columnar:
        return {_COLUMNS: {name: tree_map(packed, col) for name, col in item.columns.items()}}
    if isinstance(item, list):
        return [packed(value) for value in item]
    return item


def unpacked(item: Any) -> Any:
    """What `packed` was given."""
    if isinstance(item, Mapping) and _IDS in item:
        return IdColumn(item[_IDS], item["numbers"])
    if isinstance(item, Mapping) and _COLUMNS in item:
        return Columns({name: _unpacked_column(col) for name, col in item[_COLUMNS].items()})
    if isinstance(item, list):
        return [unpacked(value) for value in item]
    return item


def _unpacked_column(col: Any) -> Any:
    if isinstance(col, Mapping) and _IDS not in col:
        return {name: _unpacked_column(value) for name, value in col.items()}
    return unpacked(col)
