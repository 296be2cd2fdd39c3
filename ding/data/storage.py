"""Objects in files, known by their paths, that another process may load."""

import os
import time
import uuid
from dataclasses import dataclass
from typing import Any

from ding.utils.file_helper import read_file, remove_file, save_file


@dataclass(frozen=True)
class FileStorage:
    """An object in a file; cheap to send."""

    path: str

    def save(self, data: Any) -> None:
        """Write it; the file is there at once and whole."""
        save_file(self.path, data)

    def load(self) -> Any:
        """Read it.

        Raises:
            CheckpointNotFoundError: It was removed, as too old.
        """
        return read_file(self.path)


class FileModelStorage(FileStorage):
    """The state of a model in a file."""


class AgingFolder:
    """A folder whose own files are removed when they are too old.

    Args:
        dirname: Made if it is missing.
        ttl: Seconds that a file stays.
    """

    def __init__(self, dirname: str, ttl: float) -> None:
        os.makedirs(dirname, exist_ok=True)
        self._dirname, self._ttl = dirname, ttl
        self._files: list[tuple[float, str]] = []

    def new_path(self, prefix: str) -> str:
        """A path that nobody has used."""
        return os.path.join(self._dirname, f"{prefix}_{uuid.uuid4().hex}")

    def note(self, path: str) -> None:
        """A file was written; the time of those that are too old has come."""
        now = time.monotonic()
        self._files.append((now, path))
        while self._files[0][0] < now - self._ttl:
            remove_file(self._files.pop(0)[1])
