"""Handing objects from one process to another by files."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from ding.data.storage import FileLoader, FileStorage


class FileStorageLoader(FileLoader):
    """Saves objects as files, and loads those of others in threads.

    Args:
        dirname: Folder of the files.
        ttl: Seconds that a file stays at least; it goes when a later one is written.
        worker_num: How many files are read at a time.
    """

    def __init__(self, dirname: str, ttl: float = 20, worker_num: int = 3) -> None:
        super().__init__(dirname, ttl, worker_num)

    def save(self, obj: Any) -> FileStorage:
        """Write plain data; where it is, to be sent to who loads it."""
        return self._write(obj)

    def load(self, storage: FileStorage, callback: Callable[[Any], None]) -> Future[None]:
        """Read in a thread, and call back with the object.

        Returns:
            What the callback returned, or what could not be read: ``result()`` raises it.

        Raises:
            RuntimeError: The loader was not started.
        """
        return self._submit(lambda: callback(storage.load()))
