"""The columnar container: a list of row dicts that is stored as named arrays.

Collectors produce it, buffers and files store it and policies learn from it. Rows are made when a
caller first accesses one. From then on the rows replace the columns: a caller may change rows, and
with both kept, a change to one of them would silently be missing in the other.
"""

import copy
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, cast, overload

import numpy as np
import torch

from ding.data.arrays import (
    Column,
    IdColumn,
    Index,
    IndexedColumn,
    Item,
    Leaf,
    MoreColumns,
    Row,
    Stored,
    gathered,
    joined_columns,
    shown_columns,
    stored_columns,
)
from ding.data.tree import tree_leaves, tree_length, tree_map, tree_take
from ding.utils.errors import DataError
from ding.utils.types import Tree

Result = TypeVar("Result")
#: What a container can be made of.
AnyColumn = Column | IndexedColumn[np.ndarray] | IndexedColumn[torch.Tensor]


class _Block:
    """Storage of rows: columns at first, dicts once a row has been accessed.

    A container, its slices and its copies share one block, so that they contain the same row
    objects, as plain lists would.

    Args:
        columns: By name, all of the same length; None for rows.
        more: Makes further columns, which are appended.
        is_gathered: Whether no column is an `IndexedColumn`.
        stored: All columns as arrays, if they are known.
    """

    __slots__ = ("_columns", "_is_gathered", "_lock", "_more", "_stored", "length", "rows")

    def __init__(
        self,
        columns: dict[str, Tree] | None,
        length: int,
        more: MoreColumns | None = None,
        is_gathered: bool = False,
        stored: Stored | None = None,
    ) -> None:
        self._columns = columns
        self._is_gathered = is_gathered
        self._more = more
        self._stored = stored
        self.length = length
        self.rows: list[Row] | None = None
        # Re-entrant: garbage collection under the lock may run finalisers that read this block.
        self._lock = threading.RLock()

    def raw_columns(self) -> dict[str, Tree] | None:
        """The columns, which may include `IndexedColumn`; None once they have become rows."""
        if self._more is not None:
            with self._lock:
                if self._columns is not None and (more := self._more) is not None:
                    self._columns, self._more = {**self._columns, **more()}, None
        return self._columns

    def stored(self) -> Stored | None:
        """The columns as arrays; None if they have become rows or do not contain numbers."""
        with self._lock:
            if self._stored is None and (columns := self.raw_columns()) is not None:
                self._stored = stored_columns(columns)
            return self._stored

    def columns(self) -> dict[str, Column] | None:
        """The gathered columns, which readers may write to; None once they have become rows."""
        columns = self.raw_columns()
        if columns is not None and not self._is_gathered:
            with self._lock:
                # Checked again under the lock: another thread may have gathered the columns or
                # made rows in the meantime.
                if self._columns is not None and not self._is_gathered:
                    if any(type(leaf) is IndexedColumn for leaf in tree_leaves(self._columns)):
                        # Readers may write to gathered arrays; the source arrays would not contain
                        # these changes.
                        self._columns, self._stored = tree_map(gathered, self._columns), None
                    self._is_gathered = True
                columns = self._columns
        return columns

    def apart(self) -> "_Block":
        """A new block over the same arrays."""
        with self._lock:
            if self.rows is not None:
                raise _handed_out()
            own = self._columns, self.length, self._more, self._is_gathered, self._stored
            return _Block(*own)

    def to_rows(self) -> list[Row]:
        with self._lock:
            if self.rows is None:
                rows = _rows_of(self.columns() or {}, self.length)
                # This thread may have re-entered (see the lock): keep rows that were already
                # handed out.
                self.rows = rows if self.rows is None else self.rows
                # From here on the rows are the data: columns would not contain changes to them.
                self._columns = self._more = self._stored = None
            return self.rows


def _of_rows(method: Callable[..., Result]) -> Callable[..., Result]:
    """A method of `list` that first turns this container and `Columns` arguments into rows."""

    @functools.wraps(method)
    def call(self: "Columns", *args: object, **kwargs: object) -> Result:
        for container in (self, *args):
            if isinstance(container, Columns):
                container._to_rows()
        return method(self, *args, **kwargs)

    return call


