"""Passes objects between processes in files."""

import os
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from ding.utils.file_helper import read_file, remove_file, save_file
from ding.utils.types import Tree

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class FileStorage:
    """Reference to an object in a file, cheap to send to another process."""

    path: str

    def save(self, data: object) -> None:
        """Write the object; the file appears once it is complete."""
        save_file(self.path, data)

    def load(self) -> Tree:
        """Read the object.

        Raises:
            CheckpointNotFoundError: The file was removed because it is too old.
        """
        return read_file(self.path)


class FileStorageLoader:
    """Saves objects in files, and loads files of other processes in threads.

    Args:
        dirname: Folder of the files; created if it is missing.
        ttl: Minimum lifetime of a file in seconds; later saves remove files that are older.
        worker_num: Number of threads that load files.
    """

    def __init__(self, dirname: str, ttl: float = 20, worker_num: int = 3) -> None:
        os.makedirs(dirname, exist_ok=True)
        self._dirname, self._ttl, self._worker_num = dirname, ttl, worker_num
        self._files: list[tuple[float, str]] = []
        self._lock = threading.RLock()
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Start the threads; does nothing if they are running."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._worker_num, type(self).__name__)

    def shutdown(self, timeout: float | None = None) -> None:
        """End the threads; queued work is dropped."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def save(self, obj: object) -> FileStorage:
        """Write plain data; returns the reference to send to the process that loads it."""
        storage = FileStorage(os.path.join(self._dirname, uuid.uuid4().hex))
        storage.save(obj)
        now = time.monotonic()
        with self._lock:
            self._files.append((now, storage.path))
            while self._files[0][0] < now - self._ttl:
                remove_file(self._files.pop(0)[1])
        return storage

    def load(self, storage: FileStorage, callback: Callable[[Tree], None]) -> Future[None]:
        """Read an object in a thread, and call ``callback`` with it.

        Returns:
            A future whose ``result()`` raises the errors of reading and of the callback.

        Raises:
            RuntimeError: The loader was not started.
        """
        return self.submit(lambda: callback(storage.load()))

    def submit(self, work: Callable[[], _Result]) -> Future[_Result]:
        """Run ``work`` in one of the threads; errors as for `load`."""
        with self._lock:
            if self._pool is None:
                raise RuntimeError(f"the {type(self).__name__} was not started: call start() first")
            return self._pool.submit(work)
