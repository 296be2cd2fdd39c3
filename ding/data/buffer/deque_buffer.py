"""A plain buffer of arbitrary objects with metadata."""

import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ding.data.draw import Draw
from ding.utils.errors import DataError
from ding.utils.file_helper import read_file, save_file


@dataclass
class BufferedData:
    """An item, the index it is known by, and what is noted about it."""

    data: Any
    index: str
    meta: dict[str, Any] = field(default_factory=dict)


class DequeBuffer:
    """The newest `size` items, whatever they are.

    Args:
        size: How many items fit; the oldest make room.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise DataError(f"size must be positive, got {size}")
        self.size = size
        self._items: OrderedDict[str, BufferedData] = OrderedDict()
        self._draw = Draw()

    def push(self, data: Any, meta: dict[str, Any] | None = None) -> BufferedData:
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
        """Draw items uniformly, or fetch those with the given indices.

        Args:
            size: How many; may be left out with `indices`.
            indices: Fetch these instead.
            replace: Whether an item may be drawn twice.
            sample_range: Draw only among these items, counted from the oldest on.
            ignore_insufficient: Return an empty list when there are too few items.

        Raises:
            DataError: Too few items, or an unknown index.
        """
        if indices is not None:
            return [self._known(index) for index in indices]
        if size is None:
            raise DataError("sample() needs a size or indices")
        pool = list(self._items.values())
        if sample_range is not None:
            pool = pool[sample_range]
        if len(pool) < (min(size, 1) if replace else size):
            if ignore_insufficient:
                return []
            raise DataError(f"{size} items asked for, {len(pool)} there")
        drawn = (self._draw.any if replace else self._draw.distinct)(len(pool), size)
        return [pool[i] for i in drawn.tolist()]

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

    def delete(self, indices: str | Sequence[str]) -> None:
        """Remove items; those that are not there are passed over."""
        for index in [indices] if isinstance(indices, str) else indices:
            self._items.pop(index, None)

    def get(self, idx: int) -> BufferedData:
        """The item at this position, counted from the oldest on."""
        return list(self._items.values())[idx]

    def count(self) -> int:
        """Number of items."""
        return len(self._items)

    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()

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
        """Store the items of a file that :meth:`save_data` wrote."""
        self.import_data(read_file(file_name))

    def _known(self, index: str) -> BufferedData:
        if index not in self._items:
            raise DataError(f"no item with index {index!r}: it was replaced or never there")
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[BufferedData]:
        return iter(list(self._items.values()))
