"""The files of a buffer's chunks: counted in a ledger, removed when nobody needs them."""

import logging
import re
import threading
from collections.abc import Mapping

from ding.data.chunks.chunk_ledger import Chunk, ChunkLedger
from ding.utils.errors import CheckpointWriteError
from ding.worker.seams import SampleStore

_logger = logging.getLogger(__name__)


class ChunkFiles:
    """A sample store and what the ledger says of the chunks in it.

    Args:
        store: None if there are none to look after.
        lock: What guards the ledger; it is not held while chunks are removed, as disks may be slow.
    """

    def __init__(self, store: SampleStore | None, lock: threading.Condition) -> None:
        self._store = store
        self.ledger = ChunkLedger()
        self._lock = lock
        self._stuck: set[str] = set()

    def size_of(self, data_id: str, meta: Mapping[str, object]) -> int:
        """Size of a file in bytes; what its writer said if it cannot be looked up.

        Raises:
            DataError: The name cannot be one of this folder.
        """
        found = None if self._store is None else self._store.size(data_id)
        if found is not None:
            return found  # else a learner that needs it will find out, and say so
        size = meta.get("size", 0)
        return size if isinstance(size, int) and size >= 0 else 0

    def is_whole(self, chunk: Chunk) -> bool:
        """Whether the file of a chunk is there, with the size it had."""
        return self._store is None or self._store.size(chunk.data_id) == chunk.size

    def remove_unused(self) -> None:
        """Remove files that neither rows nor batches refer to any more."""
        with self._lock:
            unused = self.ledger.take_unused()
        if not unused:
            return
        removed: list[Chunk] = []
        left: list[Chunk] = []
        for chunk in unused:
            (removed if self._remove(chunk.data_id) else left).append(chunk)
        with self._lock:
            self.ledger.removed(removed)
            self.ledger.put_back(left)

    def _remove(self, data_id: str) -> bool:
        if self._store is None:
            return True
        try:
            self._store.remove(data_id)
        except CheckpointWriteError as error:
            if data_id not in self._stuck:
                self._stuck.add(data_id)
                _logger.warning("a file of used data stays: %s", error)
            return False
        self._stuck.discard(data_id)
        return True

    def remove_strangers(self, names: re.Pattern[str]) -> None:
        """Remove files, finished or not, that match and that the ledger does not know."""
        if self._store is not None:
            with self._lock:
                known = self.ledger.names()
            self._store.clear(names, keep=known)

    def remove_all(self, names: re.Pattern[str]) -> None:
        """Remove all files that the ledger knows, and all that match."""
        with self._lock:
            known = {*self.ledger.names(), *(c.data_id for c in self.ledger.take_unused())}
        for data_id in known:
            self._remove(data_id)
        if self._store is not None:
            self._store.clear(names)
