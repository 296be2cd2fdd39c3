"""The rows of a buffer that the learner keeps: the coordinator passes chunks on, and counts."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.worker.coordinator.chunk_store import Chunk, ChunkStore
from ding.worker.coordinator.reference_buffer import NO_LIMIT
from ding.worker.messages import ChunkReport, Json


class RemoteRows:
    """Stands where a `ReferenceBuffer` does when the replay buffer itself is at the learner.

    A chunk's rows count here until the learner has taken its samples into its own buffer. A batch
    that is drawn here names no rows: the learner draws them when it trains. It is not safe for
    threads: its owner has a lock.

    Args:
        cfg: Config of the buffer, as the learner gets it; ``replay_buffer_size``.
        chunks: Those that are on their way.
    """

    #: There is no buffer here.
    buffer = None

    def __init__(self, cfg: Mapping[str, Any], chunks: ChunkStore) -> None:
        self._store = chunks
        self.capacity = int(cfg.get("replay_buffer_size", NO_LIMIT))
        self._outbox: deque[ChunkReport] = deque()
        self._sent: dict[str, ChunkReport] = {}
        self._chunks: dict[str, Chunk] = {}  # of both
        #: Rows that the learner has, as it said last.
        self.taken_in = 0

    # ------------------------------------------------------------------ in and out

    def push(self, chunk: Chunk, columns: dict[str, Any], envstep: int) -> None:
        """Pass on a chunk."""
        columns_json = {name: _json(column) for name, column in columns.items() if name != "row"}
        meta: dict[str, Json] = {"sample_num": chunk.rows, **columns_json}
        self._chunks[chunk.data_id] = chunk
        self._outbox.append(ChunkReport(chunk.data_id, None, None, chunk.size, meta))

    def take_chunks(self) -> tuple[ChunkReport, ...]:
        """What the learner does not know of."""
        chunks = tuple(self._outbox)
        self._outbox.clear()
        self._sent.update((chunk.data_id, chunk) for chunk in chunks)
        return chunks

    def received(self, names: Sequence[str], rows: int) -> None:
        """The learner has taken in these chunks, and has so many rows now."""
        self.taken_in = rows
        for name in names:
            self._forget(name)

    def begin(self, rows: int) -> int:
        """A learner begins, with so many rows; how many fewer those are than before."""
        lost, self.taken_in = max(0, self.taken_in - rows), rows
        return lost

    def take_back(self) -> None:
        """The learner's task has ended: what it has not taken in is for the next one."""
        self._outbox.extendleft(reversed(self._sent.values()))
        self._sent.clear()

    def draw(self, batch_size: int, cur_iter: int, train_iter: int | None = None) -> dict[str, Any]:
        """A batch without rows."""
        none = np.zeros(0, np.int64)
        return {"chunk": none, "row": none}

    def update(self, info: Mapping[str, Any]) -> None:
        """Nothing: the learner gives its rows their priorities itself."""

    # ------------------------------------------------------------------ rows that leave

    def drop_oldest(self, n_bytes: int) -> int:
        """Pass over the oldest chunks that were not sent, of so many bytes; returns their rows."""
        rows = 0
        while self._outbox and n_bytes > 0:
            chunk = self._outbox.popleft()
            n_bytes -= chunk.size
            rows += self._forget(chunk.data_id)
        return rows

    def drop_dead(self) -> None:
        """Pass over chunks that cannot be read."""
        for name in [name for name, chunk in self._chunks.items() if chunk.dead]:
            self._forget(name)
        self._outbox = deque(chunk for chunk in self._outbox if chunk.data_id in self._chunks)

    def _forget(self, name: str) -> int:
        self._sent.pop(name, None)
        chunk = self._chunks.pop(name, None)
        if chunk is not None:
            self._store.unref(chunk, chunk.refs)
        return 0 if chunk is None else chunk.rows

    def settle(self) -> None:
        """Nothing: what leaves the learner's buffer has no file."""

    def count(self) -> int:
        """Rows that can be drawn, those on their way included."""
        return min(self.taken_in + self._store.rows - self._store.dead_rows, self.capacity)

    # ------------------------------------------------------------------ state and end

    def state_dict(self) -> dict[str, Any]:
        """Chunks that no learner has taken in."""
        chunks = [*self._sent.values(), *self._outbox]
        return {
            "taken_in": self.taken_in,
            "chunks": [[chunk.data_id, chunk.size, dict(chunk.meta)] for chunk in chunks],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another one stood; the chunks are loaded by their owner."""
        self.taken_in = int(state["taken_in"])
        self._sent.clear()
        found = {name: self._store.find(name) for name, _, _ in state["chunks"]}
        self._chunks = {name: chunk for name, chunk in found.items() if chunk is not None}
        self._outbox = deque(
            ChunkReport(name, None, None, size, meta)
            for name, size, meta in state["chunks"]
            if name in self._chunks
        )

    def close(self) -> None:
        """Pass on nothing more."""
        self._outbox.clear()


def _json(column: np.ndarray) -> Json:
    """A column in JSON, as one number if all are the same."""
    values: list[Json] = column.tolist()
    return values[0] if values and column.dtype.kind == "i" and len(set(values)) == 1 else values
