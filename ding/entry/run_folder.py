"""The folder of a run: chosen, and taken by one process from its start to its end."""

import contextlib
import os
import tempfile
from collections.abc import Iterator

from easydict import EasyDict

from ding.config.check import at
from ding.config.compile import new_folder
from ding.config.save import save_run_config
from ding.entry.run_files import clean_run_folder
from ding.utils import get_rank
from ding.utils.console import print_line
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.run_claims import RunLock


@contextlib.contextmanager
def taken_folder(exp_name: str) -> Iterator[None]:
    """A run's folder, which is there and this process's alone; half-written files are removed.

    Raises:
        ConfigError: It cannot be written, or another process runs in it.
    """
    with _naming_folder(exp_name):
        os.makedirs(exp_name, exist_ok=True)
        with tempfile.TemporaryFile(dir=exp_name):
            pass
    with RunLock(exp_name):
        clean_run_folder(exp_name)
        yield


@contextlib.contextmanager
def naming_errors(what: str, hint: str = "") -> Iterator[None]:
    """Raise errors of the file system as a `ConfigError` that says what could not be done."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{what}: {error.strerror or error}{hint}") from error


def _naming_folder(exp_name: str) -> contextlib.AbstractContextManager[None]:
    return naming_errors(
        f"cannot write into the run's folder {os.path.abspath(exp_name)!r}",
        "; choose another exp_name",
    )


class SerialFolder:
    """Takes a serial run's folder; ``cfg.exp_name`` is its name from then on.

    A new run gets a folder of its own: where there is one already the time is appended, which is
    said. One whose start failed is free.

    Args:
        cfg: Compiled config.
    """

    def __init__(self, cfg: EasyDict) -> None:
        self._cfg = cfg
        self._open = contextlib.ExitStack()
        self._resumes = bool(at(cfg, "policy.learn.resume_training"))

    def __enter__(self) -> "SerialFolder":
        """
        Raises:
            ConfigError: The folder cannot be made, or another process runs in it.
            CheckpointError: There is no run to resume.
        """
        name = self._cfg.exp_name
        if self._resumes:
            hook = self._cfg.policy.learn.learner.hook
            if not os.path.isdir(name) and not hook.get("load_ckpt_before_run"):
                raise CheckpointError(
                    f"nothing to resume: there is no folder {os.path.abspath(name)!r}. Use the "
                    "exp_name of the run to go on with"
                )
        else:
            self._cfg.exp_name = new_folder(name)
        if get_rank():
            return self
        if self._cfg.exp_name != name:
            print_line(f"{name} exists: this run's folder is {self._cfg.exp_name}", important=True)
        self._open.enter_context(taken_folder(self._cfg.exp_name))
        if not self._resumes:
            save_run_config(self._cfg)
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    def begin(self) -> None:
        """Everything fits: what a resumed run changes in the folder may be written."""
        if self._resumes and not get_rank():
            save_run_config(self._cfg)
