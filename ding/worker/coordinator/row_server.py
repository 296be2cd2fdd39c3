"""Draws batches for learners that do not support chunks."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ding.data.buffer.ring_buffer import RingBuffer
from ding.data.columns import Columns
from ding.utils.errors import ChunkError, DataError
from ding.utils.types import Settings
from ding.worker.messages import ChunkReport, Json
from ding.worker.replay_buffer.chunk_replay import ChunkReplay, ReplayNews

from .chunk_table import Chunk, ChunkTable, parse_meta

#: Columns that learners do not need: they are in the data, or only for the buffer.
_NOT_SENT = frozenset({"chunk", "collect_iter", "use", "staleness"})


class RowServer:
    """A replay buffer of references to samples, in the coordinator's process.

    It is created with the first chunks; a run with ding's own learners never needs it. After a
    resume, it contains all samples of the remaining chunks, with new priorities. Batches in transit
    pin their chunks; the other arguments are those of `ChunkReplay`.
    """

    def __init__(
        self, cfg: Settings, exp_name: str, name: str, tb_logger: object, chunks: ChunkTable
    ) -> None:
        self._given = cfg, exp_name, name, tb_logger
        self._chunks = chunks
        self._replay: ChunkReplay | None = None
        self._in_flight: dict[int, list[Chunk]] = {}
        self._next_id = 0

    def take_in(self, chunks: Sequence[ChunkReport]) -> ReplayNews:
        """Add references to the samples of chunks; returns the changes in the buffer."""
        if self._replay is None:
            self._replay = ChunkReplay(*self._given)
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
        drawn = [_in_json(row) for row in batch or ()]
        found = {row["chunk"]: self._chunks.find(row["chunk"]) for row in drawn}
        # Buffers without removal still contain items of dropped chunks.
        whole = [(chunk, row) for row in drawn if (chunk := found[row["chunk"]]) is not None]
        if not whole:
            return None
        chunks = [chunk for chunk in found.values() if chunk is not None]
        self._chunks.pin(chunks, 1)
        batch_id, self._next_id = self._next_id, self._next_id + 1
        self._in_flight[batch_id] = chunks
        rows: list[dict[str, Json]] = []
        # Repeat rows instead of returning a smaller batch: a foreign learner may rely on the size.
        for chunk, row in itertools.islice(itertools.cycle(whole), len(drawn)):
            # For chunks of ding's collectors, a learner needs only their names and rows.
            facts = {} if "sample_num" in chunk.facts else chunk.facts
            sent = {name: value for name, value in row.items() if name not in _NOT_SENT}
            rows.append({"data_id": chunk.data_id, **facts, **sent, "batch_id": batch_id})
        return rows

    def release(self, rows: Sequence[Mapping[str, Json]]) -> None:
        """Release the rows of a batch, which are not needed any more."""
        batch_id = cast(int, rows[0].get("batch_id")) if rows else -1
        self._chunks.pin(self._in_flight.pop(batch_id, []), -1)

    def update(self, priority_info: Mapping[str, object]) -> None:
        """Set priorities of sampled items; `DataError`, without changes, if they are invalid."""
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
            buffer.remove_if(lambda items: np.isin([int(row["chunk"]) for row in items], numbers))

    def close(self) -> None:
        if self._replay is not None:
            self._replay.close()


def _in_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """An item of the buffer, with numbers converted to Python types."""
    return {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}
