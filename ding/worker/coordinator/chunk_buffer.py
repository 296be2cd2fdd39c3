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
    """Which chunks a replay buffer needs, how many samples it has, and how fast it may be used.

    The samples are where they are trained on, in a learner's
    `ding.worker.replay_buffer.chunk_replay.ChunkReplay`. A chunk is named to the learner, which
    reports when it has taken it in, and when its last sample has left; then it is removed. A
    learner that begins again is named all chunks that are left. One message costs the same however
    many chunks and samples there are.

    The methods are called in the turn; those that remove files also take it themselves.

    Args:
        cfg: Config of the replay buffer; ``type`` names any registered one that samples rows.
        store: Where the chunks are.
        space: Bytes that the files of all buffers which share it may take.
        name: Name in logs, tags and item ids; names of this buffer's chunks start with it.
        ratio: Samples that are drawn for each one that is put in; None for as many as wanted.
        turn: The run's; files are removed when it is over.

    Attributes:
        cfg: Its config, as plain data.
        push_count: Samples that came since the buffer was made.
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
        self._taken_in = 0  # samples that the replay buffer has, as it said last
        self._rows = RowServer(cfg, exp_name, name, tb_logger, self)
        controller = cfg.get("thruput_controller") or {}
        # With which part of a batch the buffer begins to serve.
        self._least_part = min(float(controller.get("sample_min_limit_ratio", 1.0)), 1.0)
        self.pace = BufferPace(name, ratio, space)
        space.tenants.append(self)
        self.push_count = 0
        self._refused_at = -1  # push count when the buffer in this process last gave no rows
        self._has_evicted = self._closed = False
        self._gone_workers: set[str] = set()
        self._clearing = threading.Lock()

    # ------------------------------------------------------------------ in

    def push(self, meta: Mapping[str, object], envstep: int) -> None:
        """Take in what a collector reports of a chunk, see `parse_meta`; a known one is skipped.

        Raises:
            DataError: Not such a message; nothing is stored then.
            ConfigError: A chunk that is larger than all files together may be.
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
        # A report may come twice: a collector that did not get the answer sends it again.
        if self._closed or self.find(data_id) is not None:
            return
        self._add(data_id, rows, size, facts)
        self.push_count += rows
        self.pace.put_in(rows, size)

    # ------------------------------------------------------------------ for a learner's session

    def begin(self) -> None:
        """A learner begins: it is named all chunks that are left."""
        super().begin()
        self._taken_in = 0

    def note_replay(
        self, received: Iterable[str], left: Iterable[str], rows: int, is_starved: bool = False
    ) -> None:
        """The replay buffer has ``received`` chunks, has no samples any more of those that have
        ``left``, and has ``rows`` samples, too few for a batch if it ``is_starved``."""
        with self._turn:
            self._taken_in = rows
            self._receive(received)
            self._leave(filter(None, map(self.find, left)))
            # With samples on their way, the draws that are due can still be made.
            if is_starved and not self.on_the_way:
                self.pace.starve()
            self._turn.later(self.remove_unused)

    def permit(self, batch_size: int, wanted: int) -> int:
        """How many batches may be drawn now, ``wanted`` at most; they are counted as drawn."""
        if not self._has_enough(batch_size):
            # What the buffer has lost unused can never be drawn: the collectors would wait for that
            # for ever.
            self.pace.starve()
            return 0
        count = 0
        while count < wanted and self.pace.can_sample(batch_size):
            self.pace.sample(batch_size)
            count += 1
        return count

    def holds_learner(self, batch_size: int) -> bool:
        """Whether an available batch may only be drawn after collectors have sent more samples."""
        return self._has_enough(batch_size) and not self.pace.can_sample(batch_size)

    def _has_enough(self, batch_size: int) -> bool:
        """Whether there are enough samples for a batch, judging by their number."""
        least = min(batch_size * self._least_part, self.capacity)
        # A buffer that refused will do so again until there is more.
        is_refused = self.push_count == self._refused_at
        return not (self._closed or is_refused) and self.count() >= max(least, 1)

    # ------------------------------------------------------------------ for foreign learners

    def sample_rows(self, batch_size: int, cur_learner_iter: int) -> list[dict[str, Json]] | None:
        """Draw a batch, from a buffer in this process, for a learner that knows of no chunks:
        metadata of each sample, with its ``row`` in the file and the ``batch_id`` for `release`."""
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
        """The rows of a batch are not needed any more."""
        with self._turn:
            self._rows.release(rows)
            self._turn.later(self.remove_unused)

    def update(self, priority_info: Mapping[str, object]) -> None:
        """Give samples that `sample_rows` drew the priorities that learning gave them."""
        self._rows.update(priority_info)

    # ------------------------------------------------------------------ chunks that go early

    def drop_chunk(self, data_id: str, cause: str) -> int:
        """Never draw the samples of a chunk again, and remove its file; returns their number."""
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
        """Remove the oldest chunks, of ``n_bytes``; a learner keeps the samples that it has."""
        kept, n_chunk_bytes = max(self.kept_rows, 1), max(self.bytes, 1)
        # Before they leave: it is an estimate by the chunks that are stored now.
        fit = int((self.max_bytes or 0) * kept / n_chunk_bytes)
        oldest: list[Chunk] = []
        # Those that the learner has, first: the others are lost to it when their files are removed.
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
        """A collector has left or starts again: what it had written and not reported is removed,
        and what it had not used is free."""
        with self._turn:
            self._gone_workers.add(worker)
        # Of a thousand that are lost at once, few look through the store, the others wait.
        with self._clearing:
            with self._turn:
                gone, self._gone_workers = self._gone_workers, set()
            if gone:
                self._remove_strangers(chunk_pattern(self._name, *gone))
        with self._turn:
            self.pace.forget_worker(worker)

    # ------------------------------------------------------------------ facts

    def count(self) -> int:
        """Samples that can be drawn, those on their way included."""
        return min(self._taken_in + self.on_the_way, self.capacity)

    @property
    def max_bytes(self) -> int | None:
        """Bytes that they may have, with those of all buffers that share the space."""
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
        """Continue from the state of another one; files that it did not know are removed.

        Returns the chunks that are dropped because their files are missing or have another size.
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
        """End, and perhaps remove all chunks of this buffer, known or not, finished or not."""
        with self._turn:
            if self._closed:
                return
            self._closed = True
            self._rows.close()
        if remove_files:
            self._remove_all(chunk_pattern(self._name))
        with self._turn:
            self._space.tenants.remove(self)


#: What learners need to know of the samples of a chunk.
_REPORTED = ("sample_num", "collect_iter", "priority")


def _plain(cfg: object) -> Json:
    """Config as plain data, which can be stored."""
    if isinstance(cfg, Mapping):
        return {str(key): _plain(value) for key, value in cfg.items()}
    if isinstance(cfg, list | tuple):
        return [_plain(value) for value in cfg]
    return cfg if isinstance(cfg, bool | int | float | str | None) else str(cfg)
