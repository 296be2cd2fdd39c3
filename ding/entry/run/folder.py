"""A run's folder: locking it, its files of facts, and the report at the end."""

import contextlib
import importlib.util
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from easydict import EasyDict

from ding.config.compile import new_folder
from ding.config.save import runs_as_it_is, save_run_config
from ding.data.offline.naive_dataset import STATE_FILE
from ding.entry.run.status import COORDINATOR_FILE
from ding.utils import durations, get_rank
from ding.utils.console import print_line, say
from ding.utils.ending import Ending
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.file_helper import remove_unfinished, write_facts
from ding.utils.run_claims import RunLock
from ding.utils.run_files import RECORD_FILE
from ding.utils.run_log import iso_now, record_or_empty
from ding.utils.settings import at
from ding.utils.types import Settings

_FACTS = re.compile(rf"{RECORD_FILE}|{COORDINATOR_FILE}|(formatted_)?total_config\.py")
_STATES = re.compile(r".+\.pth\.tar")


def settle_record(exp_name: str, ending: Ending) -> None:
    """Write how a run ended into its ``run.json`` if there is no coordinator to do it."""
    record = record_or_empty(exp_name)
    if record.status not in ("running", "unknown") or not os.path.isdir(exp_name):
        return
    facts = {"began": False, **record.facts}
    facts.update(status=ending.status, reason=ending.reason, ended=iso_now())
    write_facts(os.path.join(exp_name, RECORD_FILE), facts)


def recorded_ending(exp_name: str) -> Ending:
    """How a run ended, from its record, after its coordinator has released its workers."""
    record = record_or_empty(exp_name)
    if record.status in ("unknown", "running"):
        return Ending("finished", "the coordinator has ended")
    return Ending(record.status, record.reason)


def clean_run_folder(exp_name: str, min_age: float = durations.FILE_LOCK) -> None:
    """Remove what killed processes have left of files that they were writing, if these are at least
    `min_age` seconds old: 0 where no process writes any more."""
    remove_unfinished(exp_name, _FACTS, min_age)
    remove_unfinished(os.path.join(exp_name, "ckpt"), _STATES, min_age)


@contextlib.contextmanager
def taken_folder(exp_name: str) -> Iterator[None]:
    """A run's folder, created and locked; half-written files are removed.

    Raises:
        ConfigError: It cannot be written, or another process runs in it.
    """
    what = f"cannot write into the run's folder {os.path.abspath(exp_name)!r}"
    make_writable(exp_name, what, "; choose another exp_name")
    with RunLock(exp_name):
        clean_run_folder(exp_name)
        yield


def make_writable(folder: str, what: str, hint: str = "") -> None:
    """Make a folder unless it exists, and check that files can be written into it.

    Raises:
        ConfigError: As `naming_errors` says it.
    """
    with naming_errors(what, hint):
        os.makedirs(folder, exist_ok=True)
        # Permissions alone are not enough: file systems may be full or read-only.
        with tempfile.TemporaryFile(dir=folder):
            pass


@contextlib.contextmanager
def naming_errors(what: str, hint: str = "") -> Iterator[None]:
    """Convert file system errors to a `ConfigError` that names the failed action."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{what}: {error.strerror or error}{hint}") from error


@contextlib.contextmanager
def serial_folder(cfg: EasyDict, mode: str) -> Iterator[Callable[[], None]]:
    """Lock a serial run's folder; ``cfg.exp_name`` is then its name.

    If the folder exists, the time is appended to a new run's name.

    Yields:
        A function to call when all parts fit: it writes a resumed run's config.

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
            "the run to continue"
        )

    has_begun = False

    def begin() -> None:
        nonlocal has_begun
        has_begun = True
        if resumes:
            save()

    def save() -> None:
        if not get_rank():
            save_run_config(cfg, mode=mode)

    # The ranks of a run share its folder: rank 0 has the lock.
    with contextlib.nullcontext() if get_rank() else taken_folder(cfg.exp_name):
        if cfg.exp_name != name and not get_rank():
            print_line(f"{name} exists: this run's folder is {cfg.exp_name}", important=True)
        if not resumes:
            save()
        try:
            yield begin
        except BaseException:
            if cfg.exp_name != name and not has_begun and not get_rank():
                # The run did not start: remove its folder, keep the previous run's record.
                shutil.rmtree(cfg.exp_name, ignore_errors=True)
            raise


CONFIG_FILE = "formatted_total_config.py"
#: State and config from which a run of a mode resumes; other modes use those of serial runs.
_PARALLEL_STATE = os.path.join("ckpt", "coordinator_state.pth.tar")
_PARALLEL = ("parallel", "dist")
_DIST_CONFIG = "total_config.py"


@dataclass(frozen=True)
class EndReport:
    """The report of a run's end.

    Attributes:
        mode: Mode of the command line: ``serial``, ``parallel``, ...; ``dist`` if its parts were
            started by hand; empty if no command can start it.
        given: Arguments of the run in addition to its config, which no command can pass.
        limits: Further options of the command, with a leading blank.
    """

    exp_name: str
    seed: int
    mode: str
    given: tuple[str, ...] = ()
    limits: str = ""

    def verdict(self, ending: Ending, best: float | None) -> str:
        """How it ended, in one line."""
        return f"{ending}" + ("" if best is None else f"; best mean return {best:.4g}")

    def next_steps(self, ending: Ending) -> Iterator[str]:
        """The locations of the run's files, and commands that use them."""
        yield f"  run folder  {self.exp_name}"
        checkpoint = os.path.join(self.exp_name, "ckpt", "ckpt_best.pth.tar")
        if os.path.exists(checkpoint):
            yield f"  evaluate    {self._evaluating(checkpoint)}"
        state = _PARALLEL_STATE if self.mode in _PARALLEL else STATE_FILE
        if ending.status != "converged" and os.path.exists(os.path.join(self.exp_name, state)):
            yield f"  continue    {self._resuming()}"
        missing = importlib.util.find_spec("tensorboard") is None
        hint = "  (after: pip install tensorboard)" if missing else ""
        yield f"  curves      tensorboard --logdir {shlex.quote(self.exp_name)}{hint}"

    def _evaluating(self, checkpoint: str) -> str:
        config = os.path.join(self.exp_name, CONFIG_FILE)
        runs = runs_as_it_is(config)
        if runs and not self.given:
            return f"ding eval {shlex.quote(self.exp_name)} -s {self.seed}"
        whole = repr(config) if runs else "(main_config, create_config)"
        named = "".join(f", {name}={name}" for name in self.given)
        call = f"ding.entry.eval({whole}, seed={self.seed}{named}, load_path={checkpoint!r})"
        return f"in Python: {call}"

    def _resuming(self) -> str:
        is_dist = self.mode == "dist"
        config = os.path.join(self.exp_name, _DIST_CONFIG if is_dist else CONFIG_FILE)
        if self.mode not in _PARALLEL and not (
            self.mode and runs_as_it_is(config) and not self.given
        ):
            return (
                f"in Python: the same call, with exp_name={self.exp_name!r} and "
                "policy.learn.resume_training=True in the config"
            )
        mode = "dist -M coordinator" if is_dist else self.mode
        return f"ding -m {mode} -c {shlex.quote(config)} -s {self.seed}{self.limits} --resume"


def print_ending(main: Settings, ending: Ending, mode: str) -> None:
    """Print the report of a run with several processes; the last line is how the run ended."""
    report = EndReport(main["exp_name"], main["seed"], mode)
    best = record_or_empty(report.exp_name).best_return
    say("\n".join([*report.next_steps(ending), report.verdict(ending, best)]))
