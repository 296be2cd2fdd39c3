"""Stands for a replay buffer that the learner keeps: chunks are passed on to it, and counted."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ding.data.columns import Columns
from ding.data.kinds import Items, State
from ding.worker.messages import ChunkReport, Json

from .chunk_store import Chunk, ChunkStore


class LearnersBuffer:
    """Has the methods of a registered buffer; its rows are those of chunks on their way.

    A chunk's rows leave when the learner has taken its samples into its own buffer. A batch that is
    drawn here names no rows: the learner draws them when it trains. Only the methods of
    `ding.worker.seams.Outbox` take the lock themselves.

    Args:
        capacity: Rows that fit into the learner's buffer.
        chunks: Those that its rows are of.
        lock: What guards both.

    Attributes:
        on_leave: Is told of rows that have left: ``Columns`` with ``chunk``.
    """

    def __init__(self, capacity: int, chunks: ChunkStore, lock: threading.Condition) -> None:
        self.replay_buffer_size = capacity
        self.on_leave: Callable[[Items], None] | None = None
        self._chunks, self._lock = chunks, lock
        self._waiting: dict[int, Chunk] = {}  # the oldest first
        self._sent: set[int] = set()  # those of them that the learner was told of
        self._taken_in = 0  # rows that the learner has, as it said last

    # ------------------------------------------------------------------ for the learner's session

    def take_chunks(self) -> tuple[ChunkReport, ...]:
        with self._lock:
            unsent = [chunk for chunk in self._waiting.values() if chunk.number not in self._sent]
            self._sent.update(chunk.number for chunk in unsent)
        return tuple(ChunkReport(c.data_id, None, None, c.size, c.facts) for c in unsent)

    def received(self, names: Sequence[str], rows: int) -> None:
        with self._lock:
            self._taken_in = rows
            found = filter(None, map(self._chunks.find, names))
            self.remove_chunks([chunk.number for chunk in found])
        self._chunks.remove_unused()

    def begin(self, rows: int) -> int:
        with self._lock:
            lost, self._taken_in = max(0, self._taken_in - rows), rows
        return lost

    def take_back(self) -> None:
        with self._lock:
            self._sent.clear()

    # ------------------------------------------------------------------ as a buffer

    def push(self, columns: Columns, envstep: int) -> None:
        """Pass on a chunk."""
        found = {name: np.asarray(column) for name, column in columns.columns.items()}
        chunk = self._chunks[int(found["chunk"][0])]
        chunk.facts = {"sample_num": chunk.rows}
        for name in ("collect_iter", "priority"):
            if name in found:
                chunk.facts[name] = _json(found[name])
        self._waiting[chunk.number] = chunk

    def sample(self, size: int, cur_learner_iter: int) -> Columns:
        """A batch without rows."""
        return Columns({"chunk": np.zeros(0, np.int64), "row": np.zeros(0, np.int64)})

    def update(self, info: Mapping[str, object]) -> None:
        """Nothing: the learner gives its rows their priorities itself."""

    def count(self) -> int:
        """Rows that can be drawn, those on their way included."""
        on_the_way = sum(chunk.refs for chunk in self._waiting.values())
        return min(self._taken_in + on_the_way, self.replay_buffer_size)

    def drop_oldest(self, n: int) -> None:
        """Pass over the oldest chunks that were not sent, of at least n rows."""
        for chunk in list(self._waiting.values()):
            if n <= 0:
                break
            if chunk.number not in self._sent:
                n -= chunk.refs
                self.remove_chunks([chunk.number])

    def remove_chunks(self, numbers: Iterable[int]) -> None:
        """Pass over chunks."""
        for number in numbers:
            chunk = self._waiting.pop(number, None)
            self._sent.discard(number)
            if chunk is not None and self.on_leave is not None:
                self.on_leave(Columns({"chunk": np.full(chunk.refs, number)}))

    # ------------------------------------------------------------------ state and end

    def state_dict(self) -> State:
        """Chunks that no learner has taken in."""
        return {"taken_in": self._taken_in, "waiting": list(self._waiting)}

    def load_state_dict(self, state: State) -> None:
        """Go on where another one stood; the chunks are loaded by their owner."""
        self._taken_in = int(state["taken_in"])
        self._waiting = {number: self._chunks[number] for number in state["waiting"]}
        self._sent.clear()

    def close(self) -> None:
        """Pass on nothing more."""
        self._waiting.clear()


def _json(column: np.ndarray) -> Json:
    """A column in JSON, as one number if all are the same."""
    values: list[Json] = column.tolist()
    return values[0] if values and column.dtype.kind == "i" and len(set(values)) == 1 else values
