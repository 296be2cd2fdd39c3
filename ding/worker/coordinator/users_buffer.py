"""A user's buffer class, with what a buffer of references needs beyond `IBuffer`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.data.chunks.wire import columns_of
from ding.data.columns import Columns
from ding.data.id_column import IdColumn
from ding.data.kinds import Items, State

from .chunk_store import ChunkStore

#: Draws after which a batch is filled with what they gave.
_ATTEMPTS = 16


class UsersBuffer:
    """Sees which rows leave a buffer that does not tell, and never draws those of dropped chunks.

    A class without ``on_leave`` is taken to let its oldest items leave first. Rows of chunks that
    nothing refers to any more stay in it and are passed over.

    Args:
        buffer: Its items are rows with ``chunk``, the number of a chunk.
        capacity: Rows that fit, if it does not tell ``replay_buffer_size``.
        chunks: Told of rows that have left.
    """

    def __init__(self, buffer: Any, capacity: int, chunks: ChunkStore) -> None:
        self.buffer = buffer
        self.replay_buffer_size = int(getattr(buffer, "replay_buffer_size", capacity))
        self._chunks = chunks
        self._rows: dict[int, int] = {}  # in the buffer, of each chunk; the oldest first
        self._tells = hasattr(buffer, "on_leave")
        if self._tells:
            buffer.on_leave = self._note_left

    def push(self, columns: Columns, envstep: int) -> None:
        """Store the rows of a chunk."""
        number = int(np.asarray(columns.column("chunk"))[0])
        self._rows[number] = len(columns)
        try:
            self.buffer.push(columns, envstep)
        except Exception:
            self._rows.pop(number, None)
            raise
        self._look_who_left()

    def sample(self, size: int, cur_learner_iter: int) -> Columns | None:
        """Rows of chunks that are referred to; ``None`` if the buffer refuses."""
        numbers = [number for number in self._rows if self._chunks.refs(number)]
        kept: list[Columns] = []
        have = 0
        for _ in range(_ATTEMPTS):
            drawn = columns_of(self.buffer.sample(size, cur_learner_iter))
            if drawn is None:
                break
            is_here = np.isin(np.asarray(drawn["chunk"]), numbers)
            kept.append(Columns(drawn).take(np.flatnonzero(is_here)))
            have += int(is_here.sum())
            if have >= size:
                break
        self._look_who_left()
        if not have:
            return None
        # If few are left, some come more than once.
        return Columns.concat(kept).take(np.arange(size) % have)

    def update(self, info: Mapping[str, Any]) -> None:
        """Pass on priorities, with ids as texts."""
        ids = info.get("replay_unique_id")
        texts = {"replay_unique_id": ids.tolist()} if isinstance(ids, IdColumn) else {}
        self.buffer.update({**info, **texts})

    def count(self) -> int:
        """Rows that can be drawn."""
        gone = sum(rows for number, rows in self._rows.items() if not self._chunks.refs(number))
        return int(self.buffer.count()) - gone

    def _note_left(self, items: Items) -> None:
        columns = columns_of(items)
        if columns is not None:
            for number in np.asarray(columns["chunk"], np.int64).tolist():
                self._take_out(number, 1)

    def _look_who_left(self) -> None:
        if self._tells:
            return
        left = sum(self._rows.values()) - int(self.buffer.count())
        for number, rows in list(self._rows.items()):
            if left <= 0:
                break
            self._take_out(number, min(left, rows))
            left -= rows

    def _take_out(self, number: int, rows: int) -> None:
        rows = min(rows, self._rows.get(number, 0))
        if not rows:
            return
        if self._chunks.refs(number):
            self._chunks.unref(self._chunks[number], rows)
        self._rows[number] -= rows
        if not self._rows[number]:
            del self._rows[number]

    def state_dict(self) -> State:
        """The buffer's state, and which chunks its rows are of."""
        return {"buffer": self.buffer.state_dict(), "rows": list(map(list, self._rows.items()))}

    def load_state_dict(self, state: State) -> None:
        """Go on where another one stood; the chunks are loaded by their owner."""
        self.buffer.load_state_dict(state["buffer"])
        self._rows = dict(state["rows"])

    def close(self) -> None:
        """Close the buffer, if it can be; of what leaves now nothing is told."""
        if self._tells:
            self.buffer.on_leave = None
        if hasattr(self.buffer, "close"):
            self.buffer.close()
