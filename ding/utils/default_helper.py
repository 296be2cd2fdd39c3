"""Helpers for dicts, lists, counters and seeds."""

import copy
import functools
import logging
import operator
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, SupportsIndex, TypeVar

import numpy as np
from easydict import EasyDict

from ding.utils.errors import ConfigError
from ding.utils.running_mean_std import RunningMeanStd as RunningMeanStd
from ding.utils.types import Config, Settings, Tree

if TYPE_CHECKING:
    import torch


Key = TypeVar("Key")
Value = TypeVar("Value")
Given = ParamSpec("Given")
Function = TypeVar("Function", bound=Callable[..., object])
#: Keys whose values are lists with one recurrent state per sample.
STATE_KEYS = ("prev_state", "prev_actor_state", "prev_critic_state")


def get_shape0(data: Tree) -> int:
    """The leading length of a tensor or array, or of the first one in nested lists and dicts.

    For a list of other objects it is the length of the list.
    """
    if isinstance(data, Mapping):
        return get_shape0(next(iter(data.values())))
    if hasattr(data, "shape"):
        return data.shape[0]
    if isinstance(data, list | tuple):
        first = data[0] if data else None
        nested = isinstance(first, Mapping | list | tuple) or bool(getattr(first, "shape", ()))
        return get_shape0(first) if nested else len(data)
    raise TypeError(f"{type(data).__name__} has no leading length; pass a tensor, list or dict")


def lists_to_dicts(data: Sequence[Tree], recursive: bool = False) -> Tree:
    """Transpose ``[{'a': 1}, {'a': 2}]`` to ``{'a': [1, 2]}``; the same for namedtuples.

    Args:
        recursive: Whether to transpose values that are dicts as well.

    Raises:
        ValueError: There are no rows.
    """
    if len(data) == 0:
        raise ValueError("lists_to_dicts needs at least one row")
    first = data[0]
    if isinstance(first, Mapping):
        columns = {k: [row[k] for row in data] for k in first}
        if not recursive:
            return columns
        return {
            k: lists_to_dicts(c, True) if isinstance(c[0], Mapping) else c
            for k, c in columns.items()
        }
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[list(column) for column in zip(*data)])
    raise TypeError(f"rows must be dicts or namedtuples, got {type(first).__name__}")


def dicts_to_lists(data: Mapping[Key, list[Value]]) -> list[Mapping[Key, Value]]:
    """Transpose ``{'a': [1, 2]}`` to ``[{'a': 1}, {'a': 2}]``."""
    return [dict(zip(data, row)) for row in zip(*data.values())]


def override(cls: type) -> Callable[[Function], Function]:
    """Decorator: check that the method overrides one of `cls`.

    Raises:
        NameError: `cls` has no method of that name.
    """

    def check(method: Function) -> Function:
        if method.__name__ not in dir(cls):
            raise NameError(f"{method.__name__} overrides no method of {cls.__name__}")
        return method

    return check


def sizes_of(shape: object, name: str = "the shape") -> list[int]:
    """A shape (a number, or a sequence or array of numbers) as a list of Python integers.

    Raises:
        ConfigError: The shape has another type; the message contains ``name``.
    """
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    sizes: Iterable[Any] = [shape]
    if isinstance(shape, Iterable) and not isinstance(shape, SupportsIndex):
        sizes = shape
    try:
        return [operator.index(size) for size in sizes]
    except TypeError:
        raise ConfigError(
            f"{name} is {shape!r}; expected a whole number or a list of such"
        ) from None


def one_size(shape: object, name: str, meaning: str) -> int:
    """The size of a one-dimensional shape: ``5`` and ``[5]`` are 5.

    Raises:
        ConfigError: The shape does not have exactly one positive size.
    """
    sizes = sizes_of(shape, name)
    if len(sizes) != 1 or sizes[0] < 1:
        raise ConfigError(
            f"{name} is {shape!r}; expected one whole number of at least 1: {meaning}"
        )
    return sizes[0]


def squeeze(data: Tree) -> Tree:
    """The element of a tuple, list or dict of length 1; other values unchanged."""
    if isinstance(data, tuple | list) and len(data) == 1:
        return data[0]
    if isinstance(data, dict) and len(data) == 1:
        return next(iter(data.values()))
    return data


def default_get(
    data: Mapping[str, Value],
    name: str,
    default_value: Value | None = None,
    default_fn: Callable[[], Value] | None = None,
    judge_fn: Callable[[Value | None], object] | None = None,
) -> Value | None:
    """``data[name]``, or the default if there is none.

    Args:
        default_fn: Returns the default; called only if it is needed.
        judge_fn: Must return a true value for the default.

    Raises:
        ValueError: The default does not pass `judge_fn`.
    """
    if name in data:
        return data[name]
    value = default_fn() if default_fn is not None else default_value
    if judge_fn is not None and not judge_fn(value):
        raise ValueError(f"{name!r} is missing and its default {value!r} is not acceptable")
    return value


