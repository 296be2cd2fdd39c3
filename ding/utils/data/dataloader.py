"""A data loader that prepares the next batches during training."""

import threading
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import torch

from ding.utils import durations
from ding.utils.data.collate_fn import default_collate
from ding.utils.errors import DataError
from ding.utils.types import Tree

#: Samples, or functions that load one sample each.
Samples: TypeAlias = Sequence[Tree]
#: Called with the batch size; returns None when there are no more samples.
Source: TypeAlias = Callable[[int], Samples | None]


class IDataLoader(ABC):
    """Interface of iterators of batches that must be closed."""

    @abstractmethod
    def __next__(self) -> Tree:
        """The next batch."""

    @abstractmethod
    def __iter__(self) -> Iterator[Tree]:
        """The loader itself."""

    @abstractmethod
    def close(self) -> None:
        """Stop loading; may be called more than once."""


class AsyncDataLoader(IDataLoader):
    """Loads batches from a source in advance, in a thread.

    Args:
        data_source: Called with ``batch_size``; returns that many samples, or that many functions
            that load one sample each, or ``None`` if there are no more samples. A dict of sources
            yields a dict of batches.
        batch_size: Samples in a batch.
        device: Device of the batches, such as ``cpu`` or ``cuda:0``.
        chunk_size: Number of samples that a worker loads at a time; by default an equal share.
        collate_fn: Makes a batch of a list of samples; by default `default_collate`.
        num_workers: Threads that load samples which are given as functions; with 0 the
            thread that calls the source loads them.
        prefetch: Maximum number of batches that are loaded in advance.
        timeout: Seconds that ``next`` waits for a batch.
    """

    def __init__(
        self,
        data_source: Source | dict[str, Source],
        batch_size: int,
        device: str,
        chunk_size: int | None = None,
        collate_fn: Callable[[Samples], Tree] | None = None,
        num_workers: int = 0,
        prefetch: int = 2,
        timeout: float = durations.LOADER_BATCH,
    ) -> None:
        self._source = data_source
        self._batch_size = batch_size
        self._device = torch.device(device)
        self._chunk_size = chunk_size or -(-batch_size // max(num_workers, 1))
        self._collate = collate_fn or default_collate
        self._prefetch = prefetch
        self._timeout = timeout
        self._ready: deque[Tree] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._end: BaseException | None = None
        self._pool = ThreadPoolExecutor(num_workers, "data-worker") if num_workers > 0 else None
        self._thread = threading.Thread(target=self._run, name="data-loader", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Tree]:
        return self

    def __next__(self) -> Tree:
        """The next batch.

        Raises:
            StopIteration: The source has no more samples, or the loader is closed.
            TimeoutError: No batch was ready within the timeout.
            Exception: Error of the source, of a loading function or of ``collate_fn``.
        """
        with self._changed:
            came = self._changed.wait_for(
                lambda: self._ready or self._end or self._closed, self._timeout
            )
            if not came:
                raise TimeoutError(
                    f"no batch came in {self._timeout:g} s; expected the data source to return: "
                    "look there for what it waits for, or give the loader a longer timeout"
                )
            if self._closed:
                raise StopIteration
            if not self._ready:
                raise self._end  # type: ignore[misc]
            batch = self._ready.popleft()
            self._changed.notify_all()
            return batch

    def close(self) -> None:
        """Stop and join the threads; a running call of the source may take a few seconds to end."""
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()
        if self._thread is threading.current_thread():
            return
        self._thread.join(durations.LOADER_CLOSE)
        if self._thread.is_alive():
            warnings.warn(
                f"the data source did not return within {durations.LOADER_CLOSE:g} s of closing "
                "its loader; its thread is left behind",
                RuntimeWarning,
                stacklevel=2,
            )
        elif self._pool is not None:
            self._pool.shutdown()

    def _run(self) -> None:
        try:
            while True:
                # No deadline: close() always ends this wait.
                with self._changed:
                    self._changed.wait_for(
                        lambda: self._closed or len(self._ready) < self._prefetch
                    )
                    if self._closed:
                        return
                if isinstance(self._source, dict):
                    batch = {name: self._load(source) for name, source in self._source.items()}
                else:
                    batch = self._load(self._source)
                with self._changed:
                    if not self._closed:
                        self._ready.append(batch)
                    self._changed.notify_all()
        except BaseException as error:
            # The edge of the thread: `next` raises the error, with its traceback.
            with self._changed:
                self._end = error
                self._changed.notify_all()

    def _load(self, source: Source) -> Tree:
        samples = source(self._batch_size)
        if samples is None:
            raise StopIteration
        # Do not index a columnar batch: access to one row would turn all of it into rows.
        if not getattr(samples, "is_columnar", False):
            if len(samples) == 0:
                raise DataError(
                    "the data source returned no samples; expected samples, or None to end"
                )
            if callable(samples[0]):
                run = map if self._pool is None else self._pool.map
                size = self._chunk_size
                chunks = [samples[i : i + size] for i in range(0, len(samples), size)]
                loaded = run(lambda chunk: [load() for load in chunk], chunks)
                samples = [sample for chunk in loaded for sample in chunk]
        return _to_device(self._collate(samples), self._device)


def _to_device(data: Tree, device: torch.device) -> Tree:
    if device.type == "cpu":
        return data
    if isinstance(data, torch.Tensor):
        return data.to(device, non_blocking=True)
    if isinstance(data, dict):
        return {key: _to_device(value, device) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        make = getattr(type(data), "_make", type(data))
        return make([_to_device(item, device) for item in data])
    return data
