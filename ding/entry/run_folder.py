"""The folder of a run: chosen, taken by one process from start to end, and its files of facts."""

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

from easydict import EasyDict

from ding.config.check import at
from ding.config.compile import new_folder
from ding.config.save import save_run_config
from ding.utils import get_rank
from ding.utils.console import print_line
from ding.utils.ending import Ending
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.file_helper import read_facts, remove_unfinished, write_facts
from ding.utils.processes import still_runs
from ding.utils.run_claims import RunLock
from ding.utils.run_log import RECORD_FILE

COORDINATOR_FILE = "coordinator.json"

_FACTS = re.compile(rf"{RECORD_FILE}|{COORDINATOR_FILE}|(formatted_)?total_config\.py")
_STATES = re.compile(r".+\.pth\.tar")


def coordinator_address(exp_name: str) -> dict[str, Any] | None:
    """``host``, ``port`` and ``pid`` of a run's coordinator.

    ``None`` if there is none: the file may have been left by one that was killed.
    """
    found = read_facts(os.path.join(exp_name, COORDINATOR_FILE))
    process = found.get("process")
    if not {"host", "port"} <= set(found):
        return None
    return None if isinstance(process, dict) and still_runs(process) is False else found


def read_record(exp_name: str) -> dict[str, Any]:
    """What ``run.json`` tells of a run; empty if there is none."""
    return read_facts(os.path.join(exp_name, RECORD_FILE))


def settle_record(exp_name: str, ending: Ending) -> None:
    """Write how a run ended into its ``run.json`` if no coordinator could, or if there was none."""
    record = read_record(exp_name) or {"status": "running", "began": False}
    if record.get("status") != "running" or not os.path.isdir(exp_name):
        return
    now = datetime.fromtimestamp(time.time(), timezone.utc).astimezone()
    record.update(
        status=ending.status, reason=ending.reason, ended=now.isoformat(timespec="seconds")
    )
    write_facts(os.path.join(exp_name, RECORD_FILE), record)


def recorded_ending(exp_name: str) -> Ending:
    """How a run ended whose coordinator has let its workers go."""
    record = read_record(exp_name)
    if record.get("status") in (None, "running"):
        return Ending("finished", "the coordinator has ended")
    return Ending(record["status"], record.get("reason", ""))


def clean_run_folder(exp_name: str) -> None:
    """Remove what killed processes have left of files that they were writing."""
    remove_unfinished(exp_name, _FACTS)
    remove_unfinished(os.path.join(exp_name, "ckpt"), _STATES)


@contextlib.contextmanager
def taken_folder(exp_name: str) -> Iterator[None]:
    """A run's folder, which is there and this process's alone; half-written files are removed.

    Raises:
        ConfigError: It cannot be written, or another process runs in it.
    """
    what = f"cannot write into the run's folder {os.path.abspath(exp_name)!r}"
    with naming_errors(what, "; choose another exp_name"):
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


@contextlib.contextmanager
def serial_folder(cfg: EasyDict) -> Iterator[Callable[[], None]]:
    """Take a serial run's folder; ``cfg.exp_name`` is its name from then on.

    A new run gets a folder of its own: where there is one already the time is appended, which is
    said. One whose start failed is free.

    Args:
        cfg: Compiled config.

    Yields:
        What is to be called when everything fits: a resumed run's config is written then.

    Raises:
        ConfigError: The folder cannot be made, or another process runs in it.
        CheckpointError: There is no run to resume.
    """
    name, resumes = cfg.exp_name, bool(at(cfg, "policy.learn.resume_training"))
    if not resumes:
        cfg.exp_name = new_folder(name)
    elif not os.path.isdir(name) and not cfg.policy.learn.learner.hook.get("load_ckpt_before_run"):
        raise CheckpointError(
            f"nothing to resume: there is no folder {os.path.abspath(name)!r}. Use the exp_name of "
            "the run to go on with"
        )

    def save() -> None:
        if not get_rank():
            save_run_config(cfg)

    with contextlib.nullcontext() if get_rank() else taken_folder(cfg.exp_name):
        if cfg.exp_name != name and not get_rank():
            print_line(f"{name} exists: this run's folder is {cfg.exp_name}", important=True)
        if not resumes:
            save()
        yield save if resumes else lambda: None
