"""Log files: append with buffering, flush at exit, and redirect the output of a process."""

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
    """Buffers text or bytes in memory and appends them to a file every few seconds.

    The file is open only during a flush. Therefore it need not be closed, several writers can
    append to one file (each flush is one write of whole lines), and a forked child has no
    descriptor. A failed write (full disk, removed folder) is reported once as a ``RuntimeWarning``
    and the file is left unchanged; logging must not end training.

    Args:
        path: File to append to; the first flush creates its folder.
        header: Written first if the file is new.
        lines: Whether the file contains lines of text. If so, an incomplete last line (of a killed
            process) is ended before the next line.
        flush_seconds: Maximum time that data waits in memory; 0 writes each piece immediately.
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
        """Append a piece, which the next flush writes to disk."""
        self._pending.append(data.encode() if isinstance(data, str) else data)
        hold(self)  # after the append: another thread's flush before it would release the file
        if time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        """Write the buffered data."""
        with self._lock:
            self._due = time.monotonic() + self._flush_seconds
            release(self)
            # One by one: other threads append without the lock, which is held during disk writes.
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
                os.ftruncate(fd, size)  # a partial record would make the rest unreadable
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
    """An object that buffers data."""

    def flush(self) -> object:
        """Write the buffered data."""


_held: set[Flushable] = set()


def hold(target: Flushable) -> None:
    """Keep an object with pending data alive, to flush it at the end of the process."""
    _held.add(target)


def release(target: Flushable) -> None:
    """Stop keeping an object alive that has no pending data."""
    _held.discard(target)


def drop_pending() -> None:
    """Drop pending data in a forked process: the parent writes it."""
    _held.clear()


@atexit.register
def flush_all() -> None:
    """Write all pending data; called automatically at the end of a process."""
    # Files come last, because writers pass their rows to files.
    for is_file in (False, True):
        # An atomic copy: other threads may continue to write.
        for target in [t for t in list(_held) if isinstance(t, AppendFile) is is_file]:
            target.flush()


def leave_process(status: int) -> NoReturn:
    """End this process immediately, whatever its threads do; pending data is written."""
    flush_all()  # `os._exit` runs no exit handlers
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def redirect_output(path: str) -> None:
    """Redirect the output of this process, including that of C code, to a file.

    Raises:
        OSError: The file cannot be opened, or is a link.
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
    # The previous streams (of a notebook, of a test) may not write to the descriptors 1 and 2.
    sys.stdout, sys.stderr = (
        open(fd, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        for fd in (1, 2)
    )
