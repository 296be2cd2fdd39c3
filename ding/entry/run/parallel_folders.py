"""The folders of a parallel run: created at its start, cleaned up at its end."""

import contextlib
import itertools
import os
from collections.abc import Mapping
from pathlib import Path

from easydict import EasyDict

from ding.config.system import has_own_engine
from ding.data.chunks import chunk_pattern
from ding.entry.run.folder import RECORD_FILE, clean_run_folder, naming_errors, taken_folder
from ding.entry.run.status import COORDINATOR_FILE, coordinator_address, is_answering
from ding.torch_utils.weights_file import weights_pattern
from ding.utils.errors import ConfigError
from ding.utils.run_claims import RunLock, RunMark, remove_run_key
from ding.utils.shared_folder import SharedFolder
from ding.worker.coordinator.run_files import STATE_NAME


class RunFolders:
    """The run's folder, and the folders for data and weights that its parts share.

    Args:
        config: Compiled parallel config.
    """

    def __init__(self, config: EasyDict) -> None:
        self._config = config
        self._exp = config.main.exp_name
        # Other engines store data and weights elsewhere.
        keys = () if has_own_engine(config.system) else ("path_data", "path_policy")
        self._shared = {key: os.path.abspath(config.system[key]) for key in keys}
        self._made: list[str] = []
        self._is_of_killed = False  # a killed run has left files from which to continue
        self._saved: int | None = None  # when that run saved its state
        self._is_left = False
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "RunFolders":
        self.prepare()
        return self

    def __exit__(self, *exc: object) -> None:
        self.clean()

    def prepare(self) -> None:
        """Create the folders, and mark the shared ones as this run's.

        Raises:
            ConfigError: A folder cannot be created or written, or contains files of others (names
                the key), or the run is still running.
        """
        other = coordinator_address(self._exp)
        if other is not None and is_answering(other, self._exp):
            raise ConfigError(
                f"the run in {self._exp!r} is running: its coordinator at {other['host']}:"
                f"{other['port']} is process {other.get('pid')}; stop that first, or choose "
                "another exp_name"
            )
        check_shared_paths(self._config)
        with contextlib.ExitStack() as opened:
            opened.enter_context(taken_folder(self._exp))
            marks = [RunMark(path, self._exp) for path in self._shared.values()]
            self._is_of_killed = any(mark.own is not None for mark in marks)
            self._saved = self._when_saved()
            for key, path in self._shared.items():
                self._make(path, f"system_config.{key}")
            self._open = opened.pop_all()

    def _make(self, path: str, key: str) -> None:
        missing, made = path, list[str]()
        while not os.path.lexists(missing):
            made.append(missing)
            missing = os.path.dirname(missing)
        if os.path.dirname(path) == os.path.abspath(self._exp):
            made.append(path)  # even if a faster worker has created it
        self._made += made  # even if a later step fails
        with naming_errors(f"{key}: cannot write into the folder {path!r}"):
            os.makedirs(path, exist_ok=True)
            RunMark(path, self._exp).set(made, key)

    def leave_if_unstarted(self) -> None:
        """Keep all files of a killed run, with its key, if this run has not saved a state instead:
        the next start can then continue it."""
        self._is_left = self._is_of_killed and self._when_saved() == self._saved

    def _when_saved(self) -> int | None:
        try:
            return os.stat(os.path.join(self._exp, "ckpt", STATE_NAME)).st_mtime_ns
        except OSError:
            return None

    def clean(self) -> None:
        """Remove files that the run's parts could not remove; all parts have ended.

        Only files that the run has created, by their names, in folders with its mark. No link is
        followed, and no folder is removed that the run has not created or that is not empty.
        """
        if self._is_left:
            self._open.close()
            return
        for path in self._shared.values():
            mark = RunMark(path, self._exp)
            names = mark.own
            if names is None:
                continue
            folder = SharedFolder(mark.folder)
            for buffer_id in names["buffers"]:
                folder.clear(chunk_pattern(buffer_id))
            for name in names["weights"]:
                folder.clear(weights_pattern(name))
            with contextlib.suppress(OSError):
                mark.remove()
            self._made += names["made"]
        for path in sorted(set(self._made), key=len, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(path)
        # Also what a worker was writing that was killed just before the end.
        clean_run_folder(self._exp, min_age=0.0)
        remove_run_key(self._exp)
        with contextlib.suppress(OSError):
            os.remove(os.path.join(self._exp, COORDINATOR_FILE))
        self._open.close()

    def clean_for_killed(self) -> None:
        """`clean` on behalf of a process that was killed."""
        with contextlib.suppress(ConfigError):
            self._open.enter_context(RunLock(self._exp))  # so that its file is removed as well
        self.clean()


_KEYS = ("path_data", "path_policy")
#: Folders of a run that may only contain checkpoints and logs.
_KEPT = ("ckpt", "log")
#: Maximum number of subfolders of a shared folder that are searched.
_MOST = 2000


def check_shared_paths(config: EasyDict) -> None:
    """Reject folders for data and weights that would contain files of users or of other runs.

    Raises:
        ConfigError: A folder is, contains, or is inside a forbidden one; names key and value.
    """
    system, exp = config.system, config.main.exp_name
    paths = {key: system[key] for key in _KEYS}
    for name, entry in system.items():
        for key in _KEYS if isinstance(entry, Mapping) else ():
            if entry.get(key) and entry[key] != system[key]:
                paths[f"{name}.{key}"] = entry[key]
    for key, value in paths.items():
        problem = _problem(Path(value).resolve(), exp)
        if problem is not None:
            default = os.path.join(exp, key.rpartition("path_")[2])
            raise ConfigError(
                f"system_config.{key} is {str(value)!r}, which {problem}: the run creates and "
                f"deletes files there, so give it a separate folder, such as {default!r}"
            )


def _problem(path: Path, exp_name: str) -> str | None:
    exp = Path(exp_name).resolve()
    if path == exp:
        return "is the run's own folder"
    if exp.is_relative_to(path):
        return f"contains the run's own folder {exp_name!r}"
    for name in _KEPT:
        kept = (exp / name).resolve()
        if path.is_relative_to(kept):
            return f"is in the run's folder {name!r}, where files are kept"
        if kept.is_relative_to(path):
            return f"contains the run's folder {name!r}"
    for folder in (path, *path.parents):
        run = folder.parent
        if folder.name in _KEPT and (run / RECORD_FILE).is_file():
            if run == exp:
                break
            return f"is in {str(run)!r}, where another run keeps its files"
    # The folder may be a whole disk.
    for place, below, names in itertools.islice(os.walk(path), _MOST):
        if RECORD_FILE in names or "ckpt" in below:
            found = place if RECORD_FILE in names else os.path.join(place, "ckpt")
            return f"contains {found!r}, where a run keeps its files"
    return None
