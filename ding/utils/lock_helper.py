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
    """What a lock keeps apart."""

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
        """Take the lock; waits until it is free."""
        self.lock.acquire()

    def release(self) -> None:
        """Let others have it."""
        self.lock.release()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *args: object, **kwargs: object) -> None:
        self.lock.release()


class FcntlContext:
    """An advisory lock on a file, for ``with`` blocks; the file is made if it is missing.

    The system releases it when its holder dies. Not re-entrant.

    Args:
        shared: Let other shared holders in (readers).
        timeout: Seconds to wait for it.
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
            os.close(self._handle)  # which also unlocks
            self._handle = None

    def _wait(self, handle: int) -> None:
        # flock has no timed wait, so ask again, ever more rarely, until the deadline.
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
    """The lock of file `name`, next to it: shared for ``op='read'``, exclusive for ``'write'``.

    Raises:
        ValueError: Another ``op``.
    """
    if op not in ("read", "write"):
        raise ValueError(f"op must be 'read' or 'write', got {op!r}")
    return FcntlContext(f"{name}.lock", shared=op == "read")


#: The name that readers-writer users import.
get_rw_file_lock = get_file_lock
