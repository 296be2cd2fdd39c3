"""A replay buffer in the learner's process that is filled with chunks."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.data.arrays import State
from ding.data.buffer.prioritised_buffer import PrioritisedBuffer
from ding.data.buffer.ring_buffer import RingBuffer, taken
from ding.data.columns import Columns
from ding.utils import durations
from ding.utils.errors import ChunkError, ConfigError, DataError
from ding.worker.coordinator.chunk_table import parse_meta
from ding.worker.messages import ChunkReport
from ding.worker.replay_buffer.advanced_buffer import AdvancedReplayBuffer
from ding.worker.replay_buffer.base_buffer import IBuffer, create_buffer, get_buffer_cls
from ding.worker.replay_buffer.chunk_rewards import ChunkRewards
from ding.worker.replay_buffer.episode_buffer import EpisodeReplayBuffer
from ding.worker.replay_buffer.naive_buffer import SequenceReplayBuffer
from ding.worker.seams import Samples

#: Check which chunks were evicted after this fraction of the rows was evicted.
_LOOK_AFTER = 1 / 32
#: Reads a chunk's samples; raises an error if their number differs from the metadata.
ReadChunk = Callable[[ChunkReport], Samples]


@dataclass(slots=True)
class _Held:
    """A chunk in the buffer."""

    name: str
    first: int  # number of its first item, counted over all pushes
    end: int  # one more than the number of its last item
    rows: np.ndarray | None  # rows of the chunk that are in the buffer; ``None``: all


@dataclass(frozen=True)
class ReplayNews:
    """Changes since the last call."""

    received: tuple[str, ...]  # chunks that were read, or were already in the buffer
    left: tuple[str, ...]  # chunks without any sample left in the buffer
    bad: tuple[tuple[str, str], ...]  # chunks that cannot be read: name and cause
    rows: int  # samples in the buffer now
    starved: bool  # whether the last call of `sample` returned no batch


class ChunkReplay:
    """Reads the chunks that a coordinator names, and draws batches of their samples.

    It tracks the chunk of each sample, so that chunks are kept as long as they are needed: a
    restarted buffer reads the same chunks again. Call `load_state_dict` before, to restore which of
    their samples were left, their priorities and how often they were used.

    Thread-safe: one thread reads chunks, another one draws.

    Args:
        cfg: Config of the replay buffer, of any registered ``type``. A class that does not derive
            from a built-in one is assumed to evict its oldest items first.
        exp_name: The run's folder.
        name: The buffer's name in logs and tags.
        tb_logger: Writer for the buffer's scalars.

    Raises:
        ConfigError: The buffer samples something other than single rows.
    """

    def __init__(self, cfg: Mapping[str, Any], exp_name: str, name: str, tb_logger: object) -> None:
        own = buffer_config(cfg)
        self.buffer: IBuffer = create_buffer(
            own, tb_logger=tb_logger, exp_name=exp_name, instance_name=name
        )
        self._changed = threading.Condition()  # guards the attributes below and the buffer
        self._named: deque[tuple[ChunkReport, int]] = deque()
        self._held: dict[str, _Held] = {}  # oldest first
        #: By chunk: the rows in a loaded state, and their priorities and uses if known.
        self._saved: dict[str, dict[str, np.ndarray]] = {}
        self._pushed = 0  # items, over all pushes
        self._looked_at = 0  # evicted items at the last check for evicted chunks
        self._received: list[str] = []
        self._left: list[str] = []
        self._bad: list[tuple[str, str]] = []
        self._starved = False
        #: Rewrites the rewards of chunks when they are read.
        self.rewards: ChunkRewards | None = None

    # ------------------------------------------------------------------ in

    def name_chunks(self, chunks: Sequence[ChunkReport], envstep: int) -> None:
        """Queue chunks that the coordinator has named; `take_in` reads them."""
        with self._changed:
            self._named.extend((chunk, envstep) for chunk in chunks)

    def take_in(self, read: ReadChunk, until: Callable[[], bool] = lambda: False) -> None:
        """Read the queued chunks, and store their samples.

        Args:
            until: Returns whether to leave the remaining chunks for the next call.
        """
        while True:
            with self._changed:
                if not self._named or until():
                    return
                chunk, envstep = self._named.popleft()
                # A coordinator that did not receive the answer names its chunks again.
                if chunk.data_id in self._held:
                    self._received.append(chunk.data_id)
                    continue
            try:
                # Without the lock: the training thread draws while a chunk is read.
                samples = read(chunk)
                with self._changed:
                    self._push(chunk, samples, envstep)
            except DataError as error:
                cause = error.cause if isinstance(error, ChunkError) else str(error)
                with self._changed:
                    self._bad.append((chunk.data_id, cause))

    def _push(self, chunk: ChunkReport, samples: Samples, envstep: int) -> None:
        """Push the rows of a chunk that may be drawn."""
        # Other ring buffers would store priorities as an ordinary entry of the items.
        is_other = not isinstance(self.buffer, RingBuffer)
        keeps_priority = is_other or isinstance(self.buffer, AdvancedReplayBuffer)
        samples = with_facts(samples, chunk, keeps_priority)
        saved = self._saved.pop(chunk.data_id, None)
        if self.rewards is not None:
            samples = self.rewards.taken_in(samples, again=saved is not None)
        if saved is not None:
            samples = taken(samples, saved["rows"][saved["rows"] < len(samples)])
        ring = self.buffer if isinstance(self.buffer, RingBuffer) else None
        first, before, n = self._pushed, 0 if ring is None else ring.push_count, len(samples)
        if n:
            self.buffer.push(samples, envstep)
            n = n if ring is None else ring.push_count - before  # the buffer may reject them
        self._pushed += n
        self._received.append(chunk.data_id)
        if n:
            rows = None if saved is None else saved["rows"]
            self._held[chunk.data_id] = _Held(chunk.data_id, first, first + n, rows)
        else:
            self._left.append(chunk.data_id)
        if saved is not None and len(saved["use"]) == n and isinstance(ring, PrioritisedBuffer):
            ring.set_newest(saved["priority"], saved["use"])
        self._starved = False
        self._changed.notify_all()

    # ------------------------------------------------------------------ out

    def sample(self, batch_size: int, train_iter: int) -> tuple[Samples | None, int]:
        """A batch, or ``None`` if the buffer yields none; and the argument of `wait_for_more`."""
        with self._changed:
            batch = self.buffer.sample(batch_size, train_iter)
            self._starved = batch is None
            return batch, self._pushed

    def wait_for_more(self, seen: int) -> None:
        """Wait, for a limited time, for samples added after `sample` returned ``seen``."""
        with self._changed:
            self._changed.wait_for(lambda: self._pushed != seen, durations.POLL)

    def update(self, priority_info: Mapping[str, Any]) -> None:
        """Set the priorities of sampled items that the learner computed."""
        with self._changed:
            self.buffer.update(dict(priority_info))

    # ------------------------------------------------------------------ reports

    def take_news(self) -> ReplayNews:
        """The changes since the last call."""
        with self._changed:
            rows = int(self.buffer.count())
            left = self._pushed - rows
            # The check compares the numbers of all rows with all chunks: too slow for every
            # answer.
            if left - self._looked_at > _LOOK_AFTER * rows:
                self._looked_at = left
                self._note_left()
            received, self._received = tuple(self._received), []
            gone, self._left = tuple(self._left), []
            bad, self._bad = tuple(self._bad), []
            return ReplayNews(received, gone, bad, rows, self._starved)

    def _note_left(self) -> None:
        numbers, held = self._facts()["number"], list(self._held.values())
        starts = np.searchsorted(numbers, np.array([one.first for one in held], np.int64))
        ends = np.searchsorted(numbers, np.array([one.end for one in held], np.int64))
        for one, is_gone in zip(held, (starts == ends).tolist()):
            if is_gone:
                del self._held[one.name]
                self._left.append(one.name)

    def _facts(self) -> Mapping[str, np.ndarray]:
        """Columns of the stored items, by age: ``number``; ``priority`` and ``use`` if known."""
        if isinstance(self.buffer, RingBuffer):
            return self.buffer.item_facts()
        return {"number": np.arange(self._pushed - int(self.buffer.count()), self._pushed)}

    @property
    def rows(self) -> int:
        """Number of samples in the buffer."""
        with self._changed:
            return int(self.buffer.count())

    # ------------------------------------------------------------------ state

    def state_dict(self) -> State:
        """The stored rows of each chunk, with priorities and uses, but without the samples."""
        with self._changed:
            facts = self._facts()
            numbers = facts["number"]
            held = [*self._held.values()]
            rows = []
            for one in held:
                start, end = np.searchsorted(numbers, (one.first, one.end))
                index = numbers[start:end] - one.first
                rows.append(index if one.rows is None else one.rows[index])
            return {
                "chunks": [one.name for one in held],
                "counts": np.array([len(of_one) for of_one in rows], np.int64),
                "rows": np.concatenate([np.zeros(0, np.int64), *rows]),
                **{name: facts.get(name, np.zeros(0)) for name in ("priority", "use")},
                "beta": getattr(self.buffer, "beta", None),
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state: each sample's data is applied when its chunk is named again."""
        ends = np.cumsum(state["counts"])
        with self._changed:
            for i, chunk in enumerate(state["chunks"]):
                part = slice(int(ends[i] - state["counts"][i]), int(ends[i]))
                self._saved[chunk] = {n: state[n][part] for n in ("rows", "priority", "use")}
            if state["beta"] is not None and hasattr(self.buffer, "beta"):
                self.buffer.beta = state["beta"]

    def close(self) -> None:
        """Close the buffer, if it has a `close` method."""
        if hasattr(self.buffer, "close"):
            self.buffer.close()


