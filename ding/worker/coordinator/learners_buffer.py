"""Stands for a replay buffer that the learner keeps: chunks are passed on to it, and counted."""

import threading
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ding.data.columns import Columns
from ding.data.kinds import State
from ding.worker.messages import ChunkReport, Json

from .chunk_store import Chunk, ChunkStore


class LearnersBuffer:
    """Has the methods of a registered buffer; its rows are those of chunks on their way.

    A chunk's rows leave when the learner has taken its samples into its own buffer. The methods
    that its session calls take the lock. One message costs the same however many chunks and
    rows there are.

    Args:
        capacity: Rows that fit into the learner's buffer.
        chunks: Those that its rows are of; all that are referred to are on their way.
        lock: What guards both.
    """

    def __init__(self, capacity: int, chunks: ChunkStore, lock: threading.Condition) -> None:
        self.replay_buffer_size = capacity
        self._chunks, self._lock = chunks, lock
        self._taken_in = 0  # rows that the learner has, as it said last
        self._unsent: dict[int, Chunk] = {}  # by their numbers, the oldest first
        self._on_the_way = 0  # rows of all chunks that it has not taken in

    # ------------------------------------------------------------------ for the learner's session

    def take_chunks(self) -> tuple[ChunkReport, ...]:
        """What the learner does not know of."""
        with self._lock:
            unsent, self._unsent = [*self._unsent.values()], {}
            for chunk in unsent:
                chunk.is_sent = True
        return tuple(ChunkReport(c.data_id, None, None, c.size, c.facts) for c in unsent)

    def received(self, names: Sequence[str], rows: int) -> None:
        """The learner has taken in these chunks, and its buffer has so many rows."""
        with self._lock:
            self._taken_in = rows
            self.drop(filter(None, map(self._chunks.find, names)))
        self._chunks.remove_unused()

    def begin(self, rows: int) -> int:
        """A learner begins, with so many rows in its own buffer; how many are lost."""
        with self._lock:
            lost, self._taken_in = max(0, self._taken_in - rows), rows
        return lost

    def take_back(self) -> None:
        """The learner's task has ended: what it has not taken in is for the next one."""
        with self._lock:
            for chunk in self._chunks.by_age():
                chunk.is_sent = False
            self._unsent = {chunk.number: chunk for chunk in self._chunks.by_age() if chunk.refs}

    # ------------------------------------------------------------------ as a buffer

    def push(self, columns: Columns, envstep: int) -> None:
        """Pass on a chunk."""
        found = {name: np.asarray(column) for name, column in columns.columns.items()}
        chunk = self._chunks[int(found["chunk"][0])]
        chunk.facts = {"sample_num": chunk.rows}
        for name in ("collect_iter", "priority"):
            if name in found:
                chunk.facts[name] = _json(found[name])
        self._unsent[chunk.number] = chunk
        self._on_the_way += chunk.refs

    def drop(self, chunks: Iterable[Chunk]) -> None:
        """These chunks are not on their way any more; the caller holds the lock."""
        for chunk in chunks:
            self._on_the_way -= chunk.refs
            self._unsent.pop(chunk.number, None)
            self._chunks.unref(chunk, chunk.refs)

    def update(self, info: Mapping[str, object]) -> None:
        """Nothing: the learner gives its rows their priorities itself."""

    def count(self) -> int:
        """Rows that can be drawn, those on their way included."""
        return min(self._taken_in + self._on_the_way, self.replay_buffer_size)

    def state_dict(self) -> State:
        """What the learner has; chunks that it has not taken in are in their owner's state."""
        return {"taken_in": self._taken_in}

    def load_state_dict(self, state: State) -> None:
        """Go on where another one stood."""
        self._taken_in = int(state["taken_in"])
        self._on_the_way = sum(chunk.refs for chunk in self._chunks.by_age())
        self.take_back()

    def close(self) -> None:
        """Nothing is open."""


def _json(column: np.ndarray) -> Json:
    """A column in JSON, as one number if all are the same."""
    values: list[Json] = column.tolist()
    return values[0] if values and column.dtype.kind == "i" and len(set(values)) == 1 else values
