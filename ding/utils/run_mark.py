"""The file by which a run knows a folder, and the files in it, as its own."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import ConfigError
from .fact_file import read_facts, write_facts
from .process_identity import process_identity, still_runs

MARK_FILE = ".ding_run.json"
_LISTS = ("made", "buffers", "weights")


class RunMark:
    """The mark of a run in a folder that its parts share.

    It names the run, the process that watches over it, and what the files of the run are called.
    At the end of the run, only such files are removed, and the folder only if the run has made it.

    Args:
        folder: The marked folder.
        exp_name: The run's folder.
    """

    def __init__(self, folder: str, exp_name: str) -> None:
        self.folder = os.path.realpath(folder)
        self._path = os.path.join(self.folder, MARK_FILE)
        self._run = os.path.realpath(exp_name)

    def set(self, made: Iterable[str], key: str) -> None:
        """Mark the folder, until `remove`.

        Args:
            made: The folders that were made for this run: this one, if it was, and outer ones.
            key: The folder's key in the config, for errors.

        Raises:
            ConfigError: It is another run's.
            OSError: It cannot be written.
        """
        before = self._read()
        if before.get("run") not in (None, self._run):
            self._check_gone(before, key)
            before = {}  # what that run left is still there when it is resumed
        mark = {kind: before.get(kind, []) for kind in _LISTS}
        mark["made"] = sorted({*mark["made"], *made})
        self._write({"run": self._run, **process_identity(), **mark})

    def note(self, kind: str, names: Iterable[str]) -> None:
        """Add names of this run's buffers or weights; nothing if the folder is not its own.

        Raises:
            OSError: It cannot be written.
        """
        mark = self.own
        if mark is not None and not set(names) <= set(mark[kind]):
            self._write({**mark, kind: sorted({*mark[kind], *names})})

    @property
    def own(self) -> dict[str, Any] | None:
        """What the mark says: ``made``, ``buffers``, ``weights``; ``None`` if it is no mark of
        this run."""
        mark = self._read()
        return mark if mark.get("run") == self._run else None

    def remove(self) -> None:
        """Give the folder back.

        Raises:
            OSError: It cannot be removed.
        """
        os.unlink(self._path)

    def _check_gone(self, mark: Mapping[str, Any], key: str) -> None:
        runs = still_runs(mark)
        if runs is False:
            return
        where = f"process {mark.get('pid')}" + ("" if runs else f" on {mark.get('host')}")
        cure = "" if runs else f"; if that is not there any more, remove {self._path}"
        raise ConfigError(
            f"{key}: the folder {self.folder!r} is in use by the run {mark['run']!r} ({where}): "
            f"give each run a folder of its own{cure}"
        )

    def _read(self) -> dict[str, Any]:
        try:
            if os.path.islink(self._path):
                return {}
            mark = read_facts(self._path)
            lists = [mark[kind] for kind in _LISTS]
            whole = all(isinstance(name, str) for one in lists for name in one)
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return mark if whole and isinstance(mark.get("run"), str) else {}

    def _write(self, mark: Mapping[str, Any]) -> None:
        write_facts(self._path, mark)
