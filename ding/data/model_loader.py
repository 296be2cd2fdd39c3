"""Saving a model while it is trained."""

from collections.abc import Callable
from concurrent.futures import Future

import torch

from ding.data.storage_loader import FileStorage, FileStorageLoader
from ding.torch_utils.data_helper import cpu_copy, map_leaves
from ding.utils.types import State


class FileModelLoader(FileStorageLoader):
    """Writes states of a model in a separate thread, so that training continues meanwhile.

    Args:
        model: The model.
        dirname: Folder of the files.
        ttl: Seconds that a file stays at least; it goes when a later one is written.
    """

    def __init__(self, model: torch.nn.Module, dirname: str, ttl: float = 20) -> None:
        super().__init__(dirname, ttl, worker_num=1)
        self._model = model
        self._last: Future[None] | None = None

    def shutdown(self, timeout: float | None = None) -> None:
        """Write the state that is under way, for at most `timeout` seconds, and end the thread.

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
        """Write the model's state as it is now; does not wait.

        Args:
            callback: Called in the thread with the place of the file, when it is written.

        Raises:
            RuntimeError: The loader was not started.
            Exception: From writing the state before, or from its callback.
        """
        # On the CPU, and a copy: the model is trained on while it is being written.
        state = map_leaves(cpu_copy, dict(self._model.state_dict()))
        if self._last is not None and self._last.done():
            last, self._last = self._last, None
            last.result()
        self._last = self.submit(lambda: callback(super(FileModelLoader, self).save(state)))

    def load(self, storage: FileStorage) -> State:  # type: ignore[override]
        """The state of a model, as it was saved."""
        return storage.load()
