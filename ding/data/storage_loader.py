"""Handing objects from one process to another by files."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ding.data.storage import AgingFolder, FileStorage


class FileStorageLoader:
    """Saves objects as files, and loads those of others in threads.

    Args:
        dirname: Folder of the files.
        ttl: Seconds that a file stays at least; it goes when a later one is written.
        worker_num: How many files are read at a time.
    """

    def __init__(self, dirname: str, ttl: float = 20, worker_num: int = 3) -> None:
        self._folder = AgingFolder(dirname, ttl)
        self._worker_num = worker_num
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Start the threads; again does nothing."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._worker_num, "storage-loader")

    def shutdown(self, timeout: float | None = None) -> None:
        """End the threads; files that nobody has begun to read are not read any more."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def save(self, obj: Any) -> FileStorage:
        """Write plain data; where it is, to be sent to who loads it."""
        with self._lock:
            storage = FileStorage(self._folder.new_path("data"))
            storage.save(obj)
            self._folder.note(storage.path)
        return storage

    def load(self, storage: FileStorage, callback: Callable[[Any], None]) -> Future[None]:
        """Read in a thread, and call back with the object.

        Returns:
            What the callback returned, or what could not be read: ``result()`` raises it.

        Raises:
            RuntimeError: The loader was not started.
        """
        with self._lock:
            if self._pool is None:
                raise RuntimeError("the storage loader was not started: call start() before load()")
            return self._pool.submit(lambda: callback(storage.load()))
