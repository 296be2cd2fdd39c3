"""One process at a time for a run's folder."""

import contextlib
import errno
import fcntl
import json
import os
import platform
import weakref

from .errors import ConfigError

LOCK_FILE = ".run_lock"

# A forked child must not keep the lock of a parent that has died.
_held: "weakref.WeakSet[RunLock]" = weakref.WeakSet()


class RunLock:
    """Refuses a second process that would write into the same run's folder.

    The system gives the lock up when its holder ends, however that happens: one that was left is
    simply taken over. On file systems without locks nothing is refused.

    Args:
        exp_name: The run's folder, which exists.
    """

    def __init__(self, exp_name: str) -> None:
        self._exp = exp_name
        self._path = os.path.join(exp_name, LOCK_FILE)
        self._descriptor = -1

    def __enter__(self) -> "RunLock":
        """
        Raises:
            ConfigError: Another process has it; names that. Or the folder cannot be written.
        """
        self._descriptor = self._take()
        _held.add(self)
        os.pwrite(
            self._descriptor,
            json.dumps({"pid": os.getpid(), "host": platform.node()}).encode(),
            0,
        )
        return self

    def __exit__(self, *exc: object) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.remove(self._path)
        self._forget()

    def __del__(self) -> None:
        self._forget()

    def _take(self) -> int:
        while True:
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise ConfigError(
                    f"cannot write into the run's folder {os.path.abspath(self._exp)!r}: "
                    f"{error.strerror or error}; choose another exp_name"
                ) from error
            if not _lock(descriptor):
                holder = os.read(descriptor, 4096)
                os.close(descriptor)
                raise ConfigError(
                    f"the run in {self._exp!r} is going on: {_named(holder)} has its folder; end "
                    "that first, or choose another exp_name"
                )
            if _is_at(self._path, descriptor):
                os.ftruncate(descriptor, 0)
                return descriptor
            os.close(descriptor)  # the one before has just removed it

    def _forget(self) -> None:
        """Give up the descriptor; in a forked child, without what its parent holds."""
        _held.discard(self)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _lock(descriptor: int) -> bool:
    """Whether it is ours now, or the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def is_locked(exp_name: str) -> bool:
    """Whether a process runs in the folder."""
    try:
        descriptor = os.open(os.path.join(exp_name, LOCK_FILE), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def _named(holder: bytes) -> str:
    try:
        facts = json.loads(holder)
        return f"process {facts['pid']} on {facts['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _drop_in_child() -> None:
    for lock in list(_held):
        lock._forget()


os.register_at_fork(after_in_child=_drop_in_child)
