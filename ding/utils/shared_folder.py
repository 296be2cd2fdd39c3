"""A folder that several processes share, and checks of untrusted file names in it."""

import os
import re
import stat
from collections.abc import Container
from contextlib import suppress

from ding.utils.errors import ConfigError, DataError
from ding.utils.file_helper import TEMPORARY_NAME, remove_file

#: Maximum length in bytes: temporary names are longer, and file systems allow 255 bytes.
_LONGEST = 200
#: Names that need no further checks.
_USUAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}").fullmatch


class SharedFolder:
    """A folder whose files are addressed by untrusted names.

    A name is ``name`` or ``folder/name``, optionally with the prefix ``./``. Names that start with
    a dot are reserved for files that are being written.

    Args:
        path: Path of the folder, which is created if it is missing.

    Raises:
        ConfigError: The folder cannot be created, or is not a folder.
    """

    def __init__(self, path: str) -> None:
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"cannot make the shared folder {path!r}: {error.strerror}; give a path that all "
                f"workers can write to (path_data, path_policy)"
            ) from error
        #: Absolute path with links resolved.
        self.path = os.path.realpath(path)

    def file(self, name: str) -> str:
        """The path of a file, which need not exist.

        Raises:
            DataError: The name is not valid in this folder; other methods raise this as well.
        """
        path = self._path(name)
        # A link could point out of the folder, now or later.
        if os.path.islink(path):
            raise DataError(f"{_shown(name)} in {self.path} is a link: only real files are read")
        return path

    def _path(self, name: str) -> str:
        name = _checked(name)
        path = f"{self.path}/{name}"
        if "/" in name and os.path.islink(os.path.dirname(path)):
            raise DataError(f"{_shown(name)} in {self.path} is behind a link: it may lead anywhere")
        return path

    def size(self, name: str) -> int | None:
        """Size of a file in bytes; None if it does not exist."""
        path = self._path(name)
        try:
            found = os.lstat(path)
        except OSError:
            return None
        return None if stat.S_ISLNK(found.st_mode) else found.st_size

    def remove(self, name: str) -> None:
        """Remove a file, if it exists.

        Raises:
            CheckpointWriteError: The file cannot be removed.
        """
        remove_file(self._path(name))

    def names(self, prefix: str = "") -> list[str]:
        """Sorted names of the finished files in this folder (not below) with this prefix."""
        return [n for n in self._entries() if n.startswith(prefix) and n[0] != "."]

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        """Remove all regular files whose full names match, and their temporary files, except those
        in `keep`; returns the names of the removed files."""
        removed = []
        for name in self._entries():
            temporary = TEMPORARY_NAME.fullmatch(name)
            if name in keep or not pattern.fullmatch(temporary[1] if temporary else name):
                continue
            with suppress(OSError):
                os.unlink(os.path.join(self.path, name))
                removed.append(name)
        return removed

    def _entries(self) -> list[str]:
        try:
            with os.scandir(self.path) as entries:
                return sorted(e.name for e in entries if e.is_file(follow_symlinks=False))
        except FileNotFoundError:
            return []


def _checked(name: str) -> str:
    """Validate a name; returns it without the prefix ``./``."""
    if not isinstance(name, str):
        raise DataError(f"a file name must be text, got {type(name).__name__}")
    if _USUAL(name):
        return name
    name = name.removeprefix("./")
    parts = name.split("/")
    if not name.isprintable() or "\\" in name or len(parts) > 2:
        raise DataError(f"file name {_shown(name)} is not a plain name, or name of folder and file")
    try:
        longest = max(len(part.encode()) for part in parts)
    except UnicodeEncodeError as error:
        raise DataError(f"file name {_shown(name)} is not valid text") from error
    if longest > _LONGEST:
        raise DataError(f"file name {_shown(name)} is longer than {_LONGEST} bytes")
    if any(not part or part[0] == "." for part in parts):
        raise DataError(
            f"file name {_shown(name)} is empty, starts with a dot or leads out of the folder"
        )
    return name


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 80 else name[:77] + "...")
