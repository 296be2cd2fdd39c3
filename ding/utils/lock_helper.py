"""Locks between threads, processes and users of one file."""

import fcntl
import multiprocessing
import os
import threading
import time
from enum import Enum, unique

from . import durations


@unique
class LockContextType(Enum):
    """Whether a lock is for threads or for processes."""

    THREAD_LOCK = 1
    PROCESS_LOCK = 2


class LockContext:
    """A re-entrant lock for ``with`` blocks, between threads or between forked processes."""

    def __init__(self, lock_type: LockContextType = LockContextType.THREAD_LOCK) -> None:
        self.lock_type = lock_type
        self.lock = (
            threading.RLock()
            if lock_type is LockContextType.THREAD_LOCK
            else multiprocessing.RLock()
        )

    def acquire(self) -> None:
        """Acquire the lock; waits until it is free."""
        self.lock.acquire()

    def release(self) -> None:
        """Release the lock."""
        self.lock.release()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *args: object, **kwargs: object) -> None:
        self.lock.release()


class FcntlContext:
    """An advisory lock on a file, for ``with`` blocks; the file is created if it is missing.

    The system releases the lock when the process that holds it dies. Not re-entrant.

    Args:
        shared: Whether several readers may hold the lock.
        timeout: Seconds to wait for the lock.
    """

    def __init__(
        self, lock_path: str, shared: bool = False, timeout: float = durations.LOCK_TIMEOUT
    ) -> None:
        self.lock_path = lock_path
        self._operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._timeout = timeout
        self._handle: int | None = None

    def __enter__(self) -> None:
        if self._handle is not None:
            raise RuntimeError(f"this object already holds {self.lock_path}; it is not re-entrant")
        os.makedirs(os.path.dirname(os.path.abspath(self.lock_path)), exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self.lock_path, flags, 0o666)
        try:
            self._wait(handle)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    def __exit__(self, *args: object, **kwargs: object) -> None:
        if self._handle is not None:
            os.close(self._handle)  # also releases the lock
            self._handle = None

    def _wait(self, handle: int) -> None:
        # flock has no timeout, so retry until the deadline, with growing pauses.
        deadline = time.monotonic() + self._timeout
        pause, bell = 0.001, threading.Event()
        while True:
            try:
                return fcntl.flock(handle, self._operation | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError(
                        f"{self.lock_path} was held by someone else for {self._timeout:g} s; "
                        f"end that process, or remove the file if it is stuck"
                    ) from None
            bell.wait(pause)
            pause = min(2 * pause, 0.05)


def get_file_lock(name: str, op: str) -> FcntlContext:
    """The lock ``<name>.lock`` of a file: shared for ``op='read'``, exclusive for ``'write'``.

    Raises:
        ValueError: ``op`` has another value.
    """
    if op not in ("read", "write"):
        raise ValueError(f"op must be 'read' or 'write', got {op!r}")
    return FcntlContext(f"{name}.lock", shared=op == "read")


#: Alias for old scripts.
get_rw_file_lock = get_file_lock
