"""A registered buffer that holds rows of chunks instead of samples."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.data.chunks.wire import columns_of, ids_of
from ding.data.columns import Columns
from ding.utils.errors import ConfigError, DataError
from ding.worker.coordinator._types import BatchColumns, Config, StateDict
from ding.worker.coordinator.chunk_store import Chunk, ChunkStore
from ding.worker.replay_buffer.advanced_buffer import AdvancedReplayBuffer
from ding.worker.replay_buffer.base_buffer import create_buffer, get_buffer_cls
from ding.worker.replay_buffer.episode_buffer import EpisodeReplayBuffer
from ding.worker.replay_buffer.naive_buffer import SequenceReplayBuffer

#: Draws after which a batch is filled with what they gave.
_ATTEMPTS = 16
#: Capacity of a buffer that has none.
NO_LIMIT = 1 << 62


class ReferenceBuffer:
    """Keeps the count of chunks' rows in step with what a registered buffer holds.

    Buffers of this project tell of items that leave (``on_leave``). A class that does not is taken
    to let its oldest items leave first. It is not safe for threads: its owner has a lock.

    Args:
        cfg: Config of the buffer; ``type`` names the class.
        chunks: Those that its rows are of.
        exp_name: Folder of the run.
        name: Name in logs, tags and item ids.
        tb_logger: Writer of scalars.

    Raises:
        ConfigError: A buffer that samples something other than single rows.
    """

    def __init__(
        self, cfg: Config, chunks: ChunkStore, exp_name: str, name: str, tb_logger: object
    ) -> None:
        self._chunks = chunks
        #: The registered buffer itself.
        self.buffer: Any = _build(cfg, exp_name, name, tb_logger)
        # Rows that left during a call of the buffer, as chunk numbers.
        self._left: list[np.ndarray] = []
        self._tells = hasattr(self.buffer, "on_leave")
        if self._tells:
            self.buffer.on_leave = self._note_left
        # Others of this project's would take it for a further column, which some rows lack.
        self._takes_priority = isinstance(self.buffer, AdvancedReplayBuffer) or not self._tells
        self._knows_train_iter = isinstance(self.buffer, AdvancedReplayBuffer)
        limit: Any = cfg.get("replay_buffer_size", NO_LIMIT)
        #: Rows that fit.
        self.capacity = int(getattr(self.buffer, "replay_buffer_size", limit))

    # ------------------------------------------------------------------ in and out

    def push(self, chunk: Chunk, columns: BatchColumns, envstep: int) -> None:
        """Store the rows of a chunk.

        Args:
            columns: ``row``, ``collect_iter`` and perhaps ``priority``.

        Raises:
            Exception: What the buffer raises; then nothing refers to the chunk.
        """
        columns["chunk"] = np.full(chunk.rows, chunk.number)
        if not self._takes_priority:
            columns.pop("priority", None)
        try:
            self.buffer.push(Columns.trusted(columns, chunk.rows), envstep)
        except Exception:
            self._chunks.unref(chunk, chunk.rows)
            raise
        self.settle()

    def draw(
        self, batch_size: int, cur_iter: int, train_iter: int | None = None
    ) -> BatchColumns | None:
        """Columns of a batch without rows of dropped chunks; None if the buffer refuses.

        Rows that have left through it count until `settle`.

        Args:
            cur_iter: The learner's iteration.
            train_iter: Iteration at which it will train on the batch, if that is a later one.
        """
        later = {"train_iter": train_iter} if self._knows_train_iter else {}
        kept: list[Columns] = []
        have = 0
        for _ in range(_ATTEMPTS):
            columns = columns_of(self.buffer.sample(batch_size, cur_iter, **later))
            if columns is None or (self._tells and not self._chunks.dead_rows):
                break
            alive = np.flatnonzero(self._chunks.are_alive(np.asarray(columns["chunk"])))
            kept.append(Columns(columns).take(alive))
            have += len(alive)
            if have >= batch_size:
                break
        if not have:
            return None if kept else columns
        # If few are left, some come more than once.
        return Columns.concat(kept).take(np.arange(batch_size) % have).columns

    def update(self, info: Mapping[str, object]) -> None:
        """Pass on what learning found about rows.

        Raises:
            DataError: It is damaged; nothing is changed then.
        """
        info = dict(info)
        try:
            ids = info.get("replay_unique_id")
            if isinstance(ids, Mapping):
                column = ids_of(ids)
                info["replay_unique_id"] = column if self._tells else column.tolist()
            self.buffer.update(info)
        except DataError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"damaged priorities came: {type(error).__name__}: {error}") from error

    # ------------------------------------------------------------------ rows that leave

    def drop_oldest(self, n_bytes: int) -> int:
        """Let the oldest rows leave, until their files make up so many bytes; returns how many."""
        rows, leaving = 0, []
        for chunk in self._chunks.by_age():
            if n_bytes <= 0:
                break
            leaving.append(chunk)
            n_bytes -= 0 if chunk.given_up else chunk.size
            rows += chunk.refs
        if rows and hasattr(self.buffer, "drop_oldest"):
            self.buffer.drop_oldest(rows)
            self.settle()
        elif rows:
            for chunk in leaving:
                self._chunks.kill(chunk)
        return rows

    def drop_dead(self) -> None:
        """Let rows of dropped chunks leave, if the buffer can; else they are never drawn."""
        if self._chunks.dead_rows and hasattr(self.buffer, "remove_if"):
            self.buffer.remove_if(self._are_dead)
            self.settle()

    def _are_dead(self, items: Any) -> np.ndarray:
        columns = columns_of(items)
        assert columns is not None
        return ~self._chunks.are_alive(np.asarray(columns["chunk"], np.int64))

    def _note_left(self, items: Any) -> None:
        columns = columns_of(items)
        if columns is not None:
            self._left.append(np.asarray(columns["chunk"], np.int64))

    def settle(self) -> None:
        """Count the rows that have left."""
        if self._left:
            left, self._left = self._left, []
            self._chunks.leave(np.concatenate(left))
        if not self._tells:
            self._chunks.leave_oldest(self._chunks.rows - self.buffer.count())

    def count(self) -> int:
        """Rows that can be drawn."""
        return int(self.buffer.count()) - self._chunks.dead_rows

    # ------------------------------------------------------------------ state and end

    def state_dict(self) -> dict[str, Any]:
        """All that the buffer needs to go on."""
        state: dict[str, Any] = self.buffer.state_dict()
        return state

    def load_state_dict(self, state: StateDict) -> None:
        """Go on where the buffer stood; the chunks are loaded by their owner."""
        self.buffer.load_state_dict(state)
        self._left.clear()

    def close(self) -> None:
        """Close the buffer, if it can be; its rows go on counting."""
        if self._tells:
            self.buffer.on_leave = None
        if hasattr(self.buffer, "close"):
            self.buffer.close()


def _build(cfg: Mapping[str, Any], exp_name: str, name: str, tb_logger: Any) -> Any:
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
