"""A replay buffer whose items are rows of files that only collectors and learners read."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from easydict import EasyDict

from ding.data.buffer.ring_buffer import RingBuffer
from ding.data.chunks.chunk_file import chunk_pattern
from ding.data.chunks.wire import BatchColumns, BatchWire, columns_of, ids_of, sent, wire_batch
from ding.data.columns import Columns
from ding.data.kinds import Items
from ding.utils.errors import ConfigError, DataError
from ding.worker.coordinator._types import Config, StateDict
from ding.worker.coordinator.buffer_pace import BufferPace
from ding.worker.coordinator.chunk_meta import parse_meta
from ding.worker.coordinator.chunk_store import Chunk, ChunkStore
from ding.worker.coordinator.learners_buffer import LearnersBuffer
from ding.worker.coordinator.space_quota import SpaceQuota
from ding.worker.coordinator.users_buffer import UsersBuffer
from ding.worker.messages import Json
from ding.worker.replay_buffer.advanced_buffer import AdvancedReplayBuffer
from ding.worker.replay_buffer.base_buffer import create_buffer, get_buffer_cls
from ding.worker.replay_buffer.episode_buffer import EpisodeReplayBuffer
from ding.worker.replay_buffer.naive_buffer import SequenceReplayBuffer
from ding.worker.replay_buffer.rate_limiter import SampleRatio
from ding.worker.seams import SampleStore

_logger = logging.getLogger(__name__)

#: Capacity of a buffer that has none.
_NO_LIMIT = 1 << 62


class _Drawn(NamedTuple):
    """A batch: its number, columns by name, its chunks, and which of these each row is of."""

    batch_id: int
    columns: BatchColumns
    chunks: list[Chunk]
    chunk_of_row: np.ndarray


class ChunkBuffer:
    """Samples by reference: a buffer of ``(chunk, row)``, and the chunks that rows refer to.

    A chunk is removed when its last row has left the buffer and no batch on the way needs it.

    Args:
        cfg: Config of the replay buffer; ``type`` names any registered one.
        store: Where the chunks are; None if there are none to look after.
        space: Bytes that the files of all buffers which share it may take.
        exp_name: Folder of the run.
        name: Name in logs, tags and item ids; names of this buffer's chunks start with it.
        tb_logger: Writer of scalars.
        ratio: Samples that are drawn for each one that is put in; None for as many as wanted.
        at_learner: Whether the registered buffer is the learner's, and chunks are passed on to it.

    Attributes:
        buffer: The registered buffer itself, or what stands for the learner's.
        outbox: What stands for the learner's, if that is where the buffer is.
        pace: How much may be put in and drawn.
        push_count: Samples that came since the buffer was made.

    Raises:
        ConfigError: A buffer that samples something other than single rows.
    """

    def __init__(
        self,
        cfg: Config,
        store: SampleStore | None,
        space: SpaceQuota,
        exp_name: str,
        name: str = "buffer",
        tb_logger: object = None,
        ratio: SampleRatio | None = None,
        at_learner: bool = False,
    ) -> None:
        self._name = name
        self._lock = threading.Condition()
        self._chunks = ChunkStore(store, self._lock)
        capacity = int(cfg.get("replay_buffer_size", _NO_LIMIT))
        self.outbox = LearnersBuffer(capacity, self._chunks, self._lock) if at_learner else None
        self.buffer: Any = self.outbox or _build(cfg, exp_name, name, tb_logger)
        #: The same, with what a user's own class may lack.
        self._rows: Any = self.buffer
        self._is_ring = isinstance(self.buffer, RingBuffer)
        if isinstance(self.buffer, RingBuffer):
            self.buffer.on_leave = self._rows_left
        elif self.outbox is None:
            self._rows = UsersBuffer(self.buffer, capacity, self._chunks)
        self._is_advanced = isinstance(self.buffer, AdvancedReplayBuffer)
        controller = cfg.get("thruput_controller") or {}
        # With which part of a batch the buffer begins to serve.
        self._least_part = min(float(controller.get("sample_min_limit_ratio", 1.0)), 1.0)
        self.pace = BufferPace(name, ratio, space, self._lock)
        self._space = space
        self._space.join(self)
        self._in_flight: dict[int, list[Chunk]] = {}
        self._next_id = 0
        self.push_count = 0
        self._refused_at = -1  # push count when the buffer last had too little for a batch
        self._evicted = self._evicted_unseen = 0  # rows; since the last batch
        self._closed = False

    # ------------------------------------------------------------------ in

    def push(self, meta: Mapping[str, object], envstep: int) -> None:
        """Take in what a collector says of a file; a file that is known already is passed over.

        Args:
            meta: ``data_id``; ``sample_num`` (1 without it), ``size``, ``collect_iter`` and
                ``priority`` (one for all, or one for each sample).
            envstep: Environment steps collected so far.

        Raises:
            DataError: Not such a message; nothing is stored then.
        """
        data_id, rows, columns = parse_meta(meta)
        size = self._chunks.size_of(data_id, meta.get("size", 0))
        if self._is_ring and not self._is_advanced:
            # They would take it for a further column, which some rows lack.
            columns.pop("priority", None)
        try:
            with self._lock:
                if data_id in self._chunks or self._closed:
                    return
                # Only learners that know of no chunks are given what foreign collectors said.
                facts = None if "sample_num" in meta else cast("dict[str, Json]", dict(meta))
                chunk = self._chunks.add(data_id, rows, size, facts)
                columns["chunk"] = np.full(rows, chunk.number)
                try:
                    self._rows.push(Columns.trusted({**columns}, rows), envstep)
                except Exception:
                    self._chunks.unref(chunk, chunk.refs)
                    raise
                self.push_count += rows
                self.pace.put_in(rows, size)
                self._lock.notify_all()
        finally:
            self._chunks.remove_unused()

    def _rows_left(self, items: Items) -> None:
        columns = columns_of(items)
        if columns is not None:
            self._chunks.leave(np.asarray(columns["chunk"], np.int64))

    # ------------------------------------------------------------------ out

    def sample(
        self, batch_size: int, cur_learner_iter: int, train_iter: int | None = None
    ) -> BatchWire | None:
        """Draw a batch: plain JSON, for a ``ChunkCache``; None if the buffer cannot serve now. Its
        chunks stay until `release`.

        Args:
            train_iter: Update at which it will be trained on, if others are before it.

        Raises:
            ConfigError: The byte limit leaves room for fewer samples than a batch has.
        """
        drawn = self._draw(batch_size, cur_learner_iter, train_iter)
        if drawn is None:
            return None
        names = [chunk.data_id for chunk in drawn.chunks]
        return wire_batch(drawn.batch_id, drawn.columns, drawn.chunk_of_row, names)

    def permit(self, batch_size: int, wanted: int) -> int:
        """How many batches a learner may draw from its own buffer now, ``wanted`` at most.

        All of them are counted at once: between two questions for one batch each, the threads of
        a thousand collectors would get their turns.
        """
        count = 0
        with self._lock:
            if self._has_enough(batch_size):
                while count < wanted and self.pace.may_draw(batch_size):
                    self.pace.drawn(batch_size)
                    count += 1
                return count
            self._refused_at = self.push_count
            self.pace.note_lack()
            self._complain_if_starved(batch_size)
        return 0

    def sample_rows(self, batch_size: int, cur_learner_iter: int) -> list[dict[str, Json]] | None:
        """Draw a batch for a foreign learner: one collector's metadata for each row.

        Each also carries what the buffer says of it, its ``row`` in the file, and ``batch_id``, by
        which `release` knows them.
        """
        if self.outbox is not None:
            raise ConfigError(
                f"{self._name}: system_config.coordinator.buffer='learner' needs a learner that "
                "keeps samples; this one takes rows from the coordinator: use 'coordinator'"
            )
        drawn = self._draw(batch_size, cur_learner_iter)
        if drawn is None:
            return None
        facts = [{"data_id": chunk.data_id, **chunk.facts} for chunk in drawn.chunks]
        names = ["row", *sent(drawn.columns)]
        values = [list(drawn.columns[name].tolist()) for name in names]
        return [
            {**facts[at], **dict(zip(names, row)), "batch_id": drawn.batch_id}
            for at, row in zip(drawn.chunk_of_row.tolist(), zip(*values))
        ]

    def _draw(self, batch_size: int, cur_iter: int, train_iter: int | None = None) -> _Drawn | None:
        """Draw a batch, and pin its chunks."""
        later = {"train_iter": train_iter} if self._is_advanced else {}
        try:
            with self._lock:
                columns = None
                # A buffer that is asked too early complains in the log; here that is usual.
                if self._has_enough(batch_size):
                    if not self.pace.may_draw(batch_size):
                        return None
                    columns = columns_of(self._rows.sample(batch_size, cur_iter, **later))
                if columns is None:
                    self._refused_at = self.push_count
                    self.pace.note_lack()
                    self._complain_if_starved(batch_size)
                    return None
                self._evicted_unseen = 0
                self.pace.drawn(batch_size)
                numbers, index = np.unique(columns["chunk"], return_inverse=True)
                chunks = [self._chunks[number] for number in numbers.tolist()]
                self._chunks.pin(chunks)
                batch_id, self._next_id = self._next_id, self._next_id + 1
                self._in_flight[batch_id] = chunks
        finally:
            self._chunks.remove_unused()
        return _Drawn(batch_id, columns, chunks, index)

    def _has_enough(self, batch_size: int) -> bool:
        """Whether there are rows for a batch, as far as their number tells."""
        least = min(batch_size * self._least_part, self.capacity)
        return not self._closed and self.count() >= least

    def _is_starved(self, batch_size: int) -> bool:
        """Whether samples leave for lack of space before there are enough for a batch."""
        return self._evicted_unseen > 4 * batch_size

    def _complain_if_starved(self, batch_size: int) -> None:
        if self._is_starved(batch_size):
            raise ConfigError(
                f"{self._name}: path_data_limit={self.max_bytes} bytes is too little for batches "
                f"of {batch_size}: it holds about {self._samples_that_fit()} samples, with those "
                "that are being written; raise it"
            )

    def release(self, batch: BatchWire | Sequence[Mapping[str, Json]]) -> None:
        """A batch, or its rows, are not needed any more."""
        if isinstance(batch, Mapping):
            batch_id: Json = batch["id"]
        else:
            batch_id = batch[0].get("batch_id") if batch else None
        with self._lock:
            chunks = self._in_flight.pop(cast(int, batch_id), None)
            if chunks is None:
                return
            self._chunks.unpin(chunks)
        self._chunks.remove_unused()

    def wait(self, batch_size: int, timeout: float) -> bool:
        """Wait until `sample` may succeed; whether it may, within so many seconds."""

        def ready() -> bool:
            if self._is_starved(batch_size):
                return True
            # A buffer that refused will do so again until there is more.
            if self.push_count == self._refused_at or not self._has_enough(batch_size):
                self.pace.note_lack()
                return False
            return self.pace.may_draw(batch_size)

        with self._lock:
            self._lock.wait_for(lambda: self._closed or ready(), timeout)
            return not self._closed and ready()

    def holds_learner(self, batch_size: int) -> bool:
        """Whether a batch that is there may not be drawn until collectors have brought more."""
        with self._lock:
            return self._has_enough(batch_size) and not self.pace.may_draw(batch_size)

    # ------------------------------------------------------------------ changes

    def update(self, priority_info: Mapping[str, object]) -> None:
        """Give sampled items the priorities that learning gave them.

        Args:
            priority_info: ``replay_unique_id`` (texts, or ``{"prefix", "numbers"}`` as in wire
                batches), ``replay_buffer_idx`` and ``priority``; nothing happens if it is empty.

        Raises:
            DataError: Anything else; nothing is changed then.
        """
        info = dict(priority_info or {})
        if info.get("priority") is None:
            return
        try:
            ids = info.get("replay_unique_id")
            if isinstance(ids, Mapping):
                info["replay_unique_id"] = ids_of(ids)
            with self._lock:
                self._rows.update(info)
        except DataError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"damaged priorities came: {type(error).__name__}: {error}") from error

    def drop_chunk(self, data_id: str, cause: str) -> int:
        """Never draw the samples of a chunk again; its file is removed.

        Returns:
            How many samples that were; 0 for a chunk that is not here.
        """
        with self._lock:
            chunk = self._chunks.find(data_id)
            rows = 0 if chunk is None else chunk.refs
            if chunk is None or not rows:
                return 0
            self._drop([chunk])
        self._chunks.remove_unused()
        _logger.warning("%s: %d samples of chunk %s dropped: %s", self._name, rows, data_id, cause)
        return rows

    def _drop(self, chunks: Sequence[Chunk]) -> None:
        """Let the rows of chunks leave."""
        if self.outbox is not None:
            self.outbox.drop(chunks)
            return
        if not self._is_ring:
            for chunk in chunks:
                self._chunks.unref(chunk, chunk.refs)
            return
        numbers = [chunk.number for chunk in chunks]

        def is_of_them(items: Items) -> np.ndarray:
            columns = columns_of(items) or {}
            return np.isin(np.asarray(columns["chunk"], np.int64), numbers)

        self.buffer.remove_if(is_of_them)

    def evict(self, n_bytes: int) -> None:
        """Let the oldest samples leave, until their files make up so many bytes."""
        with self._lock:
            fit, first, before = self._samples_that_fit(), not self._evicted, self.count()
            oldest = []
            for chunk in self._chunks.oldest():
                if n_bytes <= 0:
                    break
                if not chunk.is_sent:
                    n_bytes -= chunk.size
                    oldest.append(chunk)
            if self._is_ring:
                self.buffer.drop_oldest(sum(chunk.refs for chunk in oldest))
            else:
                self._drop(oldest)
            rows = before - self.count()
            self._evicted += rows
            self._evicted_unseen += rows
        self._chunks.remove_unused()
        if rows and first:
            _logger.warning(
                "%s: path_data_limit=%d bytes has room for about %d samples, fewer than "
                "replay_buffer_size=%d: the oldest leave early; raise the limit to keep them",
                *(self._name, self.max_bytes, fit, self.capacity),
            )

    def _samples_that_fit(self) -> int:
        rows = max(self._chunks.kept_rows, 1)
        return int((self.max_bytes or 0) * rows / max(self._chunks.bytes, 1))

    def forget_worker(self, worker: str) -> None:
        """A collector has left or starts anew: what it had written and not reported is removed,
        and what it had not used is free."""
        self._chunks.remove_strangers(chunk_pattern(self._name, worker))
        self.pace.forget_worker(worker)

    # ------------------------------------------------------------------ facts

    def count(self) -> int:
        """Samples that can be drawn."""
        with self._lock:
            return int(self._rows.count())

    @property
    def capacity(self) -> int:
        """Samples that fit."""
        return int(self._rows.replay_buffer_size)

    @property
    def bytes(self) -> int:
        """Bytes of the files that have not been removed."""
        return self._chunks.bytes

    @property
    def max_bytes(self) -> int | None:
        """Bytes that they may have, with those of all buffers that share the space."""
        return self._space.max_bytes

    @property
    def files(self) -> int:
        """Files that samples or batches on the way refer to."""
        return len(self._chunks)

    # ------------------------------------------------------------------ state and end

    def state_dict(self) -> StateDict:
        """All that goes on where this one stood, with the files that are there then."""
        with self._lock:
            return {
                "buffer": self._rows.state_dict(),
                "ledger": self._chunks.state_dict(),
                "pace": self.pace.state_dict(),
                "next_id": self._next_id,
                "push_count": self.push_count,
                "evicted": self._evicted,
            }

    def load_state_dict(self, state: StateDict) -> list[str]:
        """Go on where the buffer stood that gave this state; files it did not know are removed.

        Returns:
            Chunks that are dropped because their files are missing or have another size.
        """
        with self._lock:
            self._chunks.load_state_dict(state["ledger"])
            self._rows.load_state_dict(state["buffer"])
            self.pace.load_state_dict(state["pace"])
            self._in_flight.clear()
            self._next_id, self.push_count = int(state["next_id"]), int(state["push_count"])
            self._evicted = int(state["evicted"])
            self._refused_at = -1
            chunks = self._chunks.by_age()
            gone = [chunk for chunk in chunks if chunk.refs and not self._chunks.is_whole(chunk)]
            self._drop(gone)
            self._lock.notify_all()
        self._chunks.remove_unused()
        self._chunks.remove_strangers(chunk_pattern(self._name))
        return [chunk.data_id for chunk in gone]

    def close(self, remove_files: bool) -> None:
        """End; again does nothing.

        Args:
            remove_files: Also remove all chunks of this buffer, known or not, finished or not.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._is_ring:
                self.buffer.on_leave = None  # rows that leave now are of use to whoever goes on
            self._rows.close()
            self.pace.close()
        if remove_files:
            self._chunks.remove_all(chunk_pattern(self._name))
        self._space.leave(self)


def _build(cfg: Config, exp_name: str, name: str, tb_logger: object) -> Any:
    own = EasyDict(cfg)
    own.setdefault("type", "advanced")
    own["enable_track_used_data"] = False  # the files are looked after here
    kind = get_buffer_cls(own)
    if isinstance(kind, type) and issubclass(kind, SequenceReplayBuffer | EpisodeReplayBuffer):
        raise ConfigError(
            f"policy.other.replay_buffer.type={own.type!r} samples runs of items, parallel mode "
            f"needs single samples: use 'advanced', 'naive' or 'deque', and unroll_len for runs"
        )
    return create_buffer(own, tb_logger=tb_logger, exp_name=exp_name, instance_name=name)
