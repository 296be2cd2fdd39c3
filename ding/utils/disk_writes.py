"""Keeps track of system calls that write to disk, to report a disk that does not respond.

A write to a file system that no longer responds does not return and cannot be cancelled. It can
only be reported with the file's name, and not be waited for.
"""

import contextlib
import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ding.utils import durations

#: Maximum number of bytes per system call, and between two syncs, so that no call takes long.
_PIECE = 16 << 20
_SYNC_EVERY = 64 << 20


@dataclass(frozen=True)
class DiskWrite:
    """A system call that has not returned."""

    path: str
    since: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since

    def __str__(self) -> str:
        seconds = self.seconds
        since = time.strftime("%H:%M:%S", time.localtime(time.time() - seconds))
        return (
            f"writing {self.path} has made no progress for {seconds:.0f} s, since {since}: the "
            "disk does not answer"
        )


_under_way: dict[int, DiskWrite] = {}


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Mark that this thread is in system calls that write a file."""
    thread = threading.get_ident()
    _under_way[thread] = DiskWrite(path)
    try:
        yield
    finally:
        _under_way.pop(thread, None)


def stalled_write(thread: int | None = None) -> DiskWrite | None:
    """The longest running write of a thread, or of all threads, if it has stalled."""
    writes = [write for ident, write in list(_under_way.items()) if thread in (None, ident)]
    slowest = max(writes, key=lambda write: write.seconds, default=None)
    return slowest if slowest and slowest.seconds >= durations.DISK_STALL else None


@contextlib.contextmanager
def reporting_stall(report: Callable[[str], object]) -> Iterator[None]:
    """If a write of this thread stalls, report it once, from another thread.

    Args:
        report: Called with a line of text; it may block as well.
    """
    thread = threading.get_ident()
    over = threading.Event()

    def look() -> None:
        while not over.wait(durations.DISK_STALL):
            if (write := stalled_write(thread)) is not None:
                report(str(write))
                return

    watcher = threading.Thread(target=look, name="disk-stall", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()


class NotedFile(io.FileIO):
    """A new file that is written in pieces, none of which takes long on a disk that responds.

    Args:
        handle: File descriptor.
        path: Name of the file, for reports.
        durable: Whether to sync the file at intervals, so that the final sync is short.
    """

    def __init__(self, handle: int, path: str, durable: bool) -> None:
        super().__init__(handle, "wb")
        self._path, self._durable = path, durable
        self._unsynced = 0

    def write(self, data: object) -> int:
        piece = memoryview(data).cast("B")[:_PIECE]  # type: ignore[arg-type]
        with writing(self._path):
            count = super().write(piece) or 0
        self._unsynced += count
        if self._durable and self._unsynced >= _SYNC_EVERY:
            self._unsynced = 0
            with writing(self._path):
                os.fsync(self.fileno())
        return count
