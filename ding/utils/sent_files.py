"""Sends files to another process, which writes them: changes that this process makes in the run's
folder are kept in memory, and sent with its next answer.

The functions of `ding.utils.file_helper` and `ding.utils.log_file` check `sent_file` first, so that
components can log and save as usual.
"""

import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass

#: The folder whose files this process sends.
_sent: "SentFiles | None" = None


@dataclass(frozen=True)
class FileChange:
    """A change of a file in the run's folder."""

    path: str  # relative to the folder
    content: bytes | None  # None: the file was removed
    appends: bool = False  # whether the content is appended, or replaces the file


class SentFiles:
    """Changes of files in a folder that another process writes. Thread-safe.

    Args:
        folder: The folder; need not exist on this host.
    """

    def __init__(self, folder: str) -> None:
        # Callers use both forms of the path.
        self._roots = {os.path.abspath(folder), os.path.realpath(folder)}
        self._lock = threading.Lock()
        self._appended: dict[str, list[bytes]] = {}
        self._replaced: dict[str, bytes | None] = {}
        self._given: Mapping[str, bytes] = {}
        self._written: dict[str, None] = {}  # names of files, oldest first
        self._output: tuple[str, int] | None = None
        self._output_sent = 0

    def name_of(self, path: str) -> str | None:
        """The path relative to the folder; ``None`` if the file is not in it."""
        path = os.path.abspath(path)
        for root in self._roots:
            if path.startswith(root + os.sep):
                return path[len(root) + 1 :]
        return None

    def give(self, files: Mapping[str, bytes]) -> None:
        """Set the files of the folder that this process can read; replaces earlier ones."""
        self._given = files

    def read(self, name: str) -> bytes | None:
        """The content of a file that was passed to `give`."""
        return self._given.get(name)

    def append(self, name: str, data: bytes) -> None:
        with self._lock:
            self._appended.setdefault(name, []).append(data)

    def replace(self, name: str, content: bytes) -> None:
        with self._lock:
            self._appended.pop(name, None)
            self._replaced[name] = content
            self._written.pop(name, None)
            # Move it to the end: `keep_ckpt` removes files in this order.
            self._written[name] = None

    def remove(self, name: str) -> None:
        with self._lock:
            self._appended.pop(name, None)
            self._replaced[name] = None
            self._written.pop(name, None)

    def written_in(self, folder: str) -> list[str]:
        """Names of the files that were written into a subfolder, oldest first."""
        with self._lock:
            split = [os.path.split(name) for name in self._written]
        return [name for parent, name in split if parent == folder]

    def output(self, name: str) -> int:
        """A descriptor; data written to it, also by child processes, is appended to a file.

        It refers to an unlinked file, not to a pipe, which could fill up.
        """
        prefix = "-".join(name.split(os.sep)[-2:-1]) + "-output-"
        handle, path = tempfile.mkstemp(prefix=prefix)
        os.unlink(path)
        self._output = name, handle
        self.append(name, b"")  # creates the file even if the worker prints nothing
        return handle

    def take(self) -> tuple[FileChange, ...]:
        """The changes since the last call."""
        with self._lock:
            replaced, self._replaced = self._replaced, {}
            appended, self._appended = self._appended, {}
            if self._output is not None:
                name, handle = self._output
                size = os.fstat(handle).st_size - self._output_sent
                news = os.pread(handle, size, self._output_sent) if size > 0 else b""
                self._output_sent += len(news)
                if news:
                    appended.setdefault(name, []).append(news)
        return (
            *(FileChange(name, content) for name, content in replaced.items()),
            *(FileChange(name, b"".join(parts), True) for name, parts in appended.items()),
        )


def send_files_of(folder: str) -> SentFiles:
    """From now on, send the files that this process writes into a folder."""
    global _sent
    _sent = SentFiles(folder)
    return _sent


def sent_files() -> SentFiles | None:
    """The files that this process sends; ``None`` if it writes them itself."""
    return _sent


def sent_file(path: str | os.PathLike[str]) -> tuple[SentFiles, str] | None:
    """For a file that is sent, its `SentFiles` and its name in it; otherwise ``None``."""
    name = None if _sent is None else _sent.name_of(os.fspath(path))
    return None if _sent is None or name is None else (_sent, name)
