"""Reads batches of a coordinator that names single samples."""

from collections.abc import Callable, Mapping
from typing import Any

from ding.utils.errors import ChunkError, DataError, DingError
from ding.worker.messages import Json
from ding.worker.seams import Samples

#: One batch: what is known of each sample.
Rows = tuple[Mapping[str, Json], ...]
_OF_BUFFER = ("replay_buffer_idx", "replay_unique_id", "IS", "priority")


def read_batch(
    rows: Rows, read_sample: Callable[[Mapping[str, Json]], object]
) -> tuple[Samples | None, list[tuple[str, str]]]:
    """Read a batch; samples that cannot be read are replaced by others of the batch.

    Returns:
        The batch, ``None`` if nothing of it can be read; names and causes of what cannot.
    """
    batch: list[Any] = []
    bad: list[tuple[str, str]] = []
    for meta in rows:
        try:
            batch.append(read_sample(meta))
        except (DingError, ImportError) as error:
            cause = error.cause if isinstance(error, ChunkError) else str(error)
            bad.append((str(meta.get("data_id")), cause))
    return ([batch[i % len(batch)] for i in range(len(rows))] if batch else None), bad


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
