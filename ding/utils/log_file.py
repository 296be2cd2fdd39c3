"""Files that a run appends to, and small files that it replaces."""

import atexit
import contextlib
import os
import sys
import threading
import time
import warnings
from collections import deque
from typing import NoReturn, Protocol

from . import durations
from .disk_writes import writing
from .file_helper import open_to_write
from .sent_files import sent_file


class AppendFile:
    """Collects text or bytes in memory and appends them to a file every few seconds.

    The file is opened only for the moment of a flush. So nothing has to be closed, several writers
    may append to one file (each flush is one write of whole lines), and a forked child holds no
    descriptor. A failed write (a full disk, a folder that is gone) is reported once as a
    ``RuntimeWarning`` and the file is left as it was before; logging must not end a training.

    Args:
        path: File to append to; folders are made at the first flush.
        header: Written first if the file is new.
        lines: Whether the file holds lines of text, so that a torn last line (of a process that
            was killed) has to be ended before the next one.
        flush_seconds: How long data may wait in memory; 0 writes each piece at once.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        header: str = "",
        lines: bool = True,
        flush_seconds: float = durations.LOG_FLUSH,
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self._header = header.encode()
        self._lines = lines
        self._flush_seconds = flush_seconds
        self._pending: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._due = time.monotonic() + flush_seconds
        self._tail_checked = False
        self._warned = False

    def write(self, data: str | bytes) -> None:
        """Append one piece; it reaches the disk at the next flush."""
        self._pending.append(data.encode() if isinstance(data, str) else data)
        hold(self)  # after it: a flush by another thread in between would release it
        if time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        """Write what has been collected."""
        with self._lock:
            self._due = time.monotonic() + self._flush_seconds
            release(self)
            # One by one: other threads append to it without a lock, which waits for the disk.
            pending = [self._pending.popleft() for _ in range(len(self._pending))]
            if not pending:
                return
            try:
                with writing(self.path):
                    self._append(b"".join(pending))
            except OSError as error:
                self._warn(error)

    def _append(self, data: bytes) -> None:
        sent = sent_file(self.path)
        if sent is not None:
            sent[0].append(sent[1], data if self._tail_checked else self._header + data)
            self._tail_checked = True
            return
        flags = os.O_RDWR | os.O_APPEND
        try:
            fd = open_to_write(self.path, flags)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            fd = open_to_write(self.path, flags)
        try:
            size = os.fstat(fd).st_size
            if size == 0:
                data = self._header + data
            elif self._lines and not self._tail_checked and os.pread(fd, 1, size - 1) != b"\n":
                data = b"\n" + data
            left = memoryview(data)
            try:
                while left:
                    left = left[os.write(fd, left) :]
            except OSError:
                os.ftruncate(fd, size)  # half a record would make the rest unreadable
                raise
            self._tail_checked = True
        finally:
            os.close(fd)

    def _warn(self, error: OSError) -> None:
        if self._warned:
            return
        self._warned = True
        warnings.warn(
            f"cannot write the log file {self.path}: {error.strerror or error}. What it would "
            "hold is lost until writing works again; the run continues.",
            RuntimeWarning,
            stacklevel=4,
        )


class Flushable(Protocol):
    """Something that holds data back for a while."""

    def flush(self) -> object:
        """Hand it on."""


_held: set[Flushable] = set()


def hold(target: Flushable) -> None:
    """Keep an object that has something pending alive, to flush it at the end of the process."""
    _held.add(target)


def release(target: Flushable) -> None:
    """It has nothing pending any more."""
    _held.discard(target)


def drop_pending() -> None:
    """Forget what is pending, in a forked process: the parent writes it."""
    _held.clear()


@atexit.register
def flush_all() -> None:
    """Write everything that is pending anywhere; at the end of a process, it happens by itself."""
    # Writers hand their rows to files, so files have to come after them.
    for is_file in (False, True):
        # A copy, made in one go: other threads may go on to write.
        for target in [t for t in list(_held) if isinstance(t, AppendFile) is is_file]:
            target.flush()


def leave_process(status: int) -> NoReturn:
    """End this process at once, whatever its threads do; what is pending is written."""
    flush_all()  # no exit handlers run
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def redirect_output(path: str) -> None:
    """Have what this process prints go to a file, also what C code prints.

    Raises:
        OSError: It cannot be opened, or is a link.
    """
    sent = sent_file(path)
    if sent is not None:
        fd = sent[0].output(sent[1])
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = open_to_write(path, os.O_WRONLY | os.O_APPEND)
    for target in (1, 2):
        os.dup2(fd, target)
    if sent is None:
        os.close(fd)
    # Whatever stood there (a notebook's, a test's) does not lead to the file.
    sys.stdout, sys.stderr = (
        open(fd, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        for fd in (1, 2)
    )
