"""Saving a model beside its training."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from ding.data.storage import AgingFolder, FileModelStorage


class FileModelLoader:
    """Writes states of a model in a thread of its own, so that training goes on meanwhile.

    Args:
        model: The model.
        dirname: Folder of the files.
        ttl: Seconds that a file stays at least; it goes when a later one is written.
    """

    def __init__(self, model: torch.nn.Module, dirname: str, ttl: float = 20) -> None:
        self._model = model
        self._folder = AgingFolder(dirname, ttl)
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._last: Future[None] | None = None

    def start(self) -> None:
        """Start the thread; again does nothing."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "model-loader")

    def shutdown(self, timeout: float | None = None) -> None:
        """Write what is under way, waiting not longer than so many seconds, and end the thread.

        Raises:
            Exception: What the last file could not be written for, or the callback raised.
        """
        with self._lock:
            pool, self._pool = self._pool, None
            last, self._last = self._last, None
        if pool is None:
            return
        try:
            if last is not None:
                last.result(timeout)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def save(self, callback: Callable[[FileModelStorage], None]) -> None:
        """Write the model's state as it is now; does not wait.

        Args:
            callback: Called with where it is, in the thread, once it is there.

        Raises:
            RuntimeError: The loader was not started.
            Exception: What the state before could not be written for.
        """
        # On the CPU, and a copy: the model is trained on while it is being written.
        state = {
            name: value.detach().to("cpu", copy=True) if isinstance(value, torch.Tensor) else value
            for name, value in self._model.state_dict().items()
        }
        with self._lock:
            if self._pool is None:
                raise RuntimeError("the model loader was not started: call start() before save()")
            if self._last is not None and self._last.done():
                last, self._last = self._last, None
                last.result()
            self._last = self._pool.submit(self._write, state, callback)

    def _write(self, state: dict[str, Any], callback: Callable[[FileModelStorage], None]) -> None:
        storage = FileModelStorage(self._folder.new_path("model"))
        storage.save(state)
        self._folder.note(storage.path)
        callback(storage)

    def load(self, storage: FileModelStorage) -> dict[str, Any]:
        """The state of a model, as it was saved."""
        return storage.load()
