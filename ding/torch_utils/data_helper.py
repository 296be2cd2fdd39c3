"""Conversions between tensors, arrays and plain Python over nested containers.

All functions accept nested dicts, lists, tuples and named tuples. They convert a container of
columns (``ding.data.Columns``) with one call per column. Memory is shared where possible. Mappings
are returned as plain dicts.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from types import UnionType

import numpy as np
import torch

from ding.utils.types import Tree

_SCALARS = (bool, int, float, np.generic)
_TEXTS = (bool, str, bytes)
#: Checked first: ``isinstance(..., Mapping)`` takes several times as long.
_LEAVES = frozenset({np.ndarray, torch.Tensor, bool, int, float, str, type(None)})


def map_leaves(
    fn: Callable[[Tree], object],
    item: Tree,
    ignore_keys: Collection[str] = (),
    is_leaf: Callable[[Sequence[Tree]], bool] | None = None,
    by_row: bool = False,
) -> Tree:
    """Apply ``fn`` to every leaf of nested dicts, lists, tuples and named tuples.

    A container of columns (``ding.data.Columns``) is mapped array by array, not row by row.

    Args:
        fn: Takes and returns one leaf.
        ignore_keys: Keys of mappings whose values are returned unchanged.
        is_leaf: Returns whether a list or tuple is a leaf.
        by_row: Whether to map columns as a list of rows; needed if ``fn`` does not return arrays.
    """
    if type(item) in _LEAVES:
        return fn(item)
    if isinstance(item, list):
        if getattr(item, "is_columnar", False):
            data: Tree = item
            if by_row:
                return map_leaves(fn, data.copied_rows(), ignore_keys, is_leaf, by_row)
            mapped = data.map_columns(fn)
            kept = {name: column for name, column in data.columns.items() if name in ignore_keys}
            return mapped.with_columns(**kept) if kept else mapped
        if is_leaf is not None and is_leaf(item):
            return fn(item)
        return [map_leaves(fn, value, ignore_keys, is_leaf, by_row) for value in item]
    if isinstance(item, Mapping):
        return {
            key: value
            if key in ignore_keys
            else map_leaves(fn, value, ignore_keys, is_leaf, by_row)
            for key, value in item.items()
        }
    if isinstance(item, tuple):
        if is_leaf is not None and is_leaf(item):
            return fn(item)
        values = [map_leaves(fn, value, ignore_keys, is_leaf, by_row) for value in item]
        return rebuild_tuple(item, values)
    return fn(item)


def rebuild_tuple(like: tuple[object, ...], values: list[Tree]) -> tuple[Tree, ...]:
    """A tuple or named tuple of the same type with other values."""
    return type(like)(*values) if hasattr(like, "_fields") else type(like)(values)


def to_device(item: object, device: str, ignore_keys: list[str] = []) -> Tree:
    """Move tensors and modules to ``device``; arrays, numbers, strings and None are unchanged.

    Args:
        item: Nested mappings and sequences.
        device: A device such as ``'cuda:0'``.
        ignore_keys: Keys of mappings whose values are unchanged.

    Raises:
        TypeError: A leaf has another type.

    Example:

        >>> import torch
        >>> from ding.torch_utils import to_device
        >>> to_device({"obs": torch.zeros(2)}, "cpu")
        {'obs': tensor([0., 0.])}
    """
    movable = torch.Tensor | torch.nn.Module
    return _changed(lambda leaf: leaf.to(device), movable, item, "to_device", ignore_keys)


def cpu_copy(leaf: object) -> object:
    """A copy of a tensor on the CPU; other leaves are unchanged."""
    return leaf.detach().to("cpu", copy=True) if isinstance(leaf, torch.Tensor) else leaf


def to_dtype(item: object, dtype: torch.dtype) -> Tree:
    """Cast tensors to ``dtype``; other leaves are unchanged."""
    return _changed(lambda leaf: leaf.to(dtype), torch.Tensor, item, "to_dtype")


def to_tensor(
    item: object,
    dtype: torch.dtype | None = None,
    ignore_keys: list[str] = [],
    transform_scalar: bool = True,
) -> Tree:
    """Turn arrays, numbers and lists of numbers into tensors.

    A tensor shares the memory of a writable array if the dtype is unchanged. Single bools, strings
    and None are unchanged.

    Args:
        item: Nested mappings and sequences.
        dtype: Dtype of all tensors. ``None`` keeps the dtype, except that float64 becomes float32,
            which networks expect.
        ignore_keys: Keys of mappings whose values are unchanged.
        transform_scalar: Whether single numbers become zero-dimensional tensors.

    Raises:
        TypeError: A leaf cannot be converted to a tensor.

    Example:

        >>> import numpy as np
        >>> from ding.torch_utils import to_tensor
        >>> to_tensor({"obs": np.zeros(2), "action": 1, "name": "a"})
        {'obs': tensor([0., 0.]), 'action': tensor(1), 'name': 'a'}
    """

    def convert(leaf: object) -> object:
        if isinstance(leaf, np.ndarray):
            return _array_to_tensor(leaf, dtype)
        if isinstance(leaf, torch.Tensor):
            return leaf if dtype is None else leaf.to(dtype)
        if leaf is None or isinstance(leaf, _TEXTS):
            return leaf
        if isinstance(leaf, list | tuple):
            return _scalar_to_tensor(leaf, dtype)
        if isinstance(leaf, _SCALARS):
            return _scalar_to_tensor(leaf, dtype) if transform_scalar else leaf
        raise TypeError(_cannot(leaf, "to_tensor"))

    return map_leaves(convert, item, ignore_keys, _is_numbers)


def to_ndarray(item: object, dtype: np.dtype | None = None) -> Tree:
    """Turn tensors, numbers and lists of numbers into arrays that share memory where possible.

    Single bools, strings and None are unchanged.

    Args:
        item: Nested mappings and sequences.
        dtype: Dtype of all arrays; ``None`` keeps the dtype.

    Raises:
        TypeError: A leaf cannot be converted to an array.

    Example:

        >>> import torch
        >>> from ding.torch_utils import to_ndarray
        >>> to_ndarray({"obs": torch.zeros(2), "actions": [1, 2]})
        {'obs': array([0., 0.], dtype=float32), 'actions': array([1, 2])}
    """

    def convert(leaf: object) -> object:
        if isinstance(leaf, torch.Tensor):
            return np.asarray(leaf.detach().cpu().numpy(), dtype=dtype)
        if isinstance(leaf, np.ndarray):
            return np.asarray(leaf, dtype=dtype)
        if leaf is None or isinstance(leaf, _TEXTS):
            return leaf
        if isinstance(leaf, (*_SCALARS, list, tuple)):
            return np.array(leaf, dtype=dtype)
        raise TypeError(_cannot(leaf, "to_ndarray"))

    return map_leaves(convert, item, is_leaf=_is_numbers)


def to_list(item: object) -> Tree:
    """Turn tensors and arrays into (nested) lists of Python numbers."""
    arrays = torch.Tensor | np.ndarray | np.generic
    return _changed(lambda leaf: leaf.tolist(), arrays, item, "to_list", by_row=True)


def tensor_to_list(item: object) -> Tree:
    """Turn tensors into (nested) lists; arrays and other leaves are unchanged."""
    return map_leaves(
        lambda leaf: leaf.tolist() if isinstance(leaf, torch.Tensor) else leaf, item, by_row=True
    )


def to_item(data: object, ignore_error: bool = True) -> Tree:
    """Turn one-element tensors and arrays into Python numbers.

    Args:
        ignore_error: Whether to leave out entries of containers that cannot be converted, instead
            of raising. A bare leaf always raises.

    Raises:
        ValueError: A tensor or array does not have exactly one element.
        TypeError: A leaf has another type.
    """
    if isinstance(data, Mapping):
        return dict(_items(data.items(), ignore_error))
    if isinstance(data, list | tuple):
        values = [value for _, value in _items(enumerate(data), ignore_error)]
        if isinstance(data, list):
            return values
        return rebuild_tuple(data, values) if len(values) == len(data) else tuple(values)
    if isinstance(data, torch.Tensor | np.ndarray | np.generic):
        if np.prod(data.shape) != 1:
            raise ValueError(
                f"got shape {tuple(data.shape)} in to_item: only one element makes a number"
            )
        return data.item()
    return _passed(data, "to_item")


def same_shape(data: Sequence[torch.Tensor | np.ndarray]) -> bool:
    """Whether all tensors (or arrays) have the same shape."""
    return len({tuple(value.shape) for value in data}) <= 1


def get_tensor_data(data: object) -> Tree:
    """Detach tensors from the graph; the results share their memory."""
    return _changed(lambda leaf: leaf.data, torch.Tensor, data, "get_tensor_data")


def unsqueeze(data: object, dim: int = 0) -> Tree:
    """Insert a dimension of size 1 into every tensor."""
    return map_leaves(lambda leaf: leaf.unsqueeze(dim), data)


def squeeze(data: object, dim: int = 0) -> Tree:
    """Remove dimension ``dim`` from every tensor in which it has size 1."""
    return map_leaves(lambda leaf: leaf.squeeze(dim), data)


def zeros_like(h: object) -> Tree:
    """Zeros with the same structure, shapes and types; None stays None."""

    def zero(leaf: Tree) -> object:
        if isinstance(leaf, np.ndarray | np.generic):
            return np.zeros_like(leaf)
        if leaf is None or isinstance(leaf, bool | int | float):
            return None if leaf is None else type(leaf)(0)
        return torch.zeros_like(leaf)

    return map_leaves(zero, h)


def get_null_data(template: Mapping[str, Tree], num: int) -> list[dict[str, Tree]]:
    """Null transitions, to pad a trajectory.

    Args:
        template: A transition; it is copied.

    Returns:
        ``num`` copies with ``null=True``, ``done=True`` and a zero ``reward``.
    """

    def clone(leaf: object) -> object:
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().clone()
        return leaf.copy() if isinstance(leaf, np.ndarray) else leaf

    rows = []
    for _ in range(num):
        row = map_leaves(clone, template)
        row.update(null=True, done=True, reward=zeros_like(template["reward"]))
        rows.append(row)
    return rows


def _array_to_tensor(array: np.ndarray, dtype: torch.dtype | None) -> torch.Tensor:
    if array.dtype == object:
        raise TypeError(
            f"got an object array of shape {array.shape} in to_tensor: stack values of one type "
            "and shape, or keep them in a list"
        )
    if dtype is None and array.dtype == np.float64:
        dtype = torch.float32
    if not array.flags.writeable or min(array.strides, default=0) < 0:
        array = array.copy()  # torch supports neither read-only memory nor negative strides
    tensor = torch.from_numpy(array)
    return tensor if dtype is None else tensor.to(dtype)


def _scalar_to_tensor(value: object, dtype: torch.dtype | None) -> torch.Tensor:
    tensor = torch.as_tensor(value, dtype=dtype)
    # numpy float64 scalars would stay float64
    return tensor.float() if dtype is None and tensor.dtype == torch.float64 else tensor


def _is_numbers(values: Sequence[Tree]) -> bool:
    """Whether a list or tuple contains only numbers, and is converted like an array."""
    is_record = hasattr(values, "_fields")
    return not is_record and len(values) > 0 and all(isinstance(v, _SCALARS) for v in values)


def _items(
    pairs: Iterable[tuple[Hashable, object]], ignore_error: bool
) -> Iterator[tuple[Hashable, Tree]]:
    for key, value in pairs:
        try:
            yield key, to_item(value, ignore_error)
        except (ValueError, TypeError):
            if not ignore_error:
                raise


def _changed(
    change: Callable[[Tree], object],
    kinds: type | UnionType,
    item: object,
    function: str,
    ignore_keys: Collection[str] = (),
    by_row: bool = False,
) -> Tree:
    """Apply `change` to leaves of the given types; other supported leaves are unchanged."""
    return map_leaves(
        lambda leaf: change(leaf) if isinstance(leaf, kinds) else _passed(leaf, function),
        item,
        ignore_keys,
        by_row=by_row,
    )


def _passed(leaf: object, function: str) -> object:
    if leaf is None or isinstance(leaf, (*_SCALARS, str, bytes, np.ndarray, torch.Size)):
        return leaf
    raise TypeError(_cannot(leaf, function))


def _cannot(leaf: object, function: str) -> str:
    return (
        f"got {type(leaf).__name__} in {function}: expected tensors, arrays, numbers, strings, "
        "None, or nested dicts, lists and tuples of them"
    )


class LogDict(dict[str, Tree]):
    """A dict that converts tensors to numbers (one element) or lists when they are set."""

    def __setitem__(self, key: str, value: object) -> None:
        if type(value) is not float:
            value = map_leaves(_detached, value)
        super().__setitem__(key, value)

    def update(self, data: Mapping[str, object]) -> None:  # type: ignore[override]
        for key, value in data.items():
            self[key] = value


def _detached(leaf: object) -> object:
    if isinstance(leaf, torch.Tensor):
        return leaf.item() if leaf.numel() == 1 else leaf.tolist()
    return leaf


def build_log_buffer() -> LogDict:
    """Create an empty `LogDict`."""
    return LogDict()
