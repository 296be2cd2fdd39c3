"""Types of columns. A column is stored as a numpy array and the form in which readers get it."""

import functools
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np
import torch

from ding.data.tree import Index as Index, tree_paths
from ding.utils.errors import DataError
from ding.utils.types import State as State, Tree

Array = TypeVar("Array", np.ndarray, torch.Tensor)


class IdColumn:
    """Ids of the form ``<prefix>_<number>``, stored as numbers; a row contains the text.

    Args:
        prefix: The part before the underscore in each id.
        numbers: int64 ``[N]``.
    """

    __slots__ = ("numbers", "prefix")

    def __init__(self, prefix: str, numbers: np.ndarray) -> None:
        self.prefix = prefix
        self.numbers = np.asarray(numbers, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N,)``."""
        return self.numbers.shape

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: Index) -> "IdColumn": ...

    def __getitem__(self, index: Index | int) -> "str | IdColumn":
        picked = self.numbers[index]
        return IdColumn(self.prefix, picked) if np.ndim(picked) else f"{self.prefix}_{int(picked)}"

    def tolist(self) -> list[str]:
        """The ids as text."""
        prefix = self.prefix
        return [f"{prefix}_{number}" for number in self.numbers.tolist()]

    def __repr__(self) -> str:
        return f"IdColumn({self.prefix!r}, {self.numbers!r})"


def id_numbers(ids: "IdColumn | Iterable[str]", prefix: str) -> np.ndarray:
    """Numbers of the ids that have this prefix, -2 for other ids; int64 [n].

    Raises:
        DataError: An element is not an id.
    """
    if isinstance(ids, IdColumn):
        # Not -1: empty slots have that number, and would match an id of another buffer.
        return ids.numbers if ids.prefix == prefix else np.full(len(ids), -2)
    start = f"{prefix}_"
    cut = len(start)
    try:
        return np.array([int(i[cut:]) if i.startswith(start) else -2 for i in ids], dtype=np.int64)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"replay_unique_id must be ids such as '{start}7': {error}") from error


class IndexedColumn(Generic[Array]):
    """A column of indices into an array: row i is ``source[index[i]]``.

    An observation is both one row's ``obs`` and another row's ``next_obs``. If both columns are
    indices into one source, a buffer copies ``source`` directly into its storage and does not have
    to compare large observations to find equal ones::

        frames = torch.cat([log.obs, log.final_obs])  # [M, ...]
        obs, next_obs = IndexedColumn(frames, at), IndexedColumn(frames, following)
        buffer.push(Columns({"obs": obs, "next_obs": next_obs, "action": action, ...}))

    Readers of ``Columns.columns`` get the gathered array.

    Args:
        source: Array or tensor ``[M, ...]``; must no longer be written to.
        index: int64 ``[N]``, in ``[0, M)``.
    """

    __slots__ = ("index", "source")

    def __init__(self, source: Array, index: np.ndarray) -> None:
        self.source: Array = source
        self.index = index

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the gathered array: ``(N, *source.shape[1:])``."""
        return (len(self.index), *self.source.shape[1:])

    @property
    def dtype(self) -> Any:
        """Type of the source's elements."""
        return self.source.dtype

    def __getitem__(self, rows: slice | np.ndarray) -> "IndexedColumn[Array]":
        return IndexedColumn(self.source, self.index[rows])

    def gathered(self) -> Array:
        """The array ``source[index]``, a copy."""
        if isinstance(self.source, torch.Tensor):
            return self.source[torch.from_numpy(self.index)]
        return self.source.take(self.index, 0)

    def __repr__(self) -> str:
        return f"IndexedColumn({len(self)} of {len(self.source)} rows)"


#: A stored sample: usually a mapping, but any object is allowed.
Item: TypeAlias = Any
#: Items that a buffer returns: ``Columns`` if they are columnar, otherwise a plain list.
Items: TypeAlias = list[Item]
#: One transition, or another mapping of names.
Row: TypeAlias = dict[str, Item]
#: An array of one value per row.
Leaf: TypeAlias = np.ndarray | torch.Tensor | IdColumn
#: An array of one value per row, or a nested mapping of such arrays.
Column: TypeAlias = Leaf | Mapping[str, Tree]
#: Name of a column; for a column in nested mappings, the tuple of names on its path.
Key: TypeAlias = Hashable
#: How readers get a column: ``None`` as the array itself, a dtype as a tensor of that dtype, a
#: string as ids with that prefix.
Form: TypeAlias = torch.dtype | str | None
#: An array of one value per row, as it is stored.
StoredLeaf: TypeAlias = np.ndarray | IndexedColumn[np.ndarray]
#: Columns in the form in which they are stored.
Stored: TypeAlias = dict[Key, tuple[StoredLeaf, Form]]
#: Makes columns on demand, since readers often do not need them.
MoreColumns: TypeAlias = Callable[[], Mapping[str, np.ndarray | IdColumn]]


def stored_columns(
    columns: Mapping[str, Tree], plain: Container[str] | None = None
) -> Stored | None:
    """Columns as arrays that share their memory; None if a column cannot be stored as an array.

    Args:
        plain: Names of the columns that readers get as arrays; they get the other arrays as
            tensors. None for all columns.

    Raises:
        DataError: An array that readers would get as a tensor contains texts or times.
    """
    found: Stored = {}
    for path, leaf in tree_paths(columns):
        # A name that is itself a tuple stays inside a path of length one, to distinguish it from
        # a path.
        key: Key = path if len(path) > 1 or isinstance(path[0], tuple) else path[0]
        source = leaf.source if type(leaf) is IndexedColumn else leaf
        array = source if type(source) is np.ndarray else as_array(source)
        if array is None or array.dtype.hasobject:
            return None
        form: Form = None
        if isinstance(source, torch.Tensor):
            form = source.dtype
        elif isinstance(source, IdColumn):
            form = source.prefix
        elif plain is not None and path[0] not in plain:
            form = _tensor_form(array.dtype)
        found[key] = (array if source is leaf else IndexedColumn(array, leaf.index)), form
    return found


