"""A plain buffer of arbitrary objects with metadata."""

import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ding.data.arrays import Item, Row
from ding.data.draw import Draw
from ding.utils.errors import DataError
from ding.utils.file_helper import read_file, save_file


@dataclass
class BufferedData:
    """An item with its index (a unique id) and its metadata."""

    data: Item
    index: str
    meta: Row = field(default_factory=dict)


class DequeBuffer:
    """First-in, first-out buffer of the newest `size` items, sampled uniformly.

    Args:
        size: Maximum number of items; new items replace the oldest.

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
        self._items: OrderedDict[str, BufferedData] = OrderedDict()
        self._draw = Draw()

    def push(self, data: Item, meta: Row | None = None) -> BufferedData:
        """Store one item."""
        item = BufferedData(data, uuid.uuid4().hex, dict(meta or {}))
        self._items[item.index] = item
        if len(self._items) > self.size:
            self._items.popitem(last=False)
        return item

    def sample(
        self,
        size: int | None = None,
        indices: Sequence[str] | None = None,
        replace: bool = False,
        sample_range: slice | None = None,
        ignore_insufficient: bool = False,
    ) -> list[BufferedData]:
        """Draw items uniformly, or return the items with the given indices.

        Args:
            size: Number of items; optional with `indices`.
            indices: Indices of the items to return.
            replace: Whether an item may be drawn twice.
            sample_range: Draw only from these items; 0 is the oldest.
            ignore_insufficient: Return an empty list if there are too few items.

        Raises:
            DataError: There are too few items, or an index is unknown.
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

    def update(self, index: str, data: Item = None, meta: Row | None = None) -> bool:
        """Replace an item's data, its metadata, or both; False if there is no such item."""
        item = self._items.get(index)
        if item is None:
            return False
        if data is not None:
            item.data = data
        if meta is not None:
            item.meta = dict(meta)
        return True

    def delete(self, indices: str | Sequence[str]) -> None:
        """Remove items; unknown indices are ignored."""
        for index in [indices] if isinstance(indices, str) else indices:
            self._items.pop(index, None)

    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()

    def get(self, idx: int | str) -> BufferedData:
        """The item at this position (0 is the oldest), or with this index.

        Raises:
            IndexError: The position is out of range.
            DataError: No item has this index.
        """
        return self._known(idx) if isinstance(idx, str) else list(self._items.values())[idx]

    def count(self) -> int:
        """Number of items."""
        return len(self._items)

    def save_data(self, file_name: str) -> None:
        """Write all items to a file."""
        save_file(file_name, [(item.data, item.meta) for item in self._items.values()])

    def load_data(self, file_name: str) -> None:
        """Push the items of a file that `save_data` wrote."""
        for data, meta in read_file(file_name):
            self.push(data, meta)

    def _known(self, index: str) -> BufferedData:
        if index not in self._items:
            raise DataError(f"no item with index {index!r}: it was replaced or never there")
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[BufferedData]:
        return iter(list(self._items.values()))
