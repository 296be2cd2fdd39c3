"""Reads the batches that a coordinator names."""

from collections.abc import Callable, Mapping
from typing import Any

from ding.data.chunks import ChunkCache
from ding.utils.errors import ChunkError, DataError, DingError
from ding.worker.learner.comm.learn_report import LearnReport
from ding.worker.messages import Json, WireBatch
from ding.worker.seams import Samples

#: Bytes of samples that are kept in memory; as many as all data files may have by default.
CACHE_BYTES = 2 << 30
#: One batch for a learner that knows of no chunks: what is known of each sample.
Rows = tuple[Mapping[str, Json], ...]
_OF_BUFFER = ("replay_buffer_idx", "replay_unique_id", "IS", "priority")


class BatchReader:
    """The data of one task.

    Args:
        read: Reads a chunk by its name; `ChunkError` for one that cannot be read.
        read_sample: Reads one sample, by what is known of it.
        report: Told of what cannot be read.
        capacity: Samples to keep: as many as the replay buffer holds.
        max_bytes: Keep fewer if they would take more memory.
        repeats: Whether a batch that cannot be read is replaced by the one before: other processes
            make an update for each that they get.
    """

    def __init__(
        self,
        read: Callable[[str], Samples],
        read_sample: Callable[[Mapping[str, Json]], object],
        report: LearnReport,
        capacity: int,
        max_bytes: int | None = None,
        repeats: bool = False,
    ) -> None:
        self.read_sample, self._report, self._repeats = read_sample, report, repeats
        self._cache = ChunkCache(read, capacity, max_bytes or CACHE_BYTES)
        self._last: Samples | None = None

    def batch(self, named: WireBatch | Rows) -> Samples | None:
        """Read a batch; ``None`` if nothing of it can be read and another one will do.

        Raises:
            DataError: The message is damaged.
            ChunkError: Nothing of it can be read, and each process needs one.
        """
        return self._of_chunks(named) if isinstance(named, WireBatch) else self._of_rows(named)

    def _of_chunks(self, named: WireBatch) -> Samples | None:
        try:
            self._last = self._cache.batch(named.wire)
        except ChunkError as error:
            self._report.warn(f"a whole batch cannot be read: {error}")
            if not self._repeats:
                return None
            if self._last is None:
                raise
        finally:
            self._report.add_bad_chunks(self._cache.take_bad())
        return self._last

    def _of_rows(self, rows: Rows) -> Samples | None:
        """Samples that cannot be read are replaced by others of the batch."""
        batch: list[Any] = []
        bad: list[tuple[str, str]] = []
        for meta in rows:
            try:
                batch.append(self.read_sample(meta))
            except (DingError, ImportError) as error:
                cause = error.cause if isinstance(error, ChunkError) else str(error)
                bad.append((str(meta.get("data_id")), cause))
        self._report.add_bad_chunks(bad)
        return [batch[i % len(batch)] for i in range(len(rows))] if batch else None


def sample_of(rows: list[Any], meta: Mapping[str, Any]) -> Any:
    """The sample that a stored trajectory, or single sample, holds.

    Args:
        meta: ``unroll_split_begin`` and ``unroll_len`` name the part of a trajectory;
            ``replay_buffer_idx``, ``replay_unique_id``, ``IS`` and ``priority`` become entries of
            the sample.

    Raises:
        DataError: The part lies outside.
    """
    sample: Any = rows[0] if len(rows) == 1 else rows
    begin = meta.get("unroll_split_begin")
    if begin is not None and isinstance(sample, list):
        end = begin + meta.get("unroll_len", len(sample) - begin)
        if not 0 <= begin <= end <= len(sample):
            text = f"{meta.get('data_id')} has {len(sample)} steps, expected {begin} to {end}"
            raise DataError(text)
        sample = sample[begin:end]
    if isinstance(sample, dict):
        sample.update({name: meta[name] for name in _OF_BUFFER if name in meta})
    return sample
