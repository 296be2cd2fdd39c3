"""Copies the next batches to a device while the current one is used."""

import threading
from collections import deque
from collections.abc import Iterable

import torch

from ding.torch_utils.data_helper import map_leaves
from ding.utils import durations
from ding.utils.types import Tree


class CudaFetcher:
    """Iterator that moves batches of another iterator to a device in advance, in a thread.

    Args:
        data_source: Yields nested tensors. ``__next__`` raises its errors.
        device: Target device; copies to a CUDA device run in a separate stream.
        queue_size: Maximum number of batches that are moved in advance.
        sleep: Ignored; accepted for existing callers.
    """

    def __init__(
        self, data_source: Iterable[Tree], device: str, queue_size: int = 4, sleep: float = 0.1
    ) -> None:
        self._source = data_source
        self._device = torch.device(device)
        self._room = queue_size
        self._ready: deque[Tree] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._ended = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Start fetching."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._fetch, name="cuda_fetcher", daemon=True)
            self._thread.start()

    def close(self, timeout: float = durations.FETCHER_CLOSE) -> None:
        """Stop fetching and join the thread, for at most ``timeout`` seconds."""
        with self._changed:
            self._stopped = True
            self._ready.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)

    def __iter__(self) -> "CudaFetcher":
        return self

    def __next__(self) -> Tree:
        if self._thread is None:
            raise RuntimeError("the fetcher is not running: call run() first")
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._ended or self._stopped)
            if self._ready:
                self._changed.notify_all()
                return self._ready.popleft()
        if self._error is not None:
            raise self._error
        raise StopIteration

    def _fetch(self) -> None:
        try:
            stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
            for batch in self._source:
                with torch.cuda.stream(stream):
                    moved = map_leaves(self._move, batch)
                if stream is not None:
                    stream.synchronize()
                with self._changed:
                    self._changed.wait_for(lambda: len(self._ready) < self._room or self._stopped)
                    if self._stopped:
                        return
                    self._ready.append(moved)
                    self._changed.notify_all()
        except BaseException as error:  # the edge of the thread: __next__ raises it
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _move(self, leaf: object) -> object:
        return leaf.to(self._device, non_blocking=True) if isinstance(leaf, torch.Tensor) else leaf
