"""Reads what a coordinator names, and hands it to training."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from ding.data.chunks import ChunkCache, SharedFolder, read_chunk
from ding.utils import get_data_decompressor, read_file
from ding.utils.errors import ChunkError, DataError, DingError
from ding.worker.error_report import ErrorReport
from ding.worker.learner.comm.training_task import TrainingTask

#: Bytes of samples that are kept in memory; as many as all data files may have by default.
CACHE_BYTES = 2 << 30
_OF_BUFFER = ("replay_buffer_idx", "replay_unique_id", "IS", "priority")


class BatchSource:
    """The data of one task.

    Args:
        folder: Where the data files are.
        capacity: Samples to keep: as many as the replay buffer holds.
        max_bytes: Keep fewer if they would take more memory.
        load: Reads a file of one sample, like `load_sample`.
        repeats: Whether a batch that cannot be read is replaced by the one before: other processes
            make an update for each that they get.
    """

    def __init__(
        self,
        folder: SharedFolder,
        capacity: int,
        max_bytes: int | None,
        load: Callable[[str, dict[str, Any], Callable], Any],
        repeats: bool,
    ) -> None:
        self._folder, self._load, self._repeats = folder, load, repeats
        self._cache = ChunkCache(folder, capacity, max_bytes or CACHE_BYTES)
        self._last: Any = None

    def feed_batches(self, run: TrainingTask, wires: Iterable[dict[str, Any]]) -> None:
        """Hand batches to training, of the form of `ChunkCache.batch`.

        Raises:
            DataError: One of them is damaged.
        """
        try:
            for wire in wires:
                try:
                    self._last = batch = self._cache.batch(wire)
                except ChunkError as error:
                    run.report.warn(f"a whole batch cannot be read: {error}")
                    self._make_up_for(run, error)
                else:
                    run.feed.put(batch)
        finally:
            run.report.add_bad_chunks(self._cache.take_bad())

    def _make_up_for(self, run: TrainingTask, error: ChunkError) -> None:
        if not self._repeats:
            run.feed.skip()  # the feed asks for another one
        elif self._last is None:
            run.fail(ErrorReport.of(error))
        else:
            run.feed.put(self._last)

    def feed_samples(self, run: TrainingTask, metadata: list[Any]) -> int | None:
        """Hand a batch of samples, each in a file of its own, to training.

        Samples that cannot be read are replaced by others of the batch.

        Returns:
            Which number the batch has; ``None`` if none of its samples can be read.
        """
        batch, bad = [], []
        for meta in metadata:
            meta = meta if isinstance(meta, dict) else {"data_id": meta}
            name = str(meta.get("data_id"))
            try:
                decompressor = get_data_decompressor(meta.get("compressor", "none"))
                batch.append(self._load(self._folder.file(name), meta, decompressor))
            except (DingError, ImportError) as error:
                bad.append((name, error.cause if isinstance(error, ChunkError) else str(error)))
        run.report.add_bad_chunks(bad)
        if not batch:
            return None
        return run.feed.put([batch[i % len(batch)] for i in range(len(metadata))])


def load_sample(path: str, meta: dict[str, Any], decompressor: Callable) -> Any:
    """Read a file that holds one sample, or a trajectory of which one part is the sample.

    Args:
        meta: ``unroll_split_begin`` and ``unroll_len`` name the part; ``replay_buffer_idx``,
            ``replay_unique_id``, ``IS`` and ``priority`` become entries of the sample;
            ``compressor`` other than ``'none'``: the file holds bytes.
        decompressor: Undoes what the collector did to the content.

    Raises:
        CheckpointError: The file is missing, damaged, or is no plain data.
        DataError: Likewise; or the part lies outside of the file.
    """
    if meta.get("compressor", "none") == "none":
        folder, name = os.path.split(path)
        rows = decompressor(list(read_chunk(SharedFolder(folder), name)))
        sample = rows[0] if len(rows) == 1 else rows
    else:
        sample = decompressor(read_file(path))
    begin = meta.get("unroll_split_begin")
    if begin is not None and isinstance(sample, list):
        end = begin + meta.get("unroll_len", len(sample) - begin)
        if not 0 <= begin <= end <= len(sample):
            raise DataError(f"{path} has {len(sample)} steps, expected {begin} to {end}")
        sample = sample[begin:end]
    if isinstance(sample, dict):
        sample.update({name: meta[name] for name in _OF_BUFFER if name in meta})
    return sample
