"""Reads batches of a coordinator that names single samples."""

from collections.abc import Callable, Mapping
from typing import Any

from ding.utils.errors import ChunkError, DataError, DingError
from ding.worker.learner.comm.learn_report import LearnReport
from ding.worker.messages import Json
from ding.worker.seams import Samples

#: One batch: what is known of each sample.
Rows = tuple[Mapping[str, Json], ...]
_OF_BUFFER = ("replay_buffer_idx", "replay_unique_id", "IS", "priority")


class BatchReader:
    """The data of one task.

    Args:
        read_sample: Reads one sample, by what is known of it.
        report: Told of what cannot be read.
    """

    def __init__(
        self, read_sample: Callable[[Mapping[str, Json]], object], report: LearnReport
    ) -> None:
        self.read_sample, self._report = read_sample, report

    def batch(self, rows: Rows) -> Samples | None:
        """Read a batch; ``None`` if nothing of it can be read.

        Samples that cannot be read are replaced by others of the batch.
        """
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
