"""Saving a model beside its training."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import torch

from ding.data.storage_loader import FileStorage, FileStorageLoader


class FileModelLoader:
    """Writes states of a model in a thread of its own, so that training goes on meanwhile.

    Args:
        model: The model.
        dirname: Folder of the files.
        ttl: Seconds that a file stays at least; it goes when a later one is written.
    """

    def __init__(self, model: torch.nn.Module, dirname: str, ttl: float = 20) -> None:
        self._model = model
        self._files = FileStorageLoader(dirname, ttl, worker_num=1)
        self._last: Future[None] | None = None

    def start(self) -> None:
        """Start the thread; again does nothing."""
        self._files.start()

    def shutdown(self, timeout: float | None = None) -> None:
        """Write what is under way, waiting not longer than so many seconds, and end the thread.

        Raises:
            Exception: What the last file could not be written for, or the callback raised.
        """
        last, self._last = self._last, None
        try:
            if last is not None:
                last.result(timeout)
        finally:
            self._files.shutdown()

    def save(self, callback: Callable[[FileStorage], None]) -> None:
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
        if self._last is not None and self._last.done():
            last, self._last = self._last, None
            last.result()
        self._last = self._files.submit(lambda: callback(self._files.save(state)))

    def load(self, storage: FileStorage) -> dict[str, Any]:
        """The state of a model, as it was saved."""
        return storage.load()
