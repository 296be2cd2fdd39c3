"""The columnar container: a list of row dicts outside, named arrays inside.

Collectors produce it, buffers store it, files hold it and policies learn from it. Nothing is
turned into rows until somebody asks for one. From then on the rows *are* the data: a caller may
change them, and a change that only columns or only rows knew of would be lost silently.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import torch

from ding.data.arrays import Arrays, arrays_of, path_of, tensor_form
from ding.data.id_column import IdColumn
from ding.data.indexed_column import IndexedColumn
from ding.data.kinds import Column, Index, Leaf, Row
from ding.data.tree import tree_join, tree_length, tree_map
from ding.utils.errors import DataError

#: What a container may be made of.
AnyColumn = Column | IndexedColumn[np.ndarray] | IndexedColumn[torch.Tensor]

#: Makes columns that nobody may ever ask for.
MoreColumns: TypeAlias = Callable[[], dict[str, Any]]

#: Arrays and the rows of them that are meant, part by part.
Windows = list[tuple[Arrays, range]]

#: Two threads that reach into one container must find the same rows. A thread may come twice: what
#: it allocates may have garbage collected that reads a container of its own, such as a buffer.
_turning_to_rows = threading.RLock()


class _Block:
    """Rows with one life: columns first, dicts once a row was asked for.

    Each view of the columns, the readers' and the one to keep, is made when it is asked for.

    Slices and sums of a container share its blocks, so that a row reached through one of them is
    the same object as through any other, as it would be with plain lists.

    Args:
        given: The columns, as whoever made the container had them.
        length: Number of rows.
        more: Makes further columns when the first reader comes.
    """

    __slots__ = ("_arrays", "_given", "_more", "_shown", "length", "rows")

    def __init__(
        self, given: dict[str, Any] | Arrays, length: int, more: MoreColumns | None = None
    ) -> None:
        #: One of both, until these are rows; readers may write into what they were shown.
        self._given: dict[str, Any] | Arrays | None = given
        self._shown: dict[str, Column] | None = None
        self._more = more
        self._arrays: Arrays | None = None
        self.length = length
        self.rows: list[Row] = []

    @property
    def is_rows(self) -> bool:
        return self._given is None and self._shown is None

    def columns(self) -> dict[str, Column] | None:
        """What readers get; None once they are rows."""
        if self._given is not None:
            with _turning_to_rows:
                self._show()
        return self._shown

    def _show(self) -> dict[str, Column] | None:
        given = self._given
        if given is not None:
            if isinstance(given, Arrays):
                columns = given.shown()
            else:
                columns = {name: tree_map(_gathered, column) for name, column in given.items()}
            self._shown = columns if self._more is None else {**columns, **self._more()}
            self._given = self._more = self._arrays = None
        return self._shown

    def arrays(self) -> Arrays | None:
        """The columns as they are kept; None if they cannot be, or are rows."""
        if self._arrays is None:
            with _turning_to_rows:
                found = self._given if self._more is None else self._show()
                found = self._shown if found is None else found
                if found is not None:
                    self._arrays = found if isinstance(found, Arrays) else arrays_of(found)
        return self._arrays

    def names(self) -> Set[str]:
        given = self._given
        return given.keys() if type(given) is dict else (self.columns() or {}).keys()

    def apart(self) -> "_Block":
        """A block of its own over the same arrays.

        Raises:
            DataError: They are rows.
        """
        with _turning_to_rows:
            columns = self._shown if self._given is None else self._given
            if columns is None:
                raise _handed_out()
            return _Block(columns, self.length, self._more)

    def to_rows(self) -> list[Row]:
        with _turning_to_rows:
            columns = self._show()
            if columns is not None:
                self.rows = _rows_of(columns, self.length)
                self._shown = self._arrays = None
            return self.rows


class Columns(list[Any]):
    """A sequence of transitions, columns inside.

    It is a list of dicts, and does all that one does. ``len``, slicing, ``+`` of two containers,
    ``extend`` and ``copy`` keep the columns; whatever reaches a single row, or joins the data with
    a plain list, turns it into plain rows for good. In rows, a torch column gives tensors, a numpy
    column gives arrays, and one-dimensional numpy columns give Python scalars.

    Args:
        columns: Name to array, tensor, ``IdColumn``, ``IndexedColumn`` or a nested mapping of
            them, each with the same leading length N; not copied. Or an iterable of rows, which
            stay rows, as some libraries rebuild lists by ``type(data)(rows)``.

    Raises:
        DataError: Columns of different lengths, or none at all.
    """

    def __init__(self, columns: Mapping[str, AnyColumn] | Iterable[Any] = ()) -> None:
        if not isinstance(columns, Mapping):
            super().__init__(columns)
            self._parts: list[tuple[_Block, range]] | None = None
            return
        super().__init__()
        length = _common_length(columns)
        self._parts = [(_Block(dict(columns), length), range(length))]

    @classmethod
    def _of(cls, parts: list[tuple[_Block, range]]) -> "Columns":
        self = cls.__new__(cls)
        self._parts = parts
        return self

    @classmethod
    def trusted(
        cls,
        columns: dict[str, Column] | Arrays,
        length: int,
        more: MoreColumns | None = None,
    ) -> "Columns":
        """A container of columns that are known to have this length; the dict is kept.

        Args:
            more: Makes further columns, once, when somebody asks for columns or rows.
        """
        self = cls.__new__(cls)
        self._parts = [(_Block(columns, length, more), range(length))]
        return self

    @classmethod
    def of_arrays(cls, columns: Mapping[str, AnyColumn], tensors: Set[str]) -> "Columns":
        """A container whose readers get tensors under these names, where arrays were given.

        No tensor is made before somebody reads it.

        Raises:
            DataError: Columns of different lengths, or none at all; a column that is no array of
                numbers.
        """
        length = _common_length(columns)
        arrays = arrays_of(columns)
        if arrays is None:
            raise DataError(f"columns {sorted(columns)} must hold numbers")
        for key, form in arrays.forms.items():
            if form is None and path_of(key)[0] in tensors:
                arrays.forms[key] = tensor_form(arrays.leaves[key].dtype)
        return cls.trusted(arrays, length)

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> "Columns":
        """Stack uniform rows.

        Raises:
            DataError: Rows whose keys, types or shapes differ, or that hold something other than
                tensors, arrays, numbers and mappings of them.
        """
        if not rows:
            raise DataError("no rows to make columns of")
        return cls(_stack_mappings(rows, ""))

    @classmethod
    def concat(cls, batches: Iterable["Columns"]) -> "Columns":
        """Join containers without copying; arrays are joined when they are first asked for."""
        parts: list[tuple[_Block, range]] = []
        for batch in batches:
            if batch._parts is None:
                raise DataError("concat() takes containers that are still columnar")
            parts.extend(batch._parts)
        return cls._of(parts)

    # ------------------------------------------------------------------ columns

    def _columnar_parts(self) -> list[tuple[_Block, range]] | None:
        parts = self._parts
        if parts is None:
            return None
        if len(parts) == 1:
            return None if parts[0][0].is_rows else parts
        names = [None if block.is_rows else block.names() for block, _ in parts]
        return parts if all(n is not None and n == names[0] for n in names) else None

    @property
    def is_columnar(self) -> bool:
        """Whether nobody has asked for a row yet and all parts have the same columns."""
        return self._columnar_parts() is not None

    def columns_or_none(self) -> Mapping[str, Column] | None:
        """The arrays by name, only to be read; None if the data has become rows."""
        parts = self._columnar_parts()
        if not parts:
            return None if parts is None else {}
        found = []
        for block, span in parts:
            columns = block.columns()
            if columns is None:  # another thread has just asked for rows
                return None
            is_whole = len(span) == block.length and span.step == 1
            found.append(columns if is_whole else _select(columns, span))
        # What is joined is not kept: the blocks may be shared, and a row asked of another container
        # must not drift apart from a joined copy in this one.
        return found[0] if len(found) == 1 else tree_join(_joined, found)

    @property
    def columns(self) -> dict[str, Column]:
        """The arrays by name, in a fresh dict; the arrays themselves are not copied.

        Raises:
            DataError: The data has become rows.
        """
        columns = self.columns_or_none()
        if columns is None:
            raise _handed_out()
        return dict(columns)

    def windows(self) -> Windows | None:
        """Arrays, and which rows of them these are, in steps of one: part by part, in order.

        For who copies them anyway: a slice needs no views of its own for that, parts need not be
        joined, and columns that are indices into another array are left so.

        Returns:
            ``None`` if the data has become rows, or a column cannot be an array of numbers.
        """
        parts = self._parts or ()
        found: Windows = []
        for block, span in parts if len(parts) == 1 else self._columnar_parts() or ():
            if span.step != 1:
                block, span = _Block(self.columns, len(self)), range(len(self))
                return None if (arrays := block.arrays()) is None else [(arrays, span)]
            if (arrays := block.arrays()) is None:
                return None
            found.append((arrays, span))
        return found or None

    def apart(self) -> "Columns":
        """The same rows in a container of its own, over the same arrays.

        If one of them becomes rows, and these are changed, the other stays columnar.

        Raises:
            DataError: The data has become rows.
        """
        parts = self._columnar_parts()
        if parts is None:
            raise _handed_out()
        return Columns._of([(block.apart(), span) for block, span in parts])

    def copied_rows(self) -> list[Row]:
        """The rows as a list, to which nobody else can write: this container stays as it is."""
        return list(self.apart() if self.is_columnar else self)

    def column(self, name: str) -> Column:
        """One column by name."""
        return self.columns[name]

    def take(self, index: Index) -> "Columns":
        """Gather rows by an integer array, a boolean mask or a slice; the result is a copy."""
        rows = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        columns = self.columns
        return Columns({name: tree_map(_gather_by(rows), col) for name, col in columns.items()})

    def with_columns(self, **columns: Column) -> "Columns":
        """A container with further or replaced columns; the others are shared."""
        return Columns({**self.columns, **columns})

    def map_columns(
        self, fn: Callable[[np.ndarray | torch.Tensor], np.ndarray | torch.Tensor]
    ) -> "Columns":
        """A container with ``fn`` applied to each array; ids are left alone."""

        def apply(leaf: Leaf) -> Leaf:
            return leaf if isinstance(leaf, IdColumn) else fn(leaf)

        return Columns({name: tree_map(apply, col) for name, col in self.columns.items()})

    def collated(self) -> dict[str, Column]:
        """A dict of batched tensors that share memory with the columns; ids stay as they are.

        One float64 per row, which is a Python number in the rows, becomes float32, as when rows
        are collated.
        """
        return {
            name: col if type(col) in _READY else tree_map(_as_tensor, col)
            for name, col in self.columns.items()
        }

    # ------------------------------------------------------------------ sequence

    def _to_rows(self) -> None:
        if self._parts is None:
            return
        picked: list[Row] = []
        for block, span in self._parts:
            rows = block.to_rows()
            whole = len(span) == len(rows) and span.step == 1
            picked += rows if whole else [rows[i] for i in span]
        # In one piece, and before the columns go: other threads may look.
        list.__setitem__(self, slice(None), picked)
        self._parts = None

    def __len__(self) -> int:
        if self._parts is None:
            return super().__len__()
        if len(self._parts) == 1:
            return len(self._parts[0][1])
        return sum(len(span) for _, span in self._parts)

    def __getitem__(self, index: Any) -> Any:
        if self._parts is not None and isinstance(index, slice):
            if len(self._parts) == 1:
                block, span = self._parts[0]
                return Columns._of([(block, span[index])])
            if index.step in (None, 1):
                return Columns._of(_slice_parts(self._parts, index, len(self)))
        self._to_rows()
        return super().__getitem__(index)

    def __add__(self, other: Any) -> Any:
        if self._parts is not None and isinstance(other, Columns) and other._parts is not None:
            return Columns._of(self._parts + other._parts)
        self._to_rows()
        return list(self) + list(other) if isinstance(other, list) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        # `rows + columns` and `rows += columns` both come here, and cannot be told apart. The
        # list's own methods do what each of them should: they read the rows that now are there.
        self._to_rows()
        return NotImplemented

    def __iadd__(self, other: Iterable[Any]) -> "Columns":  # type: ignore[misc]
        self.extend(other)
        return self

    def extend(self, other: Iterable[Any]) -> None:
        if self._parts is not None and isinstance(other, Columns) and other._parts is not None:
            self._parts = self._parts + other._parts
            return
        self._to_rows()
        super().extend(list(other))

    def copy(self) -> Any:
        if self._parts is None:
            return list(self)
        return Columns._of(list(self._parts))

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if self._parts and self.is_columnar:
            return Columns({name: tree_map(_clone, col) for name, col in self.columns.items()})
        return [copy.deepcopy(row, memo) for row in self]

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self._parts and self.is_columnar:
            return (Columns, (self.columns,))
        return (list, (list(self),))

    def __iter__(self) -> Iterator[Row]:
        self._to_rows()
        return super().__iter__()

    def __repr__(self) -> str:
        if self._parts is None:
            return super().__repr__()
        names = sorted({str(name) for block, _ in self._parts for name in block.names()})
        return f"<Columns of {len(self)} rows: {', '.join(names)}>"

    __hash__ = None


def _rows_first(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: Columns, *args: Any, **kwargs: Any) -> Any:
        self._to_rows()
        for arg in args:
            if isinstance(arg, Columns):
                arg._to_rows()
        return method(self, *args, **kwargs)

    call.__name__ = name
    call.__doc__ = method.__doc__
    return call


for _name in (
    *("__setitem__", "__delitem__", "__contains__", "__reversed__", "__mul__", "__rmul__"),
    *("__imul__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
    *("append", "insert", "pop", "remove", "reverse", "sort", "clear", "index", "count"),
):
    setattr(Columns, _name, _rows_first(_name))


def as_columns(data: object) -> Columns | None:
    """``data`` itself if it is columnar; columns stacked from uniform rows; otherwise ``None``.

    Args:
        data: A ``Columns``, or a list of row dicts.
    """
    if isinstance(data, Columns):
        if data.is_columnar:
            return data
        data = list(data)
    if not isinstance(data, list | tuple) or not data:
        return None
    if not all(isinstance(row, Mapping) for row in data):
        return None
    try:
        return Columns.from_rows(data)
    except DataError:
        return None


# ---------------------------------------------------------------------- arrays


def _common_length(columns: Mapping[str, AnyColumn]) -> int:
    if not columns:
        raise DataError("columns need at least one name")
    lengths = {name: tree_length(col) for name, col in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"columns must have one leading length, got {lengths}")
    return next(iter(lengths.values()))


def _rows_of(columns: Mapping[str, Column], length: int) -> list[Row]:
    values = [_values_of(col, length) for col in columns.values()]
    names = list(columns)
    return [dict(zip(names, row)) for row in zip(*values)]


def _values_of(col: Column, length: int) -> Sequence[Any]:
    if isinstance(col, torch.Tensor):
        return col.unbind(0)
    if isinstance(col, Mapping):
        return _rows_of(col, length)
    if isinstance(col, np.ndarray) and col.ndim > 1:
        return list(col)
    return col.tolist()


def _handed_out() -> DataError:
    return DataError("these rows were handed out and may have changed: use them as rows")


def _select(columns: Mapping[str, Column], span: range) -> dict[str, Column]:
    """The part of a block's columns that ``span`` names: views, unless it runs backwards."""

    def pick(leaf: Leaf) -> Leaf:
        if span == range(len(leaf)):
            return leaf
        if span.step > 0:
            return leaf[span.start : span.stop : span.step]
        return backwards(leaf)

    backwards = _gather_by(np.arange(span.start, span.stop, span.step))

    return {name: tree_map(pick, col) for name, col in columns.items()}


