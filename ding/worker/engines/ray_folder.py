"""The run folder of workers on other hosts: what they write there comes to the driver's."""

import contextlib
import glob
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, NamedTuple

from ding.utils import durations
from ding.utils.file_helper import (
    TEMPORARY_NAME,
    open_to_write,
    read_facts,
    write_facts,
    write_pieces,
)
from ding.utils.processes import process_identity, still_runs
from ding.worker.engines.ray_messages import FileChange
from ding.worker.engines.shared_folder import file_inside

#: Bytes of one file in one message; the rest of it comes with the next.
_MOST_BYTES = 64 << 20
#: Bytes at the end of what was sent by which a file that has grown is known.
_TAIL = 64


class WorkerFolder:
    """A folder for one worker, and what has changed in it. Safe for threads.

    Args:
        path: It is made; what was in it, of a worker that was killed, is removed.
    """

    def __init__(self, path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_facts(_owner_of(path), process_identity())  # before there is anything to be owned
        os.makedirs(path, mode=0o700)
        self.path = path
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}
        self._due = 0.0

    def put(self, files: Mapping[str, bytes]) -> None:
        """Lay down files of the driver's; they do not count as changed."""
        with self._lock:
            for name, content in files.items():
                path = file_inside(self.path, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write_pieces(path, [content])
                found = os.stat(path)
                end = content[-_TAIL:]
                self._seen[name] = _Seen(found.st_ino, found.st_mtime_ns, found.st_size, end)

    def changes(self, at_once: bool = False) -> list[FileChange]:
        """What has changed since the last call; nothing if that was a moment ago.

        Args:
            at_once: Look however short a time ago that was.
        """
        with self._lock:
            now = time.monotonic()
            if now < self._due and not at_once:
                return []
            self._due = now + durations.RAY_FOLDER_LOOK
            names = set(self._names())
            gone = [FileChange(name, None) for name in self._seen if name not in names]
            for change in gone:
                del self._seen[change.path]
            changed = (self._change(name) for name in sorted(names))
            return [*gone, *(change for change in changed if change is not None)]

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.remove(_owner_of(self.path))
            os.rmdir(os.path.dirname(self.path))  # the last worker of the run on this host

    def _names(self) -> Iterator[str]:
        for folder, _, files in os.walk(self.path):
            for file in files:
                if not TEMPORARY_NAME.fullmatch(file):
                    yield os.path.relpath(os.path.join(folder, file), self.path)

    def _change(self, name: str) -> FileChange | None:
        seen = self._seen.get(name, _Seen())
        try:
            with open(os.path.join(self.path, name), "rb") as stream:
                found = os.fstat(stream.fileno())
                if (found.st_ino, found.st_mtime_ns, found.st_size) == seen[:3]:
                    return None
                start = seen.size if seen.has_grown(stream, found) else 0
                stream.seek(start)
                content = stream.read(_MOST_BYTES)
        except OSError:
            return None  # it was replaced or removed meanwhile
        end = ((seen.end if start else b"") + content)[-_TAIL:]
        self._seen[name] = _Seen(found.st_ino, found.st_mtime_ns, start + len(content), end)
        return FileChange(name, content, start)


def folder_of(run: str, worker: str = "") -> str:
    """Where workers of a run have their files, on each host."""
    return os.path.join(tempfile.gettempdir(), f"ding-{run}", worker)


def remove_orphans() -> None:
    """Remove what runs have left on this host whose driver was killed, and with it all workers."""
    for folder in glob.glob(folder_of("*")):
        owners = [read_facts(path) for path in glob.glob(os.path.join(folder, _owner_of("*")))]
        with contextlib.suppress(OSError):
            if (
                owners
                and not any(map(still_runs, owners))
                and os.stat(folder).st_uid == os.getuid()
            ):
                shutil.rmtree(folder, ignore_errors=True)


def _owner_of(path: str) -> str:
    """The file that tells whose a worker's folder is."""
    return f"{path}.owner.json"


class _Seen(NamedTuple):
    """A file as it was sent.

    Attributes:
        size: Bytes that were sent.
        end: The last of them.
    """

    inode: int = 0
    changed: int = 0
    size: int = 0
    end: bytes = b""

    def has_grown(self, stream: IO[bytes], found: os.stat_result) -> bool:
        """Whether there is more at its end, as in logs, and nothing else is new."""
        if found.st_ino != self.inode or found.st_size < self.size:
            return False
        stream.seek(self.size - len(self.end))
        return stream.read(len(self.end)) == self.end


def apply_changes(root: str, changes: Iterable[FileChange]) -> None:
    """Do in the driver's run folder what a worker has done in its own.

    Raises:
        OSError: A file cannot be written.
        DataError: A path leads out of the folder.
    """
    for change in changes:
        path = file_inside(root, change.path)
        if change.content is None:
            if os.path.isfile(path):
                os.remove(path)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if change.start and os.path.isfile(path):
            with os.fdopen(open_to_write(path, os.O_WRONLY), "wb") as stream:
                stream.seek(change.start)
                stream.write(change.content)
        else:
            write_pieces(path, [change.content])


def read_files(root: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Those of the files that are there, by their paths in the folder."""
    found = {}
    for given in paths:
        path = os.path.realpath(os.path.join(root, given))
        name = os.path.relpath(path, os.path.realpath(root))
        if not name.startswith(os.pardir) and os.path.isfile(path):
            with open(path, "rb") as stream:
                found[name] = stream.read()
    return found
