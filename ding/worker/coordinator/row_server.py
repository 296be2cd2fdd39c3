"""Draws batches for learners that know of no chunks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from ding.data.arrays import Items, State
from ding.data.buffer.ring_buffer import RingBuffer
from ding.data.columns import Columns
from ding.utils.errors import ChunkError, DataError
from ding.worker.messages import ChunkReport, Json
from ding.worker.replay_buffer.chunk_replay import ChunkReplay, ReplayNews

from ._types import Config
from .chunk_store import Chunk, ChunkStore, parse_meta

#: What the buffer says of rows that learners have no need of: it is in the data, or for the buffer.
_NOT_SENT = frozenset({"chunk", "row", "collect_iter", "use", "staleness"})
#: Arrays, or ids, with an entry for each row.
_Drawn: TypeAlias = dict[str, Any]


class RowServer:
    """A replay buffer of references to samples, in the coordinator's process.

    It is made when the first chunks come: a run of ding's own learners never needs it. Batches on
    their way pin the chunks; the other arguments are those of `ChunkReplay`.
    """

    def __init__(
        self, cfg: Config, exp_name: str, name: str, tb_logger: object, chunks: ChunkStore
    ) -> None:
        self._given = cfg, exp_name, name, tb_logger
        self._chunks = chunks
        self._replay: ChunkReplay | None = None
        self._saved: State | None = None
        self._in_flight: dict[int, list[Chunk]] = {}
        self._next_id = 0

    def take_in(self, chunks: Sequence[ChunkReport]) -> ReplayNews:
        """Put references to the samples of chunks into the buffer; what has become of all."""
        if self._replay is None:
            self._replay = ChunkReplay(*self._given)
            if self._saved is not None:
                self._replay.load_state_dict(self._saved)
        self._replay.name_chunks(chunks, -1)
        self._replay.take_in(self._references)
        return self._replay.take_news()

    def _references(self, report: ChunkReport) -> Columns:
        chunk = self._chunks.find(report.data_id)
        if chunk is None:
            raise ChunkError(report.data_id, "it was removed")
        _, rows, columns = parse_meta({"data_id": chunk.data_id, **report.meta})
        return Columns({"chunk": np.full(rows, chunk.number), "row": columns["row"]})

    def draw(self, batch_size: int, cur_iter: int) -> list[dict[str, Json]] | None:
        """Draw a batch, and pin its chunks."""
        assert self._replay is not None, "take_in() comes first"
        batch, _ = self._replay.sample(batch_size, cur_iter)
        columns = _columns_of(batch)
        if columns is None:
            return None
        numbers = columns["chunk"].tolist()
        found = {number: self._chunks.numbered(number) for number in numbers}
        # Buffers that cannot remove items still have those of chunks that were dropped.
        kept = [i for i, number in enumerate(numbers) if found[number] is not None]
        if not kept:
            return None
        chunks = [chunk for chunk in found.values() if chunk is not None]
        self._chunks.pin(chunks)
        batch_id, self._next_id = self._next_id, self._next_id + 1
        self._in_flight[batch_id] = chunks
        values = {name: columns[name].tolist() for name in columns if name not in _NOT_SENT}
        values["row"] = columns["row"].tolist()
        rows: list[dict[str, Json]] = []
        for i in (kept[i % len(kept)] for i in range(len(numbers))):
            chunk = cast(Chunk, found[numbers[i]])
            # Of our own collectors' chunks a learner needs no more than name and row.
            facts = {} if "sample_num" in chunk.facts else chunk.facts
            told = {name: of_all[i] for name, of_all in values.items()}
            rows.append({"data_id": chunk.data_id, **facts, **told, "batch_id": batch_id})
        return rows

    def release(self, rows: Sequence[Mapping[str, Json]]) -> None:
        """The rows of a batch are not needed any more."""
        batch_id = cast(int, rows[0].get("batch_id")) if rows else -1
        self._chunks.unpin(self._in_flight.pop(batch_id, []))

    def update(self, priority_info: Mapping[str, object]) -> None:
        """Give sampled items the priorities that learning gave them.

        Raises:
            DataError: Something else came; nothing is changed then.
        """
        info = dict(priority_info or {})
        if self._replay is None or info.get("priority") is None:
            return
        try:
            self._replay.update(info)
        except DataError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"damaged priorities came: {type(error).__name__}: {error}") from error

    def drop(self, chunks: Iterable[Chunk]) -> None:
        """Remove the samples of chunks."""
        buffer = None if self._replay is None else self._replay.buffer
        if isinstance(buffer, RingBuffer):
            numbers = [chunk.number for chunk in chunks]
            buffer.remove_if(lambda items: np.isin((_columns_of(items) or {})["chunk"], numbers))

    def state_dict(self) -> State | None:
        """Which samples there are, with priorities and uses."""
        return self._saved if self._replay is None else self._replay.state_dict()

    def load_state_dict(self, state: State | None) -> None:
        """Go on from another one's state when chunks are taken in."""
        self._saved = state

    def close(self) -> None:
        if self._replay is not None:
            self._replay.close()


def _columns_of(items: Items | None) -> _Drawn | None:
    """What a buffer gave, as columns; of rows, what all of them have; None for nothing."""
    if items is None:
        return None
    columns = items.columns_or_none() if isinstance(items, Columns) else None
    if columns is not None:
        return dict(columns)
    rows = list(items)
    if not rows:
        return None
    names = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: _as_array([row[name] for row in rows]) for name in names}


def _as_array(values: list[object]) -> np.ndarray:
    if all(isinstance(value, int | float | np.number | np.bool_) for value in values):
        return np.asarray(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