@functools.cache
def _tensor_form(dtype: np.dtype) -> torch.dtype:
    """The dtype of a tensor made from an array of this dtype."""
    return as_tensors(np.empty(0, dtype)).dtype


def shown_columns(stored: Stored) -> dict[str, Tree]:
    """The inverse of `stored_columns`."""
    return nested({key: shown(leaf, form) for key, (leaf, form) in stored.items()})


def joined_columns(parts: Sequence[Stored]) -> Stored | None:
    """Concatenate the rows of all parts, as a copy; None if the columns of the parts differ."""
    if not parts or any(part.keys() != parts[0].keys() for part in parts):
        return None
    found: Stored = dict(parts[0])
    #: Columns that are indices into the same arrays, by the memory of these arrays.
    over: dict[tuple[object, ...], list[Key]] = {}
    for key, (_, form) in parts[0].items():
        given, forms = zip(*[part[key] for part in parts])
        if len({leaf.shape[1:] for leaf in given}) > 1:
            return None
        if len(set(forms)) > 1:
            # bfloat16 is stored as its bits in int16, which must not be concatenated with numbers.
            if not all(isinstance(one, torch.dtype) and one != torch.bfloat16 for one in forms):
                return None
            form = _tensor_form(np.result_type(*(x.dtype for x in given)))
        sources = [leaf.source for leaf in given if isinstance(leaf, IndexedColumn)]
        if len(sources) == len(given):
            # By memory, not identity: `Tensor.numpy` returns a new array object at each call.
            memory = ((one.__array_interface__["data"], one.shape, one.dtype) for one in sources)
            over.setdefault(tuple(memory), []).append(key)
            found[key] = given[0], form
        else:
            found[key] = np.concatenate([gathered(leaf) for leaf in given]), form
    for keys in over.values():
        indexed = _join_indexed([[part[key][0] for key in keys] for part in parts])
        found |= {key: (leaf, found[key][1]) for key, leaf in zip(keys, indexed)}
    return found


def _join_indexed(parts: Sequence[Sequence[Tree]]) -> list[IndexedColumn[np.ndarray]]:
    """Concatenate columns that are indices into one array in each part."""
    sources, index, begin = [], [], 0
    for leaves in parts:
        # Only the entries that the rows refer to, each once: the array may be much longer.
        used, places = np.unique(np.stack([leaf.index for leaf in leaves]), return_inverse=True)
        sources.append(leaves[0].source[used])
        index.append(places.reshape(len(leaves), -1) + begin)
        begin += len(used)
    source = np.concatenate(sources)
    return [IndexedColumn(source, own) for own in np.concatenate(index, 1)]


def as_array(value: object) -> np.ndarray | None:
    """The array behind a CPU tensor, an array or ids, not copied; None for any other object."""
    if isinstance(value, torch.Tensor):
        try:
            return value.numpy()
        except (TypeError, RuntimeError):
            return _of_unusual_tensor(value)
    if isinstance(value, IdColumn):
        return value.numbers
    return value if isinstance(value, np.ndarray) else None


def _of_unusual_tensor(value: torch.Tensor) -> np.ndarray | None:
    if value.device.type != "cpu" or value.layout is not torch.strided:
        return None
    value = value.detach()
    if value.dtype is torch.bfloat16:
        # numpy has no bfloat16: its bits are stored as int16, which `_tensor` reads as bfloat16.
        return value.view(torch.int16).numpy()
    try:
        # Conjugation and negation are flags of a torch tensor; numpy has no such flags.
        return value.resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError):
        return None


def as_tensors(column: Tree) -> Tree:
    """The arrays of a column as tensors that share their memory.

    Raises:
        DataError: An array does not contain numbers.
    """
    if isinstance(column, Mapping):
        return {name: as_tensors(part) for name, part in column.items()}
    if isinstance(column, IndexedColumn):
        return IndexedColumn(as_tensors(column.source), column.index)
    try:
        return torch.from_numpy(column) if isinstance(column, np.ndarray) else column
    except TypeError as error:
        raise DataError(f"an array of {column.dtype} came; expected numbers") from error


def shown(leaf: StoredLeaf, form: Form) -> Leaf | IndexedColumn[torch.Tensor] | StoredLeaf:
    """A stored leaf in the form in which `stored_columns` got it; not gathered if it is indexed."""
    if isinstance(leaf, IndexedColumn):
        return leaf if form is None else IndexedColumn(_tensor(leaf.source, form), leaf.index)
    if form is None:
        return leaf
    return IdColumn(form, leaf) if isinstance(form, str) else _tensor(leaf, form)


def _tensor(array: np.ndarray, form: Form) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if form is torch.bfloat16 else tensor


def gathered(leaf: Tree) -> Tree:
    """The array itself; for an `IndexedColumn` the gathered array."""
    return leaf.gathered() if isinstance(leaf, IndexedColumn) else leaf


def nested(flat: Mapping[Key, Tree]) -> dict[str, Tree]:
    """Nest a flat mapping whose keys are paths."""
    found: dict[Any, Tree] = {}
    for key, value in flat.items():
        home, path = found, path_of(key)
        for name in path[:-1]:
            home = home.setdefault(name, {})
        home[path[-1]] = value
    return found


def path_of(key: Key) -> tuple[Any, ...]:
    """The path of a column, as a tuple of names."""
    return key if isinstance(key, tuple) else (key,)
