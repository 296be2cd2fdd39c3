"""A plain buffer of arbitrary objects with metadata, and middleware around what it does."""

import functools
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ding.data.draw import Draw
from ding.utils.errors import DataError
from ding.utils.file_helper import read_file, save_file

_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass
class BufferedData:
    """An item, the index it is known by, and what is noted about it."""

    data: Any
    index: str
    meta: dict[str, Any] = field(default_factory=dict)


def _with_middleware(method: _Method) -> _Method:
    """Let a buffer's middleware handle calls of a method; the first one added is the outermost."""
    action = method.__name__

    @functools.wraps(method)
    def wrapped(buffer: "DequeBuffer", *args: Any, **kwargs: Any) -> Any:
        chain = functools.partial(method, buffer)
        for func in reversed(buffer.middleware):
            chain = functools.partial(func, action, chain)
        return chain(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


class DequeBuffer:
    """First-in, first-out buffer of the newest `size` items, sampled uniformly.

    Args:
        size: How many items fit; the oldest make room.

    Attributes:
        middleware: What was added with `use`.

    Example:

        >>> from ding.data import DequeBuffer
        >>> buffer = DequeBuffer(size=2)
        >>> for reward in (0.0, 1.0, 2.0):
        ...     _ = buffer.push({"reward": reward})
        >>> sorted(item.data["reward"] for item in buffer.sample(2))
        [1.0, 2.0]
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise DataError(f"size must be positive, got {size}")
        self.size = size
        self.middleware: list[Callable[..., Any]] = []
        self._items: OrderedDict[str, BufferedData] = OrderedDict()
        self._draw = Draw()

    # ---- middleware ---------------------------------------------------------------------------

    def use(self, func: Callable[..., Any]) -> "DequeBuffer":
        """Add middleware around ``push``, ``sample``, ``update``, ``delete`` and ``clear``.

        Args:
            func: Called as ``func(action, chain, *args, **kwargs)`` in place of the method named
                `action`; ``chain(*args, **kwargs)`` calls the next one, or the method.

        Returns:
            The buffer itself.
        """
        self.middleware.append(func)
        return self

    # ---- items --------------------------------------------------------------------------------

    @_with_middleware
    def push(self, data: Any, meta: dict[str, Any] | None = None) -> BufferedData:
        """Store one item."""
        item = BufferedData(data, uuid.uuid4().hex, dict(meta or {}))
        self._items[item.index] = item
        if len(self._items) > self.size:
            self._items.popitem(last=False)
        return item

    @_with_middleware
    def sample(
        self,
        size: int | None = None,
        indices: Sequence[str] | None = None,
        replace: bool = False,
        sample_range: slice | None = None,
        ignore_insufficient: bool = False,
    ) -> list[BufferedData]:
        """Draw items uniformly, or fetch those with the given indices.

        Args:
            size: How many items; may be left out with `indices`.
            indices: Fetch these instead.
            replace: Whether an item may be drawn twice.
            sample_range: Draw only among these items, counted from the oldest on.
            ignore_insufficient: Return an empty list when there are too few.

        Raises:
            DataError: Too few items, or an unknown index.
        """
        if indices is not None:
            return [self._known(index) for index in indices]
        if size is None:
            raise DataError("sample() needs a size or indices")
        pool = list(self._items.values())[sample_range or slice(None)]
        if len(pool) < (min(size, 1) if replace else size):
            if ignore_insufficient:
                return []
            raise DataError(f"{size} items asked for, {len(pool)} there")
        draw = self._draw.any if replace else self._draw.distinct
        return [pool[i] for i in draw(len(pool), size).tolist()]

    @_with_middleware
    def update(self, index: str, data: Any = None, meta: dict[str, Any] | None = None) -> bool:
        """Replace an item's data, its metadata, or both; False if it is no longer there."""
        item = self._items.get(index)
        if item is None:
            return False
        if data is not None:
            item.data = data
        if meta is not None:
            item.meta = dict(meta)
        return True

    @_with_middleware
    def delete(self, indices: str | Sequence[str]) -> None:
        """Remove items; those that are not there are passed over."""
        for index in [indices] if isinstance(indices, str) else indices:
            self._items.pop(index, None)

    @_with_middleware
    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()

    def get(self, idx: int | str) -> BufferedData:
        """The item at this position, counted from the oldest on, or with this index.

        Raises:
            IndexError: No such position.
            DataError: No item with that index.
        """
        return self._known(idx) if isinstance(idx, str) else list(self._items.values())[idx]

    def count(self) -> int:
        """Number of items."""
        return len(self._items)

    # ---- storing ------------------------------------------------------------------------------

    def export_data(self) -> list[BufferedData]:
        """All items, the oldest first."""
        return list(self._items.values())

    def import_data(self, data_with_meta: Sequence[tuple[Any, dict[str, Any]]]) -> None:
        """Store items with their metadata, as ``(data, meta)``."""
        for data, meta in data_with_meta:
            self.push(data, meta)

    def save_data(self, file_name: str) -> None:
        """Write all items into a file."""
        save_file(file_name, [(item.data, item.meta) for item in self._items.values()])

    def load_data(self, file_name: str) -> None:
        """Store the items of a file that `save_data` wrote."""
        self.import_data(read_file(file_name))

    def _known(self, index: str) -> BufferedData:
        if index not in self._items:
            raise DataError(f"no item with index {index!r}: it was replaced or never there")
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[BufferedData]:
        return iter(list(self._items.values()))
