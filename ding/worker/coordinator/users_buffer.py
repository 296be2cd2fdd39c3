"""A user's buffer class, with what a buffer of references needs beyond `IBuffer`."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ding.data.chunks.wire import columns_of
from ding.data.columns import Columns
from ding.data.id_column import IdColumn
from ding.data.kinds import Items, State

#: Draws after which a batch is filled with what they gave.
_ATTEMPTS = 16


class UsersBuffer:
    """Tells of rows that leave a buffer which does not tell, and never draws those that should.

    A class without ``on_leave`` is taken to let its oldest items leave first. Rows that are to
    leave stay in it and are passed over.

    Args:
        buffer: Its items are rows with ``chunk``, the number of a chunk.
        capacity: Rows that fit, if it does not tell ``replay_buffer_size``.

    Attributes:
        on_leave: Is told of rows that have left: ``Columns`` with ``chunk``.
    """

    def __init__(self, buffer: Any, capacity: int) -> None:
        self.buffer = buffer
        self.replay_buffer_size = int(getattr(buffer, "replay_buffer_size", capacity))
        self.on_leave: Any = None
        self._rows: dict[int, int] = {}  # in the buffer, of each chunk; the oldest first
        self._gone: set[int] = set()  # chunks whose rows count as left
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
        """Rows that have not left; ``None`` if the buffer refuses."""
        numbers = self._numbers()
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
        return int(self.buffer.count()) - sum(self._rows[number] for number in self._gone)

    def drop_oldest(self, n: int) -> None:
        """Let the rows of the oldest chunks leave, at least n."""
        for number in self._numbers():
            if n <= 0:
                break
            n -= self._rows[number]
            self.remove_chunks([number])

    def remove_chunks(self, numbers: Iterable[int]) -> None:
        """Let the rows of chunks leave."""
        for number in numbers:
            if number in self._rows and number not in self._gone:
                self._gone.add(number)
                self._tell(number, self._rows[number])

    def _numbers(self) -> list[int]:
        return [number for number in self._rows if number not in self._gone]

    def _tell(self, number: int, rows: int) -> None:
        if self.on_leave is not None:
            self.on_leave(Columns({"chunk": np.full(rows, number)}))

    def _note_left(self, items: Items) -> None:
        columns = columns_of(items)
        if columns is not None:
            found, counts = np.unique(np.asarray(columns["chunk"], np.int64), return_counts=True)
            for number, rows in zip(found.tolist(), counts.tolist()):
                self._take_out(number, rows)

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
        if number not in self._gone:
            self._tell(number, rows)
        self._rows[number] -= rows
        if not self._rows[number]:
            del self._rows[number]
            self._gone.discard(number)

    def state_dict(self) -> State:
        """The buffer's state, and which chunks its rows are of."""
        rows = [list(entry) for entry in self._rows.items()]
        return {"buffer": self.buffer.state_dict(), "rows": rows, "gone": sorted(self._gone)}

    def load_state_dict(self, state: State) -> None:
        """Go on where another one stood."""
        self.buffer.load_state_dict(state["buffer"])
        self._rows = dict(state["rows"])
        self._gone = set(state["gone"])

    def close(self) -> None:
        """Close the buffer, if it can be; of what leaves now nothing is told."""
        if self._tells:
            self.buffer.on_leave = None
        if hasattr(self.buffer, "close"):
            self.buffer.close()
