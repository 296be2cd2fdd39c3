"""Which chunks of samples there are, who still needs them, and their removal from the store."""

import logging
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from ding.utils.errors import CheckpointWriteError
from ding.worker.messages import Json
from ding.worker.seams import SampleStore

_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Chunk:
    """Samples that were written together.

    Attributes:
        data_id: Its name in the store.
        number: What the coordinator calls it, ascending.
        rows: Samples in it.
        size: Bytes in the store.
        facts: What a learner has to be told of it, beside its name.
        is_live: Whether a replay buffer has its samples, or is to have them.
        is_received: Whether the replay buffer has taken them in.
        pins: Batches on the way that need it.
    """

    data_id: str
    number: int
    rows: int
    size: int
    facts: dict[str, Json]
    is_live: bool = True
    is_received: bool = False
    pins: int = 0


class StoreState(TypedDict):
    """Live chunks as `ChunkStore.state_dict` tells of them: an entry for each in each list."""

    next: int
    data_id: list[str]
    number: np.ndarray
    rows: np.ndarray
    size: np.ndarray
    facts: list[dict[str, Json]]


class ChunkStore:
    """Knows which chunks a replay buffer needs, and which batches on the way need them.

    A chunk that neither does is removed from the sample store by the next `remove_unused`; until
    then its bytes count. Only the methods that remove take the lock themselves.

    Args:
        store: Where the chunks are; None if there are none to look after.
        lock: What guards the chunks; it is not held while they are removed, as disks may be slow.
    """

    def __init__(self, store: SampleStore | None, lock: threading.Lock) -> None:
        self._store, self._lock = store, lock
        self._stuck: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        self._chunks: dict[int, Chunk] = {}  # ascending numbers: the oldest first
        self._by_id: dict[str, Chunk] = {}
        self._next = 0
        # Chunks that nobody may need any more, or that could not be removed, by their numbers.
        self._left: dict[int, Chunk] = {}
        #: Samples and bytes of all chunks that have not been removed.
        self.kept_rows = self.bytes = 0

    # ------------------------------------------------------------------ which there are

    def __len__(self) -> int:
        """Number of chunks."""
        return len(self._by_id)

    def __contains__(self, data_id: object) -> bool:
        return data_id in self._by_id

    def find(self, data_id: str) -> Chunk | None:
        """The chunk of that name, if there is one."""
        return self._by_id.get(data_id)

    def numbered(self, number: int) -> Chunk | None:
        """The chunk of that number, if there is one."""
        return self._chunks.get(number)

    def live(self) -> list[Chunk]:
        """The chunks that a replay buffer needs, the oldest first."""
        return [chunk for chunk in self._chunks.values() if chunk.is_live]

    def size_of(self, data_id: str, told: object) -> int:
        """Bytes of a chunk; what its writer told if it cannot be looked up.

        Raises:
            DataError: The name cannot be one of the store.
        """
        found = None if self._store is None else self._store.size(data_id)
        if found is not None:
            return found  # else a learner that needs it will find out, and say so
        return told if isinstance(told, int) and told >= 0 else 0

    def is_whole(self, chunk: Chunk) -> bool:
        """Whether a chunk is in the store, with the size it had."""
        return self._store is None or self._store.size(chunk.data_id) == chunk.size

    # ------------------------------------------------------------------ who needs them

    def add(self, data_id: str, rows: int, size: int, facts: dict[str, Json]) -> Chunk:
        """A chunk that a replay buffer needs from now on."""
        chunk = Chunk(data_id, self._next, rows, size, facts)
        self._next += 1
        self._chunks[chunk.number] = self._by_id[data_id] = chunk
        self.bytes += size
        self.kept_rows += rows
        return chunk

    def leave(self, chunk: Chunk) -> None:
        """No replay buffer needs a chunk any more."""
        chunk.is_live = False
        self._left[chunk.number] = chunk

    def pin(self, chunks: Iterable[Chunk]) -> None:
        """A batch needs these chunks."""
        for chunk in chunks:
            chunk.pins += 1

    def unpin(self, chunks: Iterable[Chunk]) -> None:
        """A batch does not need these chunks any more."""
        for chunk in chunks:
            chunk.pins -= 1
            self._left[chunk.number] = chunk

    # ------------------------------------------------------------------ removal

    def remove_unused(self) -> None:
        """Remove chunks that neither replay buffer nor batches need any more."""
        with self._lock:
            left, self._left = self._left, {}
            unused = [chunk for chunk in left.values() if not (chunk.is_live or chunk.pins)]
            for chunk in unused:
                if self._chunks.pop(chunk.number, None) is not None:
                    del self._by_id[chunk.data_id]
        if not unused:
            return
        stuck = {chunk.number: chunk for chunk in unused if not self._remove(chunk.data_id)}
        removed = [chunk for chunk in unused if chunk.number not in stuck]
        with self._lock:
            self.bytes -= sum(chunk.size for chunk in removed)
            self.kept_rows -= sum(chunk.rows for chunk in removed)
            self._left.update(stuck)

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
        """Remove what matches, finished or not, and is no chunk that is needed."""
        if self._store is not None:
            with self._lock:
                known = set(self._by_id)
            self._store.clear(names, keep=known)

    def remove_all(self, names: re.Pattern[str]) -> None:
        """Remove all chunks, and all that matches."""
        with self._lock:
            known = {*self._by_id, *(chunk.data_id for chunk in self._left.values())}
        for data_id in known:
            self._remove(data_id)
        if self._store is not None:
            self._store.clear(names)

    # ------------------------------------------------------------------ state

    def state_dict(self) -> StoreState:
        """The live chunks; pins are of batches that nobody will wait for any more."""
        chunks = self.live()
        return {
            "next": self._next,
            "data_id": [chunk.data_id for chunk in chunks],
            "number": np.array([chunk.number for chunk in chunks], np.int64),
            "rows": np.array([chunk.rows for chunk in chunks], np.int64),
            "size": np.array([chunk.size for chunk in chunks], np.int64),
            "facts": [chunk.facts for chunk in chunks],
        }

    def load_state_dict(self, state: StoreState) -> None:
        """Go on where another one stood; nobody needs what was known before."""
        self._forget()
        columns = (state[name].tolist() for name in ("number", "rows", "size"))
        for data_id, number, rows, size, facts in zip(state["data_id"], *columns, state["facts"]):
            self._next = number
            self.add(data_id, rows, size, facts)
        self._next = state["next"]
