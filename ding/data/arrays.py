"""What a column may be, and columns as they are kept: numpy arrays, and the form readers get.

Tensors are for the edge, as rows are: to make one of an array, or an array of one, takes longer
than to copy sixty rows.
"""

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np
import torch

from ding.data.tree import Index as Index, tree_paths
from ding.utils.errors import DataError
from ding.utils.types import State as State, Tree

Array = TypeVar("Array", np.ndarray, torch.Tensor)


class IdColumn:
    """Ids of the form ``<prefix>_<number>``, held as numbers; a row has the text.

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
    """Numbers of the ids that have this prefix, -2 for others; int64 [n].

    Raises:
        DataError: Something that is no id.
    """
    if isinstance(ids, IdColumn):
        return ids.numbers if ids.prefix == prefix else np.full(len(ids), -2)
    start = f"{prefix}_"
    cut = len(start)
    try:
        return np.array([int(i[cut:]) if i.startswith(start) else -2 for i in ids], dtype=np.int64)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"replay_unique_id must be ids such as '{start}7': {error}") from error


class IndexedColumn(Generic[Array]):
    """A column that names rows of an array: row i is ``source[index[i]]``.

    An observation is both one row's ``obs`` and another's ``next_obs``. Given as two of these over
    one source, ``source`` is copied straight to where the rows are kept, and big observations are
    not searched for equal ones::

        frames = torch.cat([log.obs, log.final_obs])  # [M, ...]
        obs, next_obs = IndexedColumn(frames, at), IndexedColumn(frames, following)
        buffer.push(Columns({"obs": obs, "next_obs": next_obs, "action": action, ...}))

    Readers of ``Columns.columns`` get the array that it represents.

    Args:
        source: Array or tensor ``[M, ...]``; not to be written to any more.
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

    def __getitem__(self, rows: slice) -> "IndexedColumn[Array]":
        return IndexedColumn(self.source, self.index[rows])

    def gathered(self) -> Array:
        """The array that this represents, a copy."""
        if isinstance(self.source, torch.Tensor):
            return self.source[torch.from_numpy(self.index)]
        return self.source.take(self.index, 0)

    def __repr__(self) -> str:
        return f"IndexedColumn({len(self)} of {len(self.source)} rows)"


#: What users store: mappings mostly, but whatever they like.
Item: TypeAlias = Any
#: Items as they leave: ``Columns`` if they are columnar, otherwise a plain list.
Items: TypeAlias = list[Item]
#: One transition, or another mapping of names.
Row: TypeAlias = dict[str, Item]
#: An array of one value per row.
Leaf: TypeAlias = np.ndarray | torch.Tensor | IdColumn
#: An array of one value per row, or a nested mapping of them.
Column: TypeAlias = Leaf | Mapping[str, Tree]
#: Name of a column; of one in nested mappings the names on the way to it.
Key: TypeAlias = Hashable
#: What readers get: ``None`` the array itself, a dtype a tensor of it, a text ids of that prefix.
Form: TypeAlias = torch.dtype | str | None
#: An array of one value per row, as it is kept.
StoredLeaf: TypeAlias = np.ndarray | IndexedColumn[np.ndarray]
#: Makes columns that a reader may never ask for.
MoreColumns: TypeAlias = Callable[[], Mapping[str, np.ndarray | IdColumn]]
_DTYPE, _BFLOAT16, _ARRAY, _from_numpy = torch.dtype, torch.bfloat16, np.ndarray, torch.from_numpy


class Arrays:
    """Arrays of one leading length, which nothing changes.

    Attributes:
        leaves: Arrays by name, flat.
        forms: The form of each, in the same order.
        more: Makes further columns, which `completed` puts among the others.
    """

    __slots__ = ("forms", "leaves", "more")

    def __init__(
        self,
        leaves: dict[Key, StoredLeaf],
        forms: dict[Key, Form],
        more: MoreColumns | None = None,
    ) -> None:
        self.leaves = leaves
        self.forms = forms
        self.more = more

    def collated(self) -> dict[str, Tree] | None:
        """The columns as `Columns.collated` gives them; None if one represents another array.

        There must be no further ones.
        """
        found: dict[Any, Tree] = {}
        is_flat = True
        for key, form in self.forms.items():
            leaf = self.leaves[key]
            if type(leaf) is not _ARRAY:
                return None
            if form is None and leaf.ndim == 1 and leaf.dtype == np.float64:
                leaf = leaf.astype(np.float32)
            is_tensor = form is None or (type(form) is _DTYPE and form is not _BFLOAT16)
            found[key] = _from_numpy(leaf) if is_tensor else shown(leaf, form)
            is_flat = is_flat and type(key) is not tuple
        return found if is_flat else nested(found)

    def part(self, rows: range) -> "Arrays":
        """These rows, in the same memory, without further columns."""
        part = slice(rows.start, rows.stop)
        return Arrays({key: leaf[part] for key, leaf in self.leaves.items()}, self.forms)

    def picked(self, rows: np.ndarray) -> "Arrays":
        """Rows by their places, int64 ``[n]``; indices are still over the same arrays."""
        leaves: dict[Key, StoredLeaf] = {}
        for key, leaf in self.leaves.items():
            if isinstance(leaf, IndexedColumn):
                leaves[key] = IndexedColumn(leaf.source, leaf.index[rows])
            else:
                leaves[key] = leaf[rows]
        return Arrays(leaves, self.forms)

    def completed(self) -> "Arrays":
        """All columns in one, the further ones at the end."""
        if self.more is None:
            return self
        leaves, forms = {**self.leaves}, {**self.forms}
        for name, column in self.more().items():
            if isinstance(column, IdColumn):
                leaves[name], forms[name] = column.numbers, column.prefix
            else:
                leaves[name], forms[name] = column, None
        return Arrays(leaves, forms)

    def shown(self) -> tuple[dict[str, Tree], bool]:
        """The columns as readers get them, nested as they came; and whether all are in the same
        memory. There must be no further ones."""
        leaves, is_flat, is_shared = self.leaves, True, True
        found: dict[Any, Tree] = {}
        for key, form in self.forms.items():
            leaf = leaves[key]
            if type(form) is _DTYPE and form is not _BFLOAT16 and type(leaf) is _ARRAY:
                found[key] = _from_numpy(leaf)  # mostly, and without another call
            else:
                found[key] = shown(leaf, form)
                is_shared = is_shared and type(leaf) is _ARRAY
            if type(key) is tuple:
                is_flat = False
        return found if is_flat else nested(found), is_shared