def _gather_by(rows: np.ndarray) -> Callable[[Leaf], Leaf]:
    """Copies these rows of a leaf."""
    return lambda leaf: leaf[torch.from_numpy(rows) if isinstance(leaf, torch.Tensor) else rows]


def _slice_parts(
    parts: list[tuple[_Block, range]], index: slice, length: int
) -> list[tuple[_Block, range]]:
    start, stop, _ = index.indices(length)
    picked, offset = [], 0
    for block, span in parts:
        low, high = max(start - offset, 0), min(stop - offset, len(span))
        if low < high:
            picked.append((block, span[low:high]))
        offset += len(span)
    return picked or [(block, span[:0]) for block, span in parts[:1]]


def _joined(leaves: Sequence[Any]) -> Leaf:
    first = leaves[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(list(leaves))
    if isinstance(first, IdColumn):
        return IdColumn(first.prefix, np.concatenate([leaf.numbers for leaf in leaves]))
    return np.concatenate(leaves)


def _clone(leaf: Leaf) -> Leaf:
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf.copy()


#: Columns that stay as they are in a batch of tensors.
_READY = frozenset({torch.Tensor, IdColumn})


def _as_tensor(leaf: Leaf) -> torch.Tensor | IdColumn:
    if not isinstance(leaf, np.ndarray):
        return leaf
    if leaf.ndim == 1 and leaf.dtype == np.float64:
        leaf = leaf.astype(np.float32)
    return torch.from_numpy(leaf)


def _gathered(leaf: Leaf | IndexedColumn[np.ndarray] | IndexedColumn[torch.Tensor]) -> Leaf:
    return leaf.gathered() if isinstance(leaf, IndexedColumn) else leaf


_NUMBER = int | float | np.number


def _stack_mappings(rows: Sequence[Mapping[str, Any]], path: str) -> dict[str, Column]:
    keys = rows[0].keys()
    if any(row.keys() != keys for row in rows):
        raise DataError(f"rows differ in their keys{f' under {path!r}' if path else ''}")
    return {key: stack([row[key] for row in rows], f"{path}{key}") for key in keys}


def stack(values: list[Any], path: str) -> Column:
    """One column of what rows have under a name.

    Raises:
        DataError: Types or shapes differ, or these are no tensors, arrays, numbers or mappings of
            them; names the column by `path`.
    """
    first = values[0]
    kind = type(first)
    if any(type(value) is not kind for value in values):
        if all(isinstance(value, _NUMBER) and type(value) is not bool for value in values):
            return np.array(values)  # whole numbers among real ones
        raise DataError(
            f"column {path!r} mixes types: {sorted({type(v).__name__ for v in values})}"
        )
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
