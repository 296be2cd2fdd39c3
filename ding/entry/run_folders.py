"""The folders of a parallel run: made at its start, and left at its end as they were found."""

import contextlib
import os
import socket
import tempfile

from easydict import EasyDict

from ding.entry.run_files import COORDINATOR_FILE, coordinator_address
from ding.utils.errors import ConfigError
from ding.utils.run_key import remove_run_key

_CONNECT_SECONDS = 2.0
_SHARED = ("path_data", "path_policy")


class RunFolders:
    """Makes and cleans the folders that the parts of a run share.

    Args:
        config: Compiled parallel config.
    """

    def __init__(self, config: EasyDict) -> None:
        self._exp = config.main.exp_name
        self._shared = {key: os.path.abspath(config.system[key]) for key in _SHARED}
        self._made: list[str] = []

    def prepare(self) -> None:
        """Make the folders.

        Raises:
            ConfigError: One cannot be made or written; names the key. Or the run is going on.
        """
        other = coordinator_address(self._exp)
        if other is not None and _answers(other["host"], other["port"]):
            raise ConfigError(
                f"the run in {self._exp!r} is going on: its coordinator at {other['host']}:"
                f"{other['port']} is process {other.get('pid')}; stop that first, or choose "
                "another exp_name"
            )
        self._make(self._exp, "main_config.exp_name")
        for key, path in self._shared.items():
            self._make(path, f"system_config.{key}")

    def _make(self, path: str, key: str) -> None:
        missing = path
        try:
            while not os.path.isdir(missing):
                if path != self._exp:
                    self._made.append(missing)
                missing = os.path.dirname(missing) or "."
            os.makedirs(path, exist_ok=True)
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise ConfigError(
                f"{key}: cannot write into the folder {os.path.abspath(path)!r}: "
                f"{error.strerror or error}"
            ) from error

    def clean(self) -> None:
        """Remove what the parts of the run had no time for; all of them have ended.

        Only folders that the run made, or that lie in its own, are emptied: others may hold files
        of other runs.
        """
        own = os.path.join(os.path.abspath(self._exp), "")
        mine = [p for p in self._shared.values() if p in self._made or p.startswith(own)]
        for path in mine:
            _empty(path)
        for path in sorted({*mine, *self._made}, key=len, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(path)
        _remove_temporary(self._exp)
        _remove_temporary(os.path.join(self._exp, "ckpt"))
        remove_run_key(self._exp)
        with contextlib.suppress(OSError):
            os.remove(os.path.join(self._exp, COORDINATOR_FILE))


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                _empty(entry.path)
                os.rmdir(entry.path)
            else:
                os.remove(entry.path)


def _remove_temporary(folder: str) -> None:
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.endswith(".tmp") and entry.is_file(follow_symlinks=False):
                os.remove(entry.path)
