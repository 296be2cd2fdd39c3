"""The coordinator's side of a replay buffer: chunks, counts and pace."""

import itertools
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from ding.data.buffer.rate_limiter import SampleRatio
from ding.data.chunks import chunk_pattern
from ding.data.priorities import checked_priorities
from ding.utils.errors import ConfigError
from ding.utils.types import Settings, State
from ding.worker.messages import Json
from ding.worker.replay_buffer.base_buffer import get_buffer_cls
from ding.worker.replay_buffer.chunk_replay import buffer_config
from ding.worker.seams import SampleStore

from .buffer_pace import BufferPace, SpaceQuota
from .chunk_table import Chunk, ChunkTable, parse_meta
from .row_server import RowServer
from .turn import Turn

_logger = logging.getLogger(__name__)

#: Capacity of a buffer that has none.
_NO_LIMIT = 1 << 62


class ChunkBuffer(ChunkTable):
    """Tracks a replay buffer's chunks, counts its samples, and limits its use.

    The samples are stored in the learner's
    `ding.worker.replay_buffer.chunk_replay.ChunkReplay`. A chunk is named to the learner, which
    reports when it has read the chunk, and when its last sample was evicted; the chunk is then
    removed. A restarted learner is named all remaining chunks. The cost of a message hardly depends
    on the number of chunks and samples.

    The methods are called within the turn; those that remove files also take it themselves.

    Args:
        cfg: Config of the replay buffer, of any registered ``type`` that samples rows.
        store: The store of the chunks.
        space: Quota of the bytes of all buffers that share the folder.
        name: Name in logs, tags and item ids; prefix of the names of this buffer's chunks.
        ratio: Number of times that each added sample is drawn; None for no limit.
        turn: The run's turn; files are removed after it.

    Attributes:
        cfg: Its config, as plain data.
        push_count: Number of samples pushed since the buffer was created.
    """

    def __init__(
        self,
        cfg: Settings,
        store: SampleStore,
        space: SpaceQuota,
        exp_name: str,
        name: str = "buffer",
        tb_logger: object = None,
        ratio: SampleRatio | None = None,
        turn: Turn | None = None,
    ) -> None:
        super().__init__(store, turn or Turn())
        self._name, self._space = name, space
        self.cfg = _plain(cfg)
        own = buffer_config(cfg)
        kind = get_buffer_cls(own)
        defaults = kind.default_config() if hasattr(kind, "default_config") else {}
        size = own.get("replay_buffer_size", defaults.get("replay_buffer_size", _NO_LIMIT))
        self.capacity = int(size)
        self._taken_in = 0  # samples in the replay buffer, by its last report
        self._rows = RowServer(cfg, exp_name, name, tb_logger, self)
        controller = cfg.get("thruput_controller") or {}
        # Fraction of a batch from which on the buffer yields batches.
        self._least_part = min(float(controller.get("sample_min_limit_ratio", 1.0)), 1.0)
        self.pace = BufferPace(name, ratio, space)
        space.tenants.append(self)
        self.push_count = 0
        self._refused_at = -1  # push count when the buffer in this process last yielded no rows
        self._has_evicted = self._closed = False
        self._gone_workers: set[str] = set()
        self._clearing = threading.Lock()

    # ------------------------------------------------------------------ in

    def push(self, meta: Mapping[str, object], envstep: int) -> None:
        """Add a chunk that a collector reports, see `parse_meta`; a known one is skipped.

        Raises:
            DataError: The message is invalid; nothing is stored then.
            ConfigError: The chunk is larger than the limit for all files.
        """
        data_id, rows, columns = parse_meta(meta)
        if "priority" in columns:
            checked_priorities(columns["priority"], rows)
        size = self._size_of(data_id, meta.get("size", 0))
        if self.max_bytes is not None and size > self.max_bytes:
            raise ConfigError(
                f"{self._name}: chunk {data_id} has {size} bytes, path_data_limit={self.max_bytes} "
                "is less: raise the limit, or collect fewer samples at a time"
            )
        facts = cast("dict[str, Json]", {k: v for k, v in meta.items() if k != "data_id"})
        if "sample_num" in meta:
            facts = {name: facts[name] for name in _REPORTED if name in facts}
        # A collector that did not receive the answer repeats its report.
        if self._closed or self.find(data_id) is not None:
            return
        self._add(data_id, rows, size, facts)
        self.push_count += rows
        self.pace.put_in(rows, size)

    # ------------------------------------------------------------------ for a learner's session

    def begin(self) -> None:
        """A learner begins: all remaining chunks will be named to it."""
        super().begin()
        self._taken_in = 0

    def note_replay(
        self, received: Iterable[str], left: Iterable[str], rows: int, is_starved: bool = False
    ) -> None:
        """Process the replay buffer's report: it has read the chunks ``received``, contains no
        samples of the chunks ``left``, and has ``rows`` samples; ``is_starved``: too few for a
        batch."""
        with self._turn:
            self._taken_in = rows
            self._receive(received)
            self._leave(filter(None, map(self.find, left)))
            # If samples are in transit, the due draws can still be made.
            if is_starved and not self.on_the_way:
                self.pace.starve()
            self._turn.later(self.remove_unused)

    def permit(self, batch_size: int, wanted: int) -> int:
        """Number of batches that may be drawn now, at most ``wanted``; counted as drawn."""
        if not self._has_enough(batch_size):
            # Samples that were evicted unused can never be drawn: without this, collectors would
            # wait for these draws forever.
            self.pace.starve()
            return 0
        count = 0
        while count < wanted and self.pace.can_sample(batch_size):
            self.pace.sample(batch_size)
            count += 1
        return count

    def holds_learner(self, batch_size: int) -> bool:
        """Whether a batch is available, but only permitted after collectors send more samples."""
        return self._has_enough(batch_size) and not self.pace.can_sample(batch_size)

    def _has_enough(self, batch_size: int) -> bool:
        """Whether the number of samples suffices for a batch."""
        least = min(batch_size * self._least_part, self.capacity)
        # A buffer that yielded no batch needs more samples first.
        is_refused = self.push_count == self._refused_at
        return not (self._closed or is_refused) and self.count() >= max(least, 1)

    # ------------------------------------------------------------------ for foreign learners

    def sample_rows(self, batch_size: int, cur_learner_iter: int) -> list[dict[str, Json]] | None:
        """Draw a batch from a buffer in this process, for a learner that does not support chunks:
        each sample's metadata, with its ``row`` in the file and the ``batch_id`` for `release`."""
        news = self._rows.take_in(self.take_chunks())
        self.note_replay(news.received, news.left, news.rows, news.starved)
        for data_id, cause in news.bad:
            self.drop_chunk(data_id, cause)
        if not (self._has_enough(batch_size) and self.pace.can_sample(batch_size)):
            return None
        rows = self._rows.draw(batch_size, cur_learner_iter)
        if rows is None:
            self._refused_at = self.push_count
            self.pace.starve()
        else:
            self.pace.sample(batch_size)
        return rows

    def release(self, rows: Sequence[Mapping[str, Json]]) -> None:
        """Release the rows of a batch, which are not needed any more."""
        with self._turn:
            self._rows.release(rows)
            self._turn.later(self.remove_unused)

    def update(self, priority_info: Mapping[str, object]) -> None:
        """Set the priorities of samples that `sample_rows` drew."""
        self._rows.update(priority_info)

    # ------------------------------------------------------------------ early removal of chunks

    def drop_chunk(self, data_id: str, cause: str) -> int:
        """Exclude a chunk's samples from sampling, and remove its file; returns their number."""
        with self._turn:
            chunk = self.find(data_id)
            if chunk is None or not chunk.is_live:
                return 0
            self._leave([chunk])
            self._rows.drop([chunk])
            self._turn.later(self.remove_unused)
        text = "%s: %d samples of chunk %s dropped: %s"
        _logger.warning(text, self._name, chunk.rows, data_id, cause)
        return chunk.rows

    def evict(self, n_bytes: int) -> None:
        """Remove the oldest chunks, ``n_bytes`` in total; samples in the learner stay."""
        kept, n_chunk_bytes = max(self.kept_rows, 1), max(self.bytes, 1)
        # Computed before the removal, from the chunks that are still stored.
        fit = int((self.max_bytes or 0) * kept / n_chunk_bytes)
        oldest: list[Chunk] = []
        # First the chunks that the learner has read: the others would be lost to it.
        for chunk in itertools.chain(self._received.values(), self._unsent.values()):
            if n_bytes <= 0:
                break
            n_bytes -= chunk.size
            oldest.append(chunk)
        self._leave(oldest)
        self._rows.drop(oldest)
        self.remove_unused()
        if oldest and not self._has_evicted:
            self._has_evicted = True
            _logger.warning(
                "%s: path_data_limit=%d bytes has room for about %d samples, fewer than "
                "replay_buffer_size=%d: a learner that is started again begins with these; raise "
                "the limit to keep more",
                *(self._name, self.max_bytes, fit, self.capacity),
            )

    def forget_worker(self, worker: str) -> None:
        """A collector has left or restarts: remove its unreported chunks, and free its unused
        grant."""
        with self._turn:
            self._gone_workers.add(worker)
        # If many collectors are lost at once, one at a time searches the store.
        with self._clearing:
            with self._turn:
                gone, self._gone_workers = self._gone_workers, set()
            if gone:
                self._remove_strangers(chunk_pattern(self._name, *gone))
        with self._turn:
            self.pace.forget_worker(worker)

    # ------------------------------------------------------------------ facts

    def count(self) -> int:
        """Number of samples that can be drawn, including those in transit."""
        return min(self._taken_in + self.on_the_way, self.capacity)

    @property
    def max_bytes(self) -> int | None:
        """Byte limit for all buffers that share the space."""
        return self._space.max_bytes

    # ------------------------------------------------------------------ state and end

    def state_dict(self) -> State:
        """State from which another buffer continues, with the chunk files that exist then."""
        return {
            "chunks": self._table_state(),
            "pace": self.pace.state_dict(),
            "push_count": self.push_count,
        }

    def load_state_dict(self, state: State) -> list[str]:
        """Restore another buffer's state; files that it did not know are removed.

        Returns the chunks that are dropped because their files are missing or differ in size.
        """
        with self._turn:
            gone = self._load_table(state["chunks"])
            self.pace.load_state_dict(state["pace"])
            self.push_count = int(state["push_count"])
            self.begin()
            self._turn.later(self.remove_unused)
        self._remove_strangers(chunk_pattern(self._name))
        return gone

    def close(self, remove_files: bool) -> None:
        """Close the buffer; optionally remove all its chunk files, also unknown and unfinished."""
        with self._turn:
            if self._closed:
                return
            self._closed = True
            self._rows.close()
        if remove_files:
            self._remove_all(chunk_pattern(self._name))
        with self._turn:
            self._space.tenants.remove(self)


#: Metadata of a chunk's samples that learners need.
_REPORTED = ("sample_num", "collect_iter", "priority")


def _plain(cfg: object) -> Json:
    """A config as plain data, which can be saved."""
    if isinstance(cfg, Mapping):
        return {str(key): _plain(value) for key, value in cfg.items()}
    if isinstance(cfg, list | tuple):
        return [_plain(value) for value in cfg]
    return cfg if isinstance(cfg, bool | int | float | str | None) else str(cfg)
