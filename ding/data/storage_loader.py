"""Handing objects from one process to another by files."""

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
    """An object in a file; cheap to send."""

    path: str

    def save(self, data: object) -> None:
        """Write it; the file appears at once and whole."""
        save_file(self.path, data)

    def load(self) -> Tree:
        """Read it.

        Raises:
            CheckpointNotFoundError: It was removed, as too old.
        """
        return read_file(self.path)


class FileStorageLoader:
    """Saves objects as files, and loads those of others in threads.

    Args:
        dirname: Folder of the files; made if it is missing.
        ttl: Seconds that a file stays at least; it goes when a later one is written.
        worker_num: Number of files that are read at a time.
    """

    def __init__(self, dirname: str, ttl: float = 20, worker_num: int = 3) -> None:
        os.makedirs(dirname, exist_ok=True)
        self._dirname, self._ttl, self._worker_num = dirname, ttl, worker_num
        self._files: list[tuple[float, str]] = []
        self._lock = threading.RLock()
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Start the threads; again does nothing."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._worker_num, type(self).__name__)

    def shutdown(self, timeout: float | None = None) -> None:
        """End the threads; work that none of them has begun is dropped."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def save(self, obj: object) -> FileStorage:
        """Write plain data; returns its place, to be sent to the process that loads it."""
        storage = FileStorage(os.path.join(self._dirname, uuid.uuid4().hex))
        storage.save(obj)
        now = time.monotonic()
        with self._lock:
            self._files.append((now, storage.path))
            while self._files[0][0] < now - self._ttl:
                remove_file(self._files.pop(0)[1])
        return storage

    def load(self, storage: FileStorage, callback: Callable[[Tree], None]) -> Future[None]:
        """Read in a thread, and call back with the object.

        Returns:
            Its ``result()`` raises what reading or the callback has raised.

        Raises:
            RuntimeError: The loader was not started.
        """
        return self.submit(lambda: callback(storage.load()))

    def submit(self, work: Callable[[], _Result]) -> Future[_Result]:
        """Do something in one of the threads; errors as for `load`."""
        with self._lock:
            if self._pool is None:
                raise RuntimeError(f"the {type(self).__name__} was not started: call start() first")
            return self._pool.submit(work)
