"""A replay buffer whose items are rows of files that only collectors and learners read."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ding.data.chunks.chunk_file import chunk_pattern
from ding.data.chunks.wire import sent, wire_batch
from ding.utils.errors import ConfigError
from ding.worker.coordinator._types import BatchColumns, Config, StateDict
from ding.worker.coordinator.chunk_meta import parse_meta
from ding.worker.coordinator.chunk_store import Chunk, ChunkStore
from ding.worker.coordinator.reference_buffer import ReferenceBuffer
from ding.worker.coordinator.remote_rows import RemoteRows
from ding.worker.coordinator.space_quota import SpaceQuota
from ding.worker.messages import ChunkReport, Json
from ding.worker.replay_buffer.rate_limiter import RateLimiter, SampleRatio
from ding.worker.seams import SampleStore

_logger = logging.getLogger(__name__)

#: Part of what the rate limiter leaves room for that collectors who had none wait for, so that
#: they are not asked for each sample.
_WORTHWHILE = 0.25
#: Bytes that a collector expects its next file to have beside the samples.
_FILE_SLACK = 8192


class _Drawn(NamedTuple):
    """A batch: its number, columns by name, its chunks, and which of these each row is of."""

    batch_id: int
    columns: BatchColumns
    chunks: list[Chunk]
    chunk_of_row: np.ndarray


class ChunkBuffer:
    """Samples by reference: a registered buffer of ``(chunk, row)``, and the files they are in.

    A file is removed when its last row has left the buffer and no batch on the way needs it. What
    the sessions of workers ask of it is said in `ding.worker.seams.Batches`.

    Args:
        cfg: Config of the replay buffer; ``type`` names any registered one.
        store: Where the chunks are; None if there are none to look after.
        max_bytes: Most bytes that files and grants together may take; None for no limit. Buffers
            that share a folder share a ``SpaceQuota``.
        exp_name: Folder of the run.
        instance_name: Name in logs, tags and item ids; names of this buffer's chunks start with it.
        tb_logger: Writer of scalars.
        ratio: Samples that are drawn for each one that is put in; None for as many as wanted.
        at_learner: Whether the registered buffer is the learner's, and chunks are passed on to it.

    Raises:
        ConfigError: A buffer that samples something other than single rows.
    """

    def __init__(
        self,
        cfg: Config,
        store: SampleStore | None,
        max_bytes: int | SpaceQuota | None,
        exp_name: str,
        instance_name: str = "buffer",
        tb_logger: object = None,
        ratio: SampleRatio | None = None,
        at_learner: bool = False,
    ) -> None:
        self._name = instance_name
        self._lock = threading.Condition()
        self._chunks = ChunkStore(store, self._lock)
        self._remote = RemoteRows(cfg, self._chunks) if at_learner else None
        self._rows: ReferenceBuffer | RemoteRows = self._remote or ReferenceBuffer(
            cfg, self._chunks, exp_name, instance_name, tb_logger
        )
        controller = cfg.get("thruput_controller") or {}
        # With which part of a batch the buffer begins to serve.
        self._least_part = min(float(controller.get("sample_min_limit_ratio", 1.0)), 1.0)
        self._quota = max_bytes if isinstance(max_bytes, SpaceQuota) else SpaceQuota(max_bytes)
        self._quota.join(self)
        self._limiter = None if ratio is None else RateLimiter(ratio)
        self._collectors: set[str] = set()
        self._paced: set[str] = set()  # collectors who may write less than there is space for
        self._in_flight: dict[int, list[Chunk]] = {}
        self._next_id = 0
        self._push_count = 0
        self._largest = 0
        self._row_bytes = 0.0  # of the chunk that came last
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
        try:
            with self._lock:
                if data_id in self._chunks or self._closed:
                    return
                # Only learners that know of no chunks are given what foreign collectors said.
                facts = None if "sample_num" in meta else dict(meta)
                chunk = self._chunks.add(data_id, rows, size, facts)
                self._rows.push(chunk, columns, envstep)
                self._largest = max(self._largest, size)
                self._row_bytes = size / rows
                self._push_count += rows
                if self._limiter is not None:
                    self._limiter.insert(rows)
                self._lock.notify_all()
        finally:
            self._chunks.remove_unused()

    # ------------------------------------------------------------------ out

    def sample(
        self, batch_size: int, cur_learner_iter: int, train_iter: int | None = None
    ) -> dict[str, Json] | None:
        """Draw a batch: plain JSON, for a ``ChunkCache``.

        Returns:
            ``{"id", "chunks": [data_id], "chunk": [index into chunks], "row", "info"}``, or None
            if the buffer cannot serve now.

        Raises:
            ConfigError: The byte limit leaves room for fewer samples than a batch has.
        """
        drawn = self._draw(batch_size, cur_learner_iter, train_iter)
        if drawn is None:
            return None
        names = [chunk.data_id for chunk in drawn.chunks]
        return wire_batch(drawn.batch_id, drawn.columns, drawn.chunk_of_row, names)

    def sample_rows(self, batch_size: int, cur_learner_iter: int) -> list[dict[str, Json]] | None:
        """Draw a batch for a foreign learner: one collector's metadata for each row.

        Each also carries what the buffer says of it, its ``row`` in the file, and ``batch_id``, by
        which `release` knows them.
        """
        if self._remote is not None:
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
        try:
            with self._lock:
                columns = None
                # A buffer that is asked too early complains in the log; here that is usual.
                if self._has_enough(batch_size):
                    if not self._may_sample(batch_size):
                        return None
                    columns = self._rows.draw(batch_size, cur_iter, train_iter)
                if columns is None:
                    self._refused_at = self._push_count
                    self._note_lack()
                    self._rows.settle()
                    if self._is_starved(batch_size):
                        raise ConfigError(
                            f"{self._name}: path_data_limit={self.max_bytes} bytes is too little "
                            f"for batches of {batch_size}: it holds about "
                            f"{self._samples_that_fit()} samples, with those that are being "
                            "written; raise it"
                        )
                    return None
                self._evicted_unseen = 0
                if self._limiter is not None:
                    had_room = self._limiter.room
                    self._limiter.sample(batch_size)
                    if self._limiter.room > had_room:
                        self._lock.notify_all()
                numbers, index = np.unique(columns["chunk"], return_inverse=True)
                chunks = [self._chunks[number] for number in numbers.tolist()]
                for chunk in chunks:
                    chunk.pins += 1
                batch_id, self._next_id = self._next_id, self._next_id + 1
                self._in_flight[batch_id] = chunks
                self._rows.settle()
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

    def release(self, batch: Mapping[str, Json] | Sequence[Mapping[str, Json]]) -> None:
        if not isinstance(batch, Mapping):
            batch = {"id": batch[0].get("batch_id")} if batch else {}
        with self._lock:
            chunks = self._in_flight.pop(cast(int, batch.get("id", -1)), None)
            if chunks is None:
                return
            self._chunks.unpin(chunks)
        self._chunks.remove_unused()

    def wait(self, batch_size: int, timeout: float) -> bool:
        def ready() -> bool:
            if self._is_starved(batch_size):
                return True
            # A buffer that refused will do so again until there is more.
            if self._push_count == self._refused_at or not self._has_enough(batch_size):
                self._note_lack()
                return False
            return self._may_sample(batch_size)

        with self._lock:
            self._lock.wait_for(lambda: self._closed or ready(), timeout)
            return not self._closed and ready()

    # ------------------------------------------------------------------ sampling against collecting

    def wait_for_room(self, timeout: float) -> bool:
        limiter = self._limiter
        if limiter is None:
            return True
        least = max(1, int(_WORTHWHILE * limiter.span))
        with self._lock:
            self._lock.wait_for(lambda: self._closed or limiter.room >= least, timeout)
            return limiter.room >= least

    def paces(self, worker: str) -> bool:
        with self._lock:
            return worker in self._paced

    def holds_learner(self, batch_size: int) -> bool:
        with self._lock:
            return self._has_enough(batch_size) and not self._may_sample(batch_size)

    def _may_sample(self, batch_size: int) -> bool:
        return self._limiter is None or self._limiter.can_sample(batch_size)

    def _note_lack(self) -> None:
        """There are too few rows to draw from, whatever collectors have put in."""
        if self._limiter is not None and self._limiter.balance > 0:
            self._limiter.starve()
            self._lock.notify_all()

    def _allowed(self, worker: str, written: int, need: int) -> int | None:
        """Bytes that a collector may have written for the learner's pace; None for no limit."""
        with self._lock:
            self._collectors.add(worker)
            self._paced.add(worker)
            if self._limiter is None or not self._row_bytes:
                return None
            rows = -(-self._limiter.room // len(self._collectors))
            if not rows:
                return written
            return written + max(int(rows * self._row_bytes) + _FILE_SLACK, need)

    # ------------------------------------------------------------------ the learner's own buffer

    def take_chunks(self) -> Sequence[ChunkReport]:
        with self._lock:
            return self._remote.take_chunks() if self._remote is not None else ()

    def received(self, names: Sequence[str], rows: int) -> None:
        with self._lock:
            if self._remote is not None:
                self._remote.received(names, rows)
        self._chunks.remove_unused()

    def begin(self, rows: int) -> int:
        with self._lock:
            return self._remote.begin(rows) if self._remote is not None else 0

    def take_back(self) -> None:
        with self._lock:
            if self._remote is not None:
                self._remote.take_back()

    # ------------------------------------------------------------------ changes

    def update(self, priority_info: Mapping[str, object]) -> None:
        """Give sampled items the priorities that learning gave them.

        Args:
            priority_info: ``replay_unique_id`` (texts, or ``{"prefix", "numbers"}`` as in wire
                batches), ``replay_buffer_idx`` and ``priority``; nothing happens if it is empty.

        Raises:
            DataError: Anything else; nothing is changed then.
        """
        if not priority_info or priority_info.get("priority") is None:
            return
        with self._lock:
            self._rows.update(priority_info)

    def drop_chunk(self, data_id: str, cause: str) -> int:
        """Never draw the samples of a chunk again; its file is removed.

        Returns:
            How many samples that were; 0 for a chunk that is not here.
        """
        with self._lock:
            chunk = self._chunks.find(data_id)
            if chunk is None:
                return 0
            rows = self._chunks.kill(chunk)
            self._rows.drop_dead()
        self._chunks.remove_unused()
        _logger.warning("%s: %d samples of chunk %s dropped: %s", self._name, rows, data_id, cause)
        return rows

    # ------------------------------------------------------------------ space

    def grant(self, worker: str, written: int, need: int = 0) -> int:
        """The bytes that a collector may have written since it came, reported ones included.

        When the limit binds, and not the buffer's capacity, the oldest samples leave, so that
        nobody waits for ever. While the learner has to draw more first, nothing may be written.

        Args:
            written: Bytes of all its chunks that were reported (pushed) since it came.
            need: Size of a chunk that waits for space, 0 if none does. One that waits gets what it
                needs or nothing: parts for several would keep all of them waiting.

        Raises:
            ConfigError: A chunk that is larger than the limit.
        """
        limit = self._quota.max_bytes
        if limit is not None and need > limit:
            raise ConfigError(
                f"{self._name}: {worker} has a chunk of {need} bytes, path_data_limit={limit} is "
                f"less: raise the limit, or collect fewer samples at a time"
            )
        allowed = self._allowed(worker, written, need)
        if allowed == written:
            return written
        granted = self._quota.grant(worker, written, need, self._largest)
        if allowed is None or granted < allowed:
            self._paced.discard(worker)
            return granted
        return allowed

    def forget_worker(self, worker: str) -> None:
        """A collector has left or starts anew: what it had written and not reported is removed,
        and what it had not used is free."""
        self._chunks.remove_strangers(chunk_pattern(self._name, worker))
        self._quota.forget(worker)
        with self._lock:
            self._collectors.discard(worker)
            self._paced.discard(worker)

    def evict(self, n_bytes: int) -> None:
        """Let the oldest samples leave, until their files make up so many bytes."""
        with self._lock:
            fit, first = self._samples_that_fit(), not self._evicted
            rows = self._rows.drop_oldest(n_bytes)
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
        return int((self._quota.max_bytes or 0) * rows / max(self._chunks.bytes, 1))

    # ------------------------------------------------------------------ facts

    def count(self) -> int:
        """Samples that can be drawn."""
        return self._rows.count()

    @property
    def capacity(self) -> int:
        """Samples that fit."""
        return self._rows.capacity

    @property
    def bytes(self) -> int:
        """Bytes of the files that have not been removed."""
        return self._chunks.bytes

    @property
    def max_bytes(self) -> int | None:
        return self._quota.max_bytes

    @property
    def push_count(self) -> int:
        """Samples that came since the buffer was made."""
        return self._push_count

    @property
    def samples_per_insert(self) -> dict[str, float | None] | None:
        """How often samples are drawn: ``target``, ``reached`` and ``balance``, how many are still
        to be drawn for those that were put in; None without a target."""
        with self._lock:
            if self._limiter is None:
                return None
            return {
                "target": self._limiter.ratio.samples_per_insert,
                "reached": self._limiter.reached,
                "balance": self._limiter.balance,
                "tolerance": self._limiter.ratio.tolerance,
            }

    @property
    def files(self) -> int:
        """Files that samples or batches on the way refer to."""
        return len(self._chunks)

    @property
    def buffer(self) -> Any:
        """The registered buffer itself."""
        return self._rows.buffer

    # ------------------------------------------------------------------ state and end

    def state_dict(self) -> StateDict:
        """All that goes on where this one stood, with the files that are there then."""
        with self._lock:
            return {
                "buffer": self._rows.state_dict(),
                "ledger": self._chunks.state_dict(),
                "next_id": self._next_id,
                "push_count": self._push_count,
                "largest": self._largest,
                "evicted": self._evicted,
                **({} if self._limiter is None else {"limiter": self._limiter.state_dict()}),
            }

    def load_state_dict(self, state: StateDict) -> list[str]:
        """Go on where the buffer stood that gave this state; files it did not know are removed.

        Returns:
            Chunks that are dropped because their files are missing or have another size.
        """
        with self._lock:
            self._chunks.load_state_dict(state["ledger"])
            self._rows.load_state_dict(state["buffer"])
            self._in_flight.clear()
            self._next_id = int(state["next_id"])
            self._push_count = int(state["push_count"])
            self._largest, self._evicted = int(state["largest"]), int(state["evicted"])
            self._refused_at = -1
            if self._limiter is not None and "limiter" in state:
                self._limiter.load_state_dict(state["limiter"])
            gone = [
                chunk
                for chunk in self._chunks.by_age()
                if not chunk.given_up and not self._chunks.is_whole(chunk)
            ]
            for chunk in gone:
                self._chunks.kill(chunk)
            self._rows.drop_dead()
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
            self._rows.close()
            self._lock.notify_all()
        if remove_files:
            self._chunks.remove_all(chunk_pattern(self._name))
        self._quota.leave(self)
