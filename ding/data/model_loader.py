"""Saves a model while training continues."""

from collections.abc import Callable
from concurrent.futures import Future

import torch

from ding.data.storage_loader import FileStorage, FileStorageLoader
from ding.torch_utils.data_helper import cpu_copy, map_leaves
from ding.utils.types import State


class FileModelLoader(FileStorageLoader):
    """Writes states of a model in a separate thread, so that training continues.

    Args:
        model: The model.
        dirname: Folder of the files.
        ttl: Minimum lifetime of a file in seconds; later saves remove files that are older.
    """

    def __init__(self, model: torch.nn.Module, dirname: str, ttl: float = 20) -> None:
        super().__init__(dirname, ttl, worker_num=1)
        self._model = model
        self._last: Future[None] | None = None

    def shutdown(self, timeout: float | None = None) -> None:
        """Wait at most `timeout` seconds for the pending write, and end the thread.

        Raises:
            Exception: From writing the last file, or from its callback.
        """
        last, self._last = self._last, None
        try:
            if last is not None:
                last.result(timeout)
        finally:
            super().shutdown()

    def save(self, callback: Callable[[FileStorage], None]) -> None:  # type: ignore[override]
        """Write the model's current state; does not wait.

        Args:
            callback: Called in the thread with the file once it is written.

        Raises:
            RuntimeError: The loader was not started.
            Exception: Error of the previous write, or of its callback.
        """
        # A copy on the CPU: training changes the model during the write.
        state = map_leaves(cpu_copy, dict(self._model.state_dict()))
        if self._last is not None and self._last.done():
            last, self._last = self._last, None
            last.result()
        self._last = self.submit(lambda: callback(super(FileModelLoader, self).save(state)))

    def load(self, storage: FileStorage) -> State:  # type: ignore[override]
        """The saved state of a model."""
        return storage.load()