class Columns(list[Row]):
    """Batch of transitions, stored as arrays (columns) with one leading length; a list of dicts.

    It supports all operations of a list of dicts. ``len``, slicing, ``copy`` and `concat` keep the
    columns; an operation that accesses a single row, or adds other rows to the data, permanently
    turns it into plain rows. In rows, a torch column becomes tensors, a numpy column arrays, and a
    one-dimensional numpy column Python scalars.

    Args:
        columns: Name to array, tensor, ``IdColumn``, ``IndexedColumn`` or a nested mapping of
            them, each with the same leading length N; not copied. Or an iterable of rows, which
            stay rows, because some libraries rebuild lists with ``type(data)(rows)``.

    Raises:
        DataError: The columns differ in length, or there are none.

    Example:

        >>> import numpy as np
        >>> from ding.data import Columns
        >>> data = Columns({"obs": np.zeros((3, 4)), "reward": np.arange(3.0)})
        >>> len(data), data.column("obs").shape, data[1:].is_columnar
        (3, (3, 4), True)
        >>> data[1]["reward"]  # from here on they are rows
        1.0
    """

    def __init__(self, columns: Mapping[str, AnyColumn] | Iterable[Row] = ()) -> None:
        self._block: _Block | None = None
        self._span = range(0)
        if not isinstance(columns, Mapping):
            super().__init__(columns)
            return
        super().__init__()
        length = _common_length(columns)
        self._block, self._span = _Block(dict(columns), length), range(length)

    @classmethod
    def _of(cls, block: _Block, span: range) -> "Columns":
        self = cls.__new__(cls)
        self._block, self._span = block, span
        return self

    @classmethod
    def trusted(
        cls, columns: dict[str, Tree], length: int, more: MoreColumns | None = None
    ) -> "Columns":
        """A container of columns that all have this length and are not indexed; not checked.

        Args:
            more: Makes further columns when a reader first accesses the columns.
        """
        return cls._of(_Block(columns, length, more, is_gathered=True), range(length))

    @classmethod
    def of_stored(cls, stored: Stored) -> "Columns":
        """A container of stored columns; they are converted when a reader first accesses them.

        Raises:
            DataError: The columns differ in length, or there are none.
        """
        lengths = {len(leaf) for leaf, _ in stored.values()}
        if len(lengths) != 1:
            return cls(shown_columns(stored))  # raises DataError
        length = lengths.pop()
        block = _Block({}, length, lambda: shown_columns(stored), stored=stored)
        return cls._of(block, range(length))

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Item]]) -> "Columns":
        """Stack uniform rows.

        Raises:
            DataError: The keys, types or shapes of the rows differ, or a value is not a tensor, an
                array, a number or a mapping of these.
        """
        if not rows:
            raise DataError("no rows to make columns of")
        return cls(_stack_mappings(rows, ""))

    @classmethod
    def concat(cls, batches: Iterable["Columns"]) -> "Columns":
        """Concatenate containers, as a copy; into rows if their columns differ.

        Raises:
            DataError: A container has become rows.
        """
        batches = list(batches)
        if not all(batch.is_columnar for batch in batches):
            raise _handed_out()
        parts = [batch.stored() for batch in batches]
        joined = joined_columns([part for part in parts if part is not None])
        if joined is None or None in parts:
            return cls([row for batch in batches for row in batch.copied_rows()])
        return cls.of_stored(joined)

    # ------------------------------------------------------------------ columns

    @property
    def is_columnar(self) -> bool:
        """Whether the data is stored as columns: no row has been accessed yet."""
        return self._block is not None and self._block.rows is None

    def columns_or_none(self) -> Mapping[str, Column] | None:
        """The arrays by name, read-only; None if the data has become rows."""
        return None if self._block is None else self._part(self._block.columns())

    def raw_columns(self) -> Mapping[str, Tree] | None:
        """As `columns_or_none`, but an `IndexedColumn` is not gathered."""
        return None if self._block is None else self._part(self._block.raw_columns())

    def _part(self, columns: dict[str, Tree] | None) -> dict[str, Tree] | None:
        rows = self._rows
        if columns is None or rows is None:
            return columns
        return {
            name: tree_take(col, rows) if isinstance(col, Mapping) else col[rows]
            for name, col in columns.items()
        }

    @property
    def _rows(self) -> slice | np.ndarray | None:
        """The block's rows in this container, as a slice or, backwards, an array; None for all."""
        span = self._span
        if span.step == 1 and len(span) == cast("_Block", self._block).length:
            return None
        # A backward range down to row 0 stops at -1, which in a slice means the last row; and torch
        # does not support backward slices.
        return slice(span.start, span.stop, span.step) if span.step > 0 else np.array(span)

    def stored(self) -> Stored | None:
        """The columns as arrays, to be copied; None if they are rows or do not contain numbers."""
        stored = None if self._block is None else self._block.stored()
        if stored is None or (rows := self._rows) is None:
            return stored
        return {key: (leaf[rows], form) for key, (leaf, form) in stored.items()}

    @property
    def columns(self) -> dict[str, Column]:
        """The arrays by name, in a new dict; the arrays themselves are not copied.

        Raises:
            DataError: The data has become rows.
        """
        return dict(self._known(self.columns_or_none()))

    def _known(self, columns: Mapping[str, Tree] | None) -> Mapping[str, Tree]:
        if columns is None:
            raise _handed_out()
        return columns

    def apart(self) -> "Columns":
        """The same rows in a separate container over the same arrays.

        If one of the two becomes rows, the other stays columnar.

        Raises:
            DataError: The data has become rows.
        """
        if (block := self._block) is None:
            raise _handed_out()
        return Columns._of(block.apart(), self._span)

    def copied_rows(self) -> list[Row]:
        """The rows as a list that shares no row with this container, which is not changed."""
        return list(self.apart() if self.is_columnar else self)

    def column(self, name: str) -> Column:
        """One column by name."""
        return self.columns[name]

    def take(self, index: Index) -> "Columns":
        """Gather rows by an integer array, a boolean mask or a slice; the result is a copy."""
        rows = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)].copy()
        columns = self._known(self.raw_columns())
        return Columns({name: tree_take(col, rows) for name, col in columns.items()})

    def with_columns(self, **columns: Column) -> "Columns":
        """A container with added or replaced columns; the other columns are shared."""
        return Columns({**self._known(self.raw_columns()), **columns})

    def map_columns(
        self, fn: Callable[[np.ndarray | torch.Tensor], np.ndarray | torch.Tensor]
    ) -> "Columns":
        """A container with ``fn`` applied to each array; ids are kept unchanged."""

        def apply(leaf: Leaf) -> Leaf:
            return leaf if isinstance(leaf, IdColumn) else fn(leaf)

        return Columns({name: tree_map(apply, col) for name, col in self.columns.items()})

    def collated(self) -> dict[str, Column]:
        """A dict of batched tensors that share memory with the columns; ids are kept unchanged.

        A one-dimensional float64 array (Python floats in the rows) becomes float32, as when rows
        are collated.
        """
        found: dict[str, Column] = {}
        for name, col in self._known(self.columns_or_none()).items():
            # The common cases are inlined: this saves two calls per column and batch.
            if type(col) is torch.Tensor:
                found[name] = col
            elif type(col) is np.ndarray and col.dtype != np.float64:
                found[name] = torch.from_numpy(col)
            else:
                found[name] = tree_map(_as_tensor, col)
        return found

    # ------------------------------------------------------------------ sequence

    def _to_rows(self) -> None:
        if (block := self._block) is None:
            return
        rows = block.to_rows()
        whole = len(self._span) == len(rows) and self._span.step == 1
        # One assignment, before the columns are dropped: other threads may read at any time.
        list.__setitem__(self, slice(None), rows if whole else [rows[i] for i in self._span])
        self._block = None

    def __len__(self) -> int:
        return super().__len__() if self._block is None else len(self._span)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> "Columns": ...

    def __getitem__(self, index: SupportsIndex | slice) -> "Row | Columns | list[Row]":
        if (block := self._block) is not None and isinstance(index, slice):
            return Columns._of(block, self._span[index])
        self._to_rows()
        return super().__getitem__(index)

    def __radd__(self, other: object) -> Any:
        # `rows + columns` and `rows += columns` both call this and cannot be distinguished.
        # `list` implements both correctly with the rows that are made here.
        self._to_rows()
        return NotImplemented

    def copy(self) -> list[Row]:
        block = self._block
        # Over the same block: a copy of a list shares its rows, including rows that are made later.
        return list(self) if block is None else Columns._of(block, self._span)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Row]:
        if self.is_columnar:
            return self.take(slice(None))
        return [copy.deepcopy(row, memo) for row in self]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type, tuple[object]]:
        if self.is_columnar:
            return (Columns, (self.columns,))
        return (list, (list(self),))

    def __iter__(self) -> Iterator[Row]:
        self._to_rows()
        return super().__iter__()

    def __repr__(self) -> str:
        columns = self.columns_or_none()
        if columns is None:
            return super().__repr__()
        return f"<Columns of {len(self)} rows: {', '.join(sorted(map(str, columns)))}>"

    __hash__ = None

    if not TYPE_CHECKING:  # type checkers use the signatures of `list`
        __setitem__ = _of_rows(list.__setitem__)
        __delitem__ = _of_rows(list.__delitem__)
        __add__ = _of_rows(list.__add__)
        __iadd__ = _of_rows(list.__iadd__)
        __contains__ = _of_rows(list.__contains__)
        __reversed__ = _of_rows(list.__reversed__)
        __mul__ = _of_rows(list.__mul__)
        __rmul__ = _of_rows(list.__rmul__)
        __imul__ = _of_rows(list.__imul__)
        __eq__ = _of_rows(list.__eq__)
        __ne__ = _of_rows(list.__ne__)
        __lt__ = _of_rows(list.__lt__)
        __le__ = _of_rows(list.__le__)
        __gt__ = _of_rows(list.__gt__)
        __ge__ = _of_rows(list.__ge__)
        append = _of_rows(list.append)
        extend = _of_rows(list.extend)
        insert = _of_rows(list.insert)
        pop = _of_rows(list.pop)
        remove = _of_rows(list.remove)
        reverse = _of_rows(list.reverse)
        sort = _of_rows(list.sort)
        clear = _of_rows(list.clear)
        index = _of_rows(list.index)
        count = _of_rows(list.count)


