"""The replay buffer of a learner that keeps its samples itself."""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.data import Columns
from ding.utils import durations
from ding.utils.errors import ChunkError, DataError
from ding.worker.coordinator.chunk_meta import parse_meta
from ding.worker.learner.comm.learn_report import LearnReport
from ding.worker.messages import ChunkReport
from ding.worker.replay_buffer.base_buffer import IBuffer, create_buffer
from ding.worker.seams import Samples

#: Names of chunks that are remembered, so that one that comes twice is taken in once.
_MOST_KNOWN = 1 << 16


class OwnBuffer:
    """Takes in the chunks that the coordinator names, and draws batches of their samples.

    Safe for threads: one takes in, another one trains.

    Args:
        cfg: Config of the replay buffer; ``type`` names any registered one.
        exp_name: The run's folder.
        name: Of the buffer in logs and tags.
        tb_logger: Where the buffer writes scalars.
    """

    def __init__(self, cfg: Mapping[str, Any], exp_name: str, name: str, tb_logger: Any) -> None:
        own = EasyDict(cfg)
        own.setdefault("type", "advanced")
        self._buffer: IBuffer = create_buffer(
            own, tb_logger=tb_logger, exp_name=exp_name, instance_name=name
        )
        self._changed = threading.Condition()  # guards what follows, and the buffer
        self._named: deque[tuple[ChunkReport, int]] = deque()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._taken_in: list[str] = []
        self._pushes = 0

    # ------------------------------------------------------------------ in

    def name_chunks(self, chunks: Sequence[ChunkReport], envstep: int) -> None:
        """The coordinator names chunks; `take_in` reads them."""
        with self._changed:
            self._named.extend((chunk, envstep) for chunk in chunks)

    def take_in(self, read: Callable[[str], Samples], report: LearnReport) -> None:
        """Read the chunks that were named, and keep their samples.

        Args:
            read: Reads a chunk by its name.
            report: Told of chunks that cannot be read.
        """
        while True:
            with self._changed:
                if not self._named:
                    return
                chunk, envstep = self._named.popleft()
                if chunk.data_id in self._known:
                    self._taken_in.append(chunk.data_id)
                    continue
            try:
                samples = _with_facts(read(chunk.data_id), chunk)
                with self._changed:
                    self._buffer.push(samples, envstep)
            except DataError as error:
                cause = error.cause if isinstance(error, ChunkError) else str(error)
                report.add_bad_chunks([(chunk.data_id, cause)])
            else:
                self._note_taken_in(chunk.data_id)

    def _note_taken_in(self, name: str) -> None:
        with self._changed:
            self._pushes += 1
            self._taken_in.append(name)
            self._known[name] = None
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
            self._changed.notify_all()

    def take_received(self) -> tuple[str, ...]:
        """Names of chunks that were taken in since the last call: nobody needs them any more."""
        with self._changed:
            taken, self._taken_in = self._taken_in, []
        return tuple(taken)

    @property
    def rows(self) -> int:
        """Samples that it holds."""
        return int(self._buffer.count())

    # ------------------------------------------------------------------ out

    def sample(self, batch_size: int, train_iter: int) -> tuple[Samples | None, int]:
        """A batch, if the buffer gives one now, and what `wait_for_more` needs if it does not."""
        with self._changed:
            return self._buffer.sample(batch_size, train_iter), self._pushes

    def wait_for_more(self, seen: int) -> None:
        """Wait for samples that were not there when `sample` returned ``seen``; a while at most."""
        with self._changed:
            self._changed.wait_for(lambda: self._pushes != seen, durations.POLL)

    def update(self, priority_info: Mapping[str, Any]) -> None:
        """Give sampled items the priorities that learning gave them."""
        with self._changed:
            self._buffer.update(dict(priority_info))

    def close(self) -> None:
        """Close the buffer, if it can be."""
        if hasattr(self._buffer, "close"):
            self._buffer.close()


def _with_facts(samples: Samples, chunk: ChunkReport) -> Samples:
    """Samples with what the collector said of them beside, unless they say it themselves."""
    _, rows, facts = parse_meta({"data_id": chunk.data_id, **chunk.meta})
    if len(samples) != rows:
        raise DataError(f"{chunk.data_id} has {len(samples)} samples, expected {rows}")
    facts.pop("row")
    columns = samples.columns_or_none() if isinstance(samples, Columns) else None
    if columns is not None:
        new = {name: np.asarray(fact) for name, fact in facts.items() if name not in columns}
        return Columns({**columns, **new}) if new else samples
    told = {name: fact.tolist() for name, fact in facts.items()}
    return [
        {**{name: values[i] for name, values in told.items()}, **row}
        for i, row in enumerate(samples)
    ]
