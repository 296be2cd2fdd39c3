"""Columns as they are kept: numpy arrays, and in which form readers get each of them.

Tensors are for the edge, as rows are: to make one of an array, or an array of one, takes longer
than to copy sixty rows.
"""

import functools
from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from ding.data.id_column import IdColumn
from ding.data.indexed_column import IndexedColumn
from ding.data.tree import tree_paths

#: Name of a column; of one in nested mappings the names on the way to it.
Key: TypeAlias = Hashable
#: What readers get: ``None`` the array itself, a dtype a tensor of it, a text ids of that prefix.
Form: TypeAlias = torch.dtype | str | None
_DTYPE, _BFLOAT16, _ARRAY, _from_numpy = torch.dtype, torch.bfloat16, np.ndarray, torch.from_numpy
#: An array of one value per row.
StoredLeaf: TypeAlias = np.ndarray | IndexedColumn[np.ndarray]


class Arrays:
    """Arrays of one leading length, nobody's to change.

    Attributes:
        leaves: Arrays by name, flat.
        forms: The form of each, in the same order.
    """

    __slots__ = ("forms", "leaves")

    def __init__(self, leaves: dict[Key, StoredLeaf], forms: dict[Key, Form]) -> None:
        self.leaves = leaves
        self.forms = forms

    def shown(self) -> dict[str, Any]:
        """The columns as readers get them, nested as they came; shares memory."""
        leaves, is_flat = self.leaves, True
        found: dict[Any, Any] = {}
        for key, form in self.forms.items():
            leaf = leaves[key]
            if type(form) is _DTYPE and form is not _BFLOAT16 and type(leaf) is _ARRAY:
                found[key] = _from_numpy(leaf)  # mostly, and without another call
            else:
                found[key] = shown(leaf, form)
            if type(key) is tuple:
                is_flat = False
        return found if is_flat else nested(found)


def arrays_of(columns: Mapping[Any, Any]) -> Arrays | None:
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
        leaves[key] = IndexedColumn(array, leaf.index, leaf.names) if is_indexed else array
        if isinstance(source, IdColumn):
            forms[key] = source.prefix
        else:
            forms[key] = source.dtype if isinstance(source, torch.Tensor) else None
    return Arrays(leaves, forms)


def as_array(value: Any) -> np.ndarray | None:
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
    """The form of arrays of a dtype that readers shall get as tensors."""
    return torch.from_numpy(np.empty(0, dtype)).dtype


def shown(leaf: StoredLeaf, form: Form) -> Any:
    """What readers get of an array."""
    array = leaf.source.take(leaf.index, 0) if isinstance(leaf, IndexedColumn) else leaf
    if form is None:
        return array
    if isinstance(form, str):
        return IdColumn(form, array)
    tensor = torch.from_numpy(array)
    return tensor if form is not torch.bfloat16 else tensor.view(form)


def nested(flat: Mapping[Any, Any]) -> dict[Any, Any]:
    """Mappings of mappings, of what has the names on the way to it."""
    found: dict[Any, Any] = {}
    for key, value in flat.items():
        home, path = found, path_of(key)
        for name in path[:-1]:
            home = home.setdefault(name, {})
        home[path[-1]] = value
    return found


def path_of(key: Key) -> tuple[Any, ...]:
    """All names on the way to a column."""
    return key if isinstance(key, tuple) else (key,)


def key_of(path: tuple[Any, ...]) -> Key:
    """What `path_of` was given."""
    # A name that is a tuple itself is left in one, not to be taken for a path.
    return path if len(path) > 1 or type(path[0]) is tuple else path[0]
