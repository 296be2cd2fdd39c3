"""Batches by reference, as plain JSON: rows of chunks, and what the buffer says of each.

::

    {"id": 7, "chunks": ["name", ...], "chunk": [index into chunks, ...], "row": [...],
     "info": {"IS": [...], "priority": 1.0, "replay_unique_id": {"prefix": "", "numbers": [...]}}}

In ``info`` a bare number stands for all rows.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypedDict

import numpy as np

from ding.data.columns import Columns
from ding.data.id_column import IdColumn
from ding.data.kinds import Items
from ding.utils.errors import DataError

#: Columns of a buffer of references that learners have no need of: they are in the data, or of use
#: to the buffer alone.
_NOT_SENT = frozenset({"chunk", "row", "collect_iter", "use", "staleness"})


#: What a buffer gave: arrays, or ids, with an entry for each row.
BatchColumns: TypeAlias = dict[str, Any]
#: What the buffer says of each row.
Fact: TypeAlias = np.ndarray | IdColumn


class BatchWire(TypedDict):
    """Which rows of which chunks make up a batch of n.

    Attributes:
        id: By which the buffer knows the batch.
        chunks: Names in the sample store.
        chunk: Of each row, which of the chunks it is in; [n].
        row: Of each row, its place in the chunk; [n].
        info: What the buffer says of each row, by name: a list [n], one number for all, or ids.
    """

    id: int
    chunks: list[str]
    chunk: list[int]
    row: list[int]
    info: dict[str, object]


# ---------------------------------------------------------------------- out


def wire_batch(
    batch_id: int, columns: BatchColumns, index: np.ndarray, names: list[str]
) -> BatchWire:
    """The message for rows that a buffer of references drew.

    Args:
        columns: What was drawn, ``row`` among it.
        index: Of each row's chunk in `names`.
    """
    return {
        "id": batch_id,
        "chunks": names,
        "chunk": index.tolist(),
        "row": columns["row"].tolist(),
        "info": {name: _jsonable(columns[name]) for name in sent(columns)},
    }


def sent(columns: BatchColumns) -> list[str]:
    """Names of the columns that go to the learner beside the data."""
    return [name for name in columns if name not in _NOT_SENT]


def _jsonable(column: Fact) -> object:
    if isinstance(column, IdColumn):
        return {"prefix": column.prefix, "numbers": column.numbers.tolist()}
    if column.dtype.kind == "f" and (column == column[0]).all():
        return float(column[0])
    return column.tolist()


def columns_of(items: Items | None) -> BatchColumns | None:
    """What a buffer gave, as columns; of rows, what all of them have; None for nothing."""
    if items is None:
        return None
    columns = items.columns_or_none() if isinstance(items, Columns) else None
    if columns is not None:
        return dict(columns)
    rows = list(items)
    if not rows:
        return None
    names = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: _as_array([row[name] for row in rows]) for name in names}


# ---------------------------------------------------------------------- in


def rows_of(wire: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Index of the chunk, and row in it, of each row; int64 [n].

    Raises:
        DataError: The message is damaged.
    """
    try:
        chunk = np.asarray(wire["chunk"], np.int64)
        row = np.asarray(wire["row"], np.int64)
        n = len(wire["chunks"])
        fits = chunk.ndim == 1 and chunk.shape == row.shape and len(chunk)
        fits = fits and all(type(name) is str for name in wire["chunks"])
        if fits and 0 <= chunk.min() <= chunk.max() < n and row.min() >= 0:
            return chunk, row
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"a damaged batch came: {type(error).__name__}: {error}") from error
    raise DataError(f"a damaged batch came: {chunk.size} rows of {n} chunks, {row.size} places")


def facts_of(info: Mapping[str, Any], n: int) -> dict[str, Fact]:
    """What the buffer says of each of n rows: numbers, ``IdColumn``, or an array of texts.

    Raises:
        DataError: The message is damaged.
    """
    facts: dict[str, Fact] = {}
    for name, value in info.items():
        try:
            facts[name] = _fact(value, n)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"a damaged batch came: {name}: {error}") from error
        if facts[name].shape != (n,):
            raise DataError(f"a damaged batch came: {facts[name].shape} {name} for {n} rows")
    return facts


def _fact(value: object, n: int) -> Fact:
    if isinstance(value, Mapping):
        return ids_of(value)
    column = _as_array(value) if isinstance(value, list) else np.full(n, value)
    return column.astype(np.float32) if column.dtype == np.float64 else column


def ids_of(value: Mapping[str, Any]) -> IdColumn:
    """Ids that came as ``{"prefix", "numbers"}``."""
    return IdColumn(str(value["prefix"]), np.asarray(value["numbers"], np.int64))


def _as_array(values: list[object]) -> np.ndarray:
    if all(isinstance(value, int | float | np.number | np.bool_) for value in values):
        return np.asarray(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