def first_goal(stop_value: Value | list[Value] | tuple[Value, ...]) -> Value:
    """The return at which training ends; from one value per player, that of the first player."""
    return stop_value[0] if isinstance(stop_value, list | tuple) else stop_value


def list_split(data: list[Value], step: int) -> tuple[list[list[Value]], list[Value] | None]:
    """Split a list into pieces of `step` items.

    Returns:
        The full pieces, and the remaining items (None if there are none).
    """
    full = len(data) // step * step
    pieces = [data[i : i + step] for i in range(0, full, step)]
    return pieces, (data[full:] or None)


def error_wrapper(
    fn: Callable[Given, Value], default_ret: Value, warning_msg: str = ""
) -> Callable[Given, Value]:
    """Wrap `fn`: if it raises, the wrapper warns once and returns `default_ret`."""

    @functools.wraps(fn)
    def wrapper(*args: Given.args, **kwargs: Given.kwargs) -> Value:
        try:
            return fn(*args, **kwargs)
        except Exception as error:  # an optional service may raise any error
            one_time_warning(f"{warning_msg or fn.__name__} failed: {error!r}; use {default_ret!r}")
            return default_ret

    return wrapper


class LimitedSpaceContainer:
    """A thread-safe counter of places that are acquired and released.

    Args:
        min_val: Minimum (and initial) number of acquired places.
        max_val: Total number of places.
    """

    def __init__(self, min_val: int, max_val: int) -> None:
        if min_val > max_val:
            raise ValueError(f"min_val {min_val} is above max_val {max_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.cur = min_val
        self._lock = threading.Lock()

    def get_residual_space(self) -> int:
        """Acquire all free places; returns their number."""
        with self._lock:
            free = max(0, self.max_val - self.cur)
            self.cur += free
            return free

    def acquire_space(self) -> bool:
        """Acquire one place, if one is free."""
        with self._lock:
            if self.cur >= self.max_val:
                return False
            self.cur += 1
            return True

    def release_space(self) -> None:
        """Release one place."""
        with self._lock:
            self.cur = max(self.min_val, self.cur - 1)

    def increase_space(self) -> None:
        """Add one place."""
        with self._lock:
            self.max_val += 1

    def decrease_space(self) -> None:
        """Remove one place; an acquired place stays acquired until it is released."""
        with self._lock:
            self.max_val = max(self.min_val, self.max_val - 1)


def deep_merge_dicts(original: Config | None, new_dict: Config | None) -> Config:
    """Merge `new_dict` over `original` into a new dict of the type of `original`.

    The inputs are not changed, and the result shares no dict or list with them.

    Args:
        original: Defaults; ``None`` for none.
        new_dict: Values that override the defaults; ``None`` for none.

    Example:

        >>> from ding.utils import deep_merge_dicts
        >>> deep_merge_dicts({"learn": {"batch_size": 64, "lr": 0.1}}, {"learn": {"lr": 0.5}})
        {'learn': {'batch_size': 64, 'lr': 0.5}}
    """
    merged = {} if original is None else _copy_containers(original)
    return deep_update(merged, _copy_containers(new_dict or {}), True)


def _copy_containers(value: Tree) -> Tree:
    """Copy dicts and lists; other objects in them (classes, models, tensors) are shared."""
    if isinstance(value, dict):
        # `copy` keeps the type, such as EasyDict.
        copied = copy.copy(value)
        for key, item in value.items():
            copied[key] = _copy_containers(item)
        return copied
    return [_copy_containers(v) for v in value] if type(value) is list else value


def deep_update(
    original: Config,
    new_dict: Config,
    new_keys_allowed: bool = False,
    whitelist: list[str] | None = None,
    override_all_if_type_changes: list[str] | None = None,
) -> Config:
    """Merge `new_dict` into `original`, in place, dict by dict.

    Args:
        new_keys_allowed: Accept keys that `original` does not have.
        whitelist: Top-level keys below which new keys are always accepted.
        override_all_if_type_changes: Top-level keys whose dict is replaced, not merged, if its
            ``type`` differs.

    Raises:
        ConfigError: A new key is not allowed.
    """
    whitelist = whitelist or []
    replaced_whole = override_all_if_type_changes or []
    for key, value in new_dict.items():
        if key not in original and not new_keys_allowed:
            raise ConfigError(f"unknown key {key!r}; known: {', '.join(map(str, original))}")
        old = original.get(key)
        is_merged = isinstance(old, dict) and isinstance(value, dict)
        if is_merged and key in replaced_whole and "type" in value:
            is_merged = value["type"] == original[key].get("type")
        if is_merged:
            deep_update(original[key], value, new_keys_allowed or key in whitelist)
        else:
            original[key] = value
    return original


def flatten_dict(data: Settings, delimiter: str = "/") -> Config:
    """``{'a': {'b': 1}}`` to ``{'a/b': 1}``; empty inner dicts are dropped."""
    flat = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            inner = flatten_dict(value, delimiter)
            flat.update({f"{key}{delimiter}{name}": leaf for name, leaf in inner.items()})
        else:
            flat[key] = value
    return flat


def set_pkg_seed(seed: int, use_cuda: bool = True) -> None:
    """Seed ``random``, numpy's global generator and torch.

    Args:
        seed: Seed of all three generators.
        use_cuda: Whether to seed torch's CUDA devices as well.

    Example:

        >>> import torch
        >>> from ding.utils import set_pkg_seed
        >>> set_pkg_seed(0, use_cuda=False)
        >>> first = torch.rand(3)
        >>> set_pkg_seed(0, use_cuda=False)
        >>> torch.equal(first, torch.rand(3))
        True
    """
    import torch

    seed = int(seed)  # `random` and torch do not accept numpy integers
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    if use_cuda and torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


@functools.cache
def one_time_warning(warning_msg: str) -> None:
    """Log a warning, once per message."""
    logging.warning(warning_msg)


def split_data_generator(
    data: dict[str, Tree], split_size: int, shuffle: bool = True
) -> Iterator[dict[str, Tree]]:
    """Split a batch into minibatches: dicts of slices; the last one may be smaller.

    Args:
        data: Tensors or arrays [N, ...], lists of N (such as ``prev_state``), or dicts, lists and
            tuples of them. None, and lists of strings of another length, are not split.
        shuffle: Whether to split in random order (torch's global generator).

    Raises:
        ValueError: The lengths differ, or `split_size` is not positive.
    """
    import torch

    if split_size < 1:
        raise ValueError(f"split_size must be positive, got {split_size}")
    counted = {k: v for k, v in data.items() if v is not None and not _is_words(v)}
    lengths = {k: _length(k, v) for k, v in (counted or data).items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"all values need the same leading length, got {lengths}")
    length = next(iter(lengths.values()))
    order = torch.randperm(length) if shuffle else torch.arange(length)
    for indices in order.split(split_size):
        yield {
            k: v if _is_words(v) and len(v) != length else _gather(k, v, indices)
            for k, v in data.items()
        }


def _is_words(value: Tree) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and isinstance(value[0], str)


def _is_parts(name: object, value: Tree) -> bool:
    """Whether a list contains columns, not rows."""
    is_list = isinstance(value, list | tuple) and len(value) > 0 and name not in STATE_KEYS
    return is_list and bool(getattr(value[0], "shape", ()))


def _length(name: object, value: object) -> int:
    if isinstance(value, list | tuple) and not _is_parts(name, value):
        return len(value)
    return get_shape0(value)


def _gather(name: object, value: Tree, indices: "torch.Tensor") -> Tree:
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {k: _gather(k, v, indices) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return value[indices.numpy()]
    if _is_parts(name, value):
        return [_gather(None, part, indices) for part in value]
    if isinstance(value, list | tuple):
        return [value[i] for i in indices.tolist()]
    return value[indices.to(value.device)]


def make_key_as_identifier(data: Mapping[str, Value]) -> dict[str, Value]:
    """A copy whose keys are valid Python identifiers (``'a.b'`` becomes ``'a_b'``)."""

    def clean(key: str) -> str:
        name = "".join(c if c.isalnum() or c == "_" else "_" for c in key)
        return name if name.isidentifier() else f"_{name}"

    return {clean(k): v for k, v in data.items()}


def remove_illegal_item(data: Mapping[str, Value]) -> dict[str, Value]:
    """A copy without strings, which cannot be stored in tensors."""
    return {k: v for k, v in data.items() if not isinstance(v, str | bytes)}


class SingletonMetaclass(type):
    """Metaclass of singletons: the first call creates the instance, each call returns it."""

    _lock = threading.RLock()

    def __init__(cls, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cls._instance: object = None

    def __call__(cls, *args: object, **kwargs: object) -> object:
        with SingletonMetaclass._lock:
            if cls._instance is None:
                cls._instance = super().__call__(*args, **kwargs)
            return cls._instance


#: A list or a tuple, such as the shape of an observation.
SequenceType = TypeVar("SequenceType", list[Tree], tuple[Tree, ...])


def class_config(cls: type) -> EasyDict:
    """A copy of a class's ``config``, merged over the configs of its base classes.

    A subclass only needs to list keys that it adds or changes. ``cfg_type`` is
    ``<class name>Dict``.
    """
    merged: Config = {}
    for base in reversed(cls.__mro__):
        merged = deep_merge_dicts(merged, copy.deepcopy(dict(vars(base).get("config", {}))))
    cfg = EasyDict(merged)
    cfg.cfg_type = f"{cls.__name__}Dict"
    return cfg


class Configurable:
    """Base of classes with a default config."""

    config: Config = {}

    @classmethod
    def default_config(cls) -> EasyDict:
        """The default config of this class, merged over those of its base classes."""
        return class_config(cls)