def buffer_config(cfg: Mapping[str, Any]) -> EasyDict:
    """The config of a buffer for chunks.

    Raises:
        ConfigError: The buffer samples something other than single rows.
    """
    own = EasyDict(cfg)
    own.setdefault("type", "advanced")
    own["enable_track_used_data"] = False  # the coordinator tracks the chunks
    if "thruput_controller" in own:
        # The coordinator's rate limiter enforces these bounds (`sample_ratio`): samples that the
        # buffer rejected as well would be lost.
        controller = dict(own.thruput_controller or {})
        controller.pop("push_sample_rate_limit", None)
        own.thruput_controller = controller
    kind = get_buffer_cls(own)
    if isinstance(kind, type) and issubclass(kind, SequenceReplayBuffer | EpisodeReplayBuffer):
        raise ConfigError(
            f"policy.other.replay_buffer.type={own.type!r} samples runs of items, parallel mode "
            f"needs single samples: use 'advanced', 'naive' or 'deque', and unroll_len for runs"
        )
    return own


def read_rows(read: Callable[[str], Samples], chunk: ChunkReport) -> Samples:
    """The samples of a chunk that its metadata select.

    Raises:
        DataError: The chunk does not contain them.
    """
    name, rows, facts = parse_meta({"data_id": chunk.data_id, **chunk.meta})
    samples = read(name)
    if "sample_num" not in chunk.meta and "unroll_split_begin" in chunk.meta:
        if facts["row"][0] >= len(samples):
            raise DataError(f"{name} has {len(samples)} samples, expected row {facts['row'][0]}")
        return taken(samples, facts["row"])
    if len(samples) != rows:
        raise DataError(f"{name} has {len(samples)} samples, expected {rows}")
    return samples


def with_facts(samples: Samples, chunk: ChunkReport, keeps_priority: bool = True) -> Samples:
    """Add the collector's metadata to samples that do not contain them."""
    _, _, facts = parse_meta({"data_id": chunk.data_id, **chunk.meta})
    facts.pop("row")
    if not keeps_priority:
        facts.pop("priority", None)
    if isinstance(samples, Columns) and samples.is_columnar:
        return _with_columns(samples, facts)
    lists = {name: fact.tolist() for name, fact in facts.items()}
    return [
        {**{name: values[i] for name, values in lists.items()}, **row}
        for i, row in enumerate(samples)
    ]


def _with_columns(samples: Columns, facts: Mapping[str, np.ndarray]) -> Columns:
    """Add columns that the samples do not have.

    Frames that rows share stay shared if possible: the buffer stores each of them once.
    """
    known = samples.raw_columns() or {}
    return samples.with_columns(
        **{name: np.asarray(facts[name]) for name in sorted(facts.keys() - known.keys())}
    )
