"""The folder of a serial run: chosen and taken at its start, its config written when all fits."""

import contextlib
import os

from easydict import EasyDict

from ding.config.check import at
from ding.config.compile import new_folder
from ding.config.save import save_config
from ding.entry.run_files import clean_run_folder
from ding.utils import get_rank
from ding.utils.console import print_line
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.run_lock import RunLock


class RunFolder:
    """Takes a run's folder for this process; ``cfg.exp_name`` is its name from then on.

    A new run gets a folder of its own: where there is one already the time is appended, which is
    said. One whose start failed is free.

    Args:
        cfg: Compiled config.
    """

    def __init__(self, cfg: EasyDict) -> None:
        self._cfg = cfg
        self._open = contextlib.ExitStack()
        self._resumes = bool(at(cfg, "policy.learn.resume_training"))

    def __enter__(self) -> "RunFolder":
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
        with _named_errors(self._cfg.exp_name):
            os.makedirs(self._cfg.exp_name, exist_ok=True)
        self._open.enter_context(RunLock(self._cfg.exp_name))
        clean_run_folder(self._cfg.exp_name)
        if not self._resumes:
            self._write_config()
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    def begin(self) -> None:
        """Everything fits: what a resumed run changes in the folder may be written."""
        if self._resumes and not get_rank():
            self._write_config()

    def _write_config(self) -> None:
        exp_name = self._cfg.exp_name
        with _named_errors(exp_name):
            save_config(self._cfg, os.path.join(exp_name, "total_config.py"), save_formatted=True)


@contextlib.contextmanager
def _named_errors(exp_name: str):
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"cannot write into the run's folder {os.path.abspath(exp_name)!r}: "
            f"{error.strerror or error}; choose another exp_name"
        ) from error
