"""Files of a run that another process writes: what this one writes into the run's folder is held in
memory, and goes to that process with the next answer.

The functions of `ding.utils.file_helper` and `ding.utils.log_file` look here first, so that what
logs and saves need not know.
"""

import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass

#: The folder that this process sends files of.
_sent: "SentFiles | None" = None


@dataclass(frozen=True)
class FileChange:
    """A change of a file of the run's folder."""

    path: str  # in the folder
    content: bytes | None  # None: the file was removed
    appends: bool = False  # to what the file has; else it is all of it


class SentFiles:
    """What a process has written into a folder that another process keeps. Safe for threads.

    Args:
        folder: It need not exist here.
    """

    def __init__(self, folder: str) -> None:
        # Callers name files either way.
        self._roots = {os.path.abspath(folder), os.path.realpath(folder)}
        self._lock = threading.Lock()
        self._appended: dict[str, list[bytes]] = {}
        self._replaced: dict[str, bytes | None] = {}
        self._given: Mapping[str, bytes] = {}
        self._written: dict[str, None] = {}  # names of files, oldest first
        self._output: tuple[str, int] | None = None
        self._output_sent = 0

    def name_of(self, path: str) -> str | None:
        """The path of a file in the folder; ``None`` if it is not one of them."""
        path = os.path.abspath(path)
        for root in self._roots:
            if path.startswith(root + os.sep):
                return path[len(root) + 1 :]
        return None

    def give(self, files: Mapping[str, bytes]) -> None:
        """Files of the folder that are going to be read, in place of those given before."""
        self._given = files

    def read(self, name: str) -> bytes | None:
        """The content of a file that was given."""
        return self._given.get(name)

    def append(self, name: str, data: bytes) -> None:
        with self._lock:
            self._appended.setdefault(name, []).append(data)

    def replace(self, name: str, content: bytes) -> None:
        with self._lock:
            self._appended.pop(name, None)
            self._replaced[name] = content
            self._written.pop(name, None)
            # At the end again: `keep_ckpt` removes files in this order.
            self._written[name] = None

    def remove(self, name: str) -> None:
        with self._lock:
            self._appended.pop(name, None)
            self._replaced[name] = None
            self._written.pop(name, None)

    def written_in(self, folder: str) -> list[str]:
        """Names of the files that were written into one of its folders, oldest first."""
        with self._lock:
            split = [os.path.split(name) for name in self._written]
        return [name for parent, name in split if parent == folder]

    def output(self, name: str) -> int:
        """A descriptor whose output, also that of child processes, is appended to a file.

        It leads to a file without a name, not to a pipe, which could fill up.
        """
        prefix = "-".join(name.split(os.sep)[-2:-1]) + "-output-"
        handle, path = tempfile.mkstemp(prefix=prefix)
        os.unlink(path)
        self._output = name, handle
        self.append(name, b"")  # a worker that prints nothing has the file as well
        return handle

    def take(self) -> tuple[FileChange, ...]:
        """What has changed since the last call."""
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
    """Have what this process writes into a folder sent from now on."""
    global _sent
    _sent = SentFiles(folder)
    return _sent


def sent_files() -> SentFiles | None:
    """What this process sends."""
    return _sent


def sent_file(path: str | os.PathLike[str]) -> tuple[SentFiles, str] | None:
    """Where a file goes that this process does not write itself, and its name there."""
    name = None if _sent is None else _sent.name_of(os.fspath(path))
    return None if _sent is None or name is None else (_sent, name)