def as_columns(data: object) -> Columns | None:
    """``data`` itself if it is columnar; columns stacked from uniform rows; otherwise ``None``.

    Args:
        data: A ``Columns``, or a list of row dicts.
    """
    if isinstance(data, Columns):
        if data.is_columnar:
            return data
        data = list(data)
    if not isinstance(data, list | tuple) or not all(isinstance(row, Mapping) for row in data):
        return None
    try:
        return Columns.from_rows(data)
    except DataError:
        return None


# ---------------------------------------------------------------------- arrays


def _common_length(columns: Mapping[str, AnyColumn]) -> int:
    if not columns:
        raise DataError("columns need at least one name")
    lengths = {tree_length(col) for col in columns.values()}
    if len(lengths) > 1:
        found = {name: tree_length(col) for name, col in columns.items()}
        raise DataError(f"columns must have one leading length, got {found}")
    return lengths.pop()


def _rows_of(columns: Mapping[str, Column], length: int) -> list[Row]:
    values = [_values_of(col, length) for col in columns.values()]
    names = list(columns)
    return [dict(zip(names, row)) for row in zip(*values)]


def _values_of(col: Column, length: int) -> Sequence[Item]:
    if isinstance(col, torch.Tensor):
        return col.unbind(0)
    if isinstance(col, Mapping):
        return _rows_of(col, length)
    return list(col) if isinstance(col, np.ndarray) and col.ndim > 1 else col.tolist()


