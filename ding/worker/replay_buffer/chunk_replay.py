"""A replay buffer that is filled with chunks, where its samples are drawn."""

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

#: Look up which chunks were evicted after this share of the rows has been evicted.
_LOOK_AFTER = 1 / 32
#: Reads the samples of a chunk, as many as its metadata say.
ReadChunk = Callable[[ChunkReport], Samples]


@dataclass(slots=True)
class _Held:
    """A chunk in the buffer."""

    name: str
    first: int  # number of its first item, counted over all pushes
    end: int  # behind its last one
    rows: np.ndarray | None  # rows of the chunk that its items are; ``None``: all of them


@dataclass(frozen=True)
class ReplayNews:
    """What has changed since the last time."""

    received: tuple[str, ...]  # chunks that were taken in, or that were in the buffer already
    left: tuple[str, ...]  # chunks none of whose samples is in the buffer any more
    bad: tuple[tuple[str, str], ...]  # chunks that cannot be read: name and cause
    rows: int  # samples in the buffer now
    starved: bool  # whether the buffer gave no batch when it was last asked


class ChunkReplay:
    """Takes in the chunks that a coordinator names, and draws batches of their samples.

    It knows which chunks its samples are of, so that they can be kept as long as they are needed:
    a buffer that is made again is given the same chunks, and `load_state_dict` before that restores
    which of their samples were left, their priorities and how often they were used.

    Safe for threads: one takes in, another one draws.

    Args:
        cfg: Config of the replay buffer; ``type`` names any registered one. A class that derives
            from no built-in one is assumed to drop its oldest items first.
        exp_name: The run's folder.
        name: The buffer's name in logs and tags.
        tb_logger: Where the buffer writes scalars.

    Raises:
        ConfigError: A buffer that samples something other than single rows.
    """

    def __init__(self, cfg: Mapping[str, Any], exp_name: str, name: str, tb_logger: object) -> None:
        own = buffer_config(cfg)
        self.buffer: IBuffer = create_buffer(
            own, tb_logger=tb_logger, exp_name=exp_name, instance_name=name
        )
        self._changed = threading.Condition()  # guards what follows, and the buffer
        self._named: deque[tuple[ChunkReport, int]] = deque()
        self._held: dict[str, _Held] = {}  # the oldest first
        #: By chunk: the rows that were there in a state, and perhaps their priorities and uses.
        self._saved: dict[str, dict[str, np.ndarray]] = {}
        self._pushed = 0  # items, over all pushes
        self._looked_at = 0  # items that had left when it was last looked which
        self._received: list[str] = []
        self._left: list[str] = []
        self._bad: list[tuple[str, str]] = []
        self._starved = False
        #: Rewrites the rewards of what is taken in.
        self.rewards: ChunkRewards | None = None

    # ------------------------------------------------------------------ in

    def name_chunks(self, chunks: Sequence[ChunkReport], envstep: int) -> None:
        """The coordinator names chunks; `take_in` reads them."""
        with self._changed:
            self._named.extend((chunk, envstep) for chunk in chunks)

    def take_in(self, read: ReadChunk, until: Callable[[], bool] = lambda: False) -> None:
        """Read the chunks that were named, and keep their samples.

        Args:
            until: Whether to leave the rest for the next call.
        """
        while True:
            with self._changed:
                if not self._named or until():
                    return
                chunk, envstep = self._named.popleft()
                # A coordinator that did not get the answer names its chunks again.
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
        """Push those rows of a chunk that may be drawn."""
        # Other rings would take priorities for one more entry of their items.
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
            n = n if ring is None else ring.push_count - before  # it may refuse them
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
        """A batch, if the buffer gives one now, and what `wait_for_more` needs if it does not."""
        with self._changed:
            batch = self.buffer.sample(batch_size, train_iter)
            self._starved = batch is None
            return batch, self._pushed

    def wait_for_more(self, seen: int) -> None:
        """Wait for samples that were not there when `sample` returned ``seen``; a while at most."""
        with self._changed:
            self._changed.wait_for(lambda: self._pushed != seen, durations.POLL)

    def update(self, priority_info: Mapping[str, Any]) -> None:
        """Give sampled items the priorities that learning gave them."""
        with self._changed:
            self.buffer.update(dict(priority_info))

    # ------------------------------------------------------------------ what became of it

    def take_news(self) -> ReplayNews:
        """What has changed since the last call."""
        with self._changed:
            rows = int(self.buffer.count())
            left = self._pushed - rows
            # To look compares the numbers of all rows with all chunks, which is too slow for each
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
        """Columns of the stored items, by age: ``number``; perhaps ``priority`` and ``use``."""
        if isinstance(self.buffer, RingBuffer):
            return self.buffer.item_facts()
        return {"number": np.arange(self._pushed - int(self.buffer.count()), self._pushed)}

    @property
    def rows(self) -> int:
        """Samples that it holds."""
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
        """Restore what that buffer knew of each sample, when its chunk is named again."""
        ends = np.cumsum(state["counts"])
        with self._changed:
            for i, chunk in enumerate(state["chunks"]):
                part = slice(int(ends[i] - state["counts"][i]), int(ends[i]))
                self._saved[chunk] = {n: state[n][part] for n in ("rows", "priority", "use")}
            if state["beta"] is not None and hasattr(self.buffer, "beta"):
                self.buffer.beta = state["beta"]

    def close(self) -> None:
        """Close the buffer, if it can be."""
        if hasattr(self.buffer, "close"):
            self.buffer.close()


def buffer_config(cfg: Mapping[str, Any]) -> EasyDict:
    """The config of a buffer that chunks can be put into.

    Raises:
        ConfigError: A buffer that samples something other than single rows.
    """
    own = EasyDict(cfg)
    own.setdefault("type", "advanced")
    own["enable_track_used_data"] = False  # the coordinator looks after the chunks
    if "thruput_controller" in own:
        # The coordinator's rate limiter keeps to these bounds (`sample_ratio`): a buffer that
        # turned samples away as well would lose them.
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
    """The samples of a chunk that its metadata name.

    Raises:
        DataError: They are not in the chunk.
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
    """Samples with what the collector said of them, unless they say it themselves."""
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
    """Samples with columns that they have not.

    Frames that rows share stay shared, if they can: the buffer stores each of them once.
    """
    known = samples.raw_columns() or {}
    return samples.with_columns(
        **{name: np.asarray(facts[name]) for name in sorted(facts.keys() - known.keys())}
    )