def arrays_of(columns: Mapping[str, Tree]) -> Arrays | None:
    """Columns as arrays, with which they share memory; None if one of them cannot be kept so."""
    leaves: dict[Key, StoredLeaf] = {}
    forms: dict[Key, Form] = {}
    for path, leaf in tree_paths(columns):
        key = key_of(path)
        is_indexed = type(leaf) is IndexedColumn
        source = leaf.source if is_indexed else leaf
        array = as_array(source)
        if array is None or array.dtype.hasobject:
            return None
        leaves[key] = IndexedColumn(array, leaf.index) if is_indexed else array
        if isinstance(source, IdColumn):
            forms[key] = source.prefix
        else:
            forms[key] = source.dtype if isinstance(source, torch.Tensor) else None
    return Arrays(leaves, forms)


def joined_arrays(parts: Sequence[Arrays]) -> Arrays | None:
    """The rows of all parts in one copy; None if the parts differ in their columns."""
    forms = dict(parts[0].forms) if parts else {}
    if any(part.forms.keys() != forms.keys() for part in parts):
        return None
    leaves: dict[Key, StoredLeaf] = {}
    #: Columns that are indices into the same arrays, by the memory of these.
    over: dict[tuple[object, ...], list[Key]] = {}
    for key, form in forms.items():
        given = [part.leaves[key] for part in parts]
        if len({leaf.shape[1:] for leaf in given}) > 1:
            return None
        if any(part.forms[key] != form for part in parts):
            others = [part.forms[key] for part in parts]
            if any(type(other) is not _DTYPE or other is _BFLOAT16 for other in others):
                return None
            forms[key] = tensor_form(np.result_type(*(leaf.dtype for leaf in given)))
        sources = [leaf.source for leaf in given if isinstance(leaf, IndexedColumn)]
        if len(sources) == len(given):
            memory = ((one.__array_interface__["data"], one.shape, one.dtype) for one in sources)
            over.setdefault(tuple(memory), []).append(key)
        else:
            leaves[key] = np.concatenate([gathered(leaf) for leaf in given])
    for keys in over.values():
        leaves.update(_join_indexed([[part.leaves[key] for key in keys] for part in parts], keys))
    return Arrays(leaves, forms) if parts else None


def _join_indexed(parts: Sequence[Sequence[Tree]], keys: Sequence[Key]) -> dict[Key, StoredLeaf]:
    """Join columns that are indices into one array in each part."""
    sources, index, begin = [], [], 0
    for leaves in parts:
        # What the rows refer to alone, each once: the array may be much longer.
        used, places = np.unique(np.stack([leaf.index for leaf in leaves]), return_inverse=True)
        sources.append(leaves[0].source[used])
        index.append(places.reshape(len(keys), -1) + begin)
        begin += len(used)
    source = np.concatenate(sources)
    return {key: IndexedColumn(source, own) for key, own in zip(keys, np.concatenate(index, 1))}


def as_array(value: object) -> np.ndarray | None:
    """An array that shares memory with a CPU tensor, an array or ids; None for anything else."""
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
        return value.view(torch.int16).numpy()
    try:
        return value.resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError):
        return None


@functools.lru_cache
def tensor_form(dtype: np.dtype) -> Form:
    """The form of arrays of a dtype that readers get as tensors."""
    return torch.from_numpy(np.empty(0, dtype)).dtype


def shown(leaf: StoredLeaf, form: Form) -> Leaf:
    """What readers get of an array."""
    array = gathered(leaf)
    if form is None:
        return array
    if isinstance(form, str):
        return IdColumn(form, array)
    tensor = torch.from_numpy(array)
    return tensor if form is not torch.bfloat16 else tensor.view(form)


def gathered(leaf: StoredLeaf) -> np.ndarray:
    """The array itself, or the one that an index represents."""
    return leaf.gathered() if isinstance(leaf, IndexedColumn) else leaf


def nested(flat: Mapping[Key, Tree]) -> dict[str, Tree]:
    """Mappings of mappings, of flat ones by the names on the way to each value."""
    found: dict[Any, Tree] = {}
    for key, value in flat.items():
        home, path = found, path_of(key)
        for name in path[:-1]:
            home = home.setdefault(name, {})
        home[path[-1]] = value
    return found


def path_of(key: Key) -> tuple[Any, ...]:
    """All names on the way to a column."""
    return key if isinstance(key, tuple) else (key,)


def key_of(path: tuple[Key, ...]) -> Key:
    """The inverse of `path_of`."""
    # A name that is a tuple itself is left in one, not to be taken for a path.
    return path if len(path) > 1 or type(path[0]) is tuple else path[0]