def _handed_out() -> DataError:
    return DataError("these rows were handed out and may have changed: use them as rows")


def _as_tensor(leaf: Leaf) -> torch.Tensor | IdColumn:
    if not isinstance(leaf, np.ndarray):
        return leaf
    if leaf.ndim == 1 and leaf.dtype == np.float64:
        leaf = leaf.astype(np.float32)
    return torch.from_numpy(leaf)


_NUMBER = int | float | np.number


def _stack_mappings(rows: Sequence[Mapping[str, Item]], path: str) -> dict[str, Column]:
    keys = rows[0].keys()
    if any(row.keys() != keys for row in rows):
        raise DataError(f"rows differ in their keys{f' under {path!r}' if path else ''}")
    return {key: stack([row[key] for row in rows], f"{path}{key}") for key in keys}


def stack(values: list[Item], path: str) -> Column:
    """Stack the values of one column.

    Raises:
        DataError: Types or shapes differ, or the values are not tensors, arrays, numbers or
            mappings of these; the message contains `path`.
    """
    first = values[0]
    kind = type(first)
    if any(type(value) is not kind for value in values):
        # A flag among numbers is not stacked: it would become 1.0, which readers could not
        # distinguish from a number.
        if all(isinstance(value, _NUMBER) and type(value) is not bool for value in values):
            return np.array(values)  # ints and floats
        kinds = sorted({type(value).__name__ for value in values})
        raise DataError(f"column {path!r} mixes types: {kinds}")
    try:
        if isinstance(first, torch.Tensor):
            return torch.stack(values)
        if isinstance(first, np.ndarray) and first.dtype != object:
            return np.stack(values)
        if isinstance(first, Mapping):
            return _stack_mappings(values, f"{path}.")
        if isinstance(first, _NUMBER | np.bool_):
            return np.array(values)
    except (ValueError, RuntimeError, OverflowError) as error:
        raise DataError(f"column {path!r} does not stack: {error}") from error
    raise DataError(f"column {path!r} holds {kind.__name__}, not numbers, arrays or tensors")
