"""The log of a run: its record, scalars, episodes and text, in one folder."""

import csv
import logging
import os
import platform
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from datetime import datetime
from importlib import metadata

from ding.utils import durations
from ding.utils.errors import DataError
from ding.utils.file_helper import write_facts
from ding.utils.log_file import AppendFile
from ding.utils.log_helper import LoggerFactory, TBLoggerFactory
from ding.utils.processes import process_identity
from ding.utils.pytorch_ddp_dist_helper import get_rank
from ding.utils.run_files import RECORD_FILE, STATUSES, RunRecord, read_record
from ding.utils.strict_json import plain
from ding.utils.trackers import Trackers
from ding.utils.types import Json, JsonObject, Settings

USAGE_GROUP = "usage_iter"
EPISODE_COLUMNS = ("time", "source", "env_id", "return", "length", "envstep", "train_iter")
logger = logging.getLogger(__name__)
_PACKAGES = ("ding", "torch", "numpy", "gymnasium")


class RunLog:
    """Writes the log files in a run's folder.

    ::

        <exp_name>/run.json                 command, host, times, versions, status
        <exp_name>/metrics.jsonl            every scalar, one row per group and step
        <exp_name>/episodes.csv             one row per finished episode
        <exp_name>/log/serial/              TensorBoard events and the text log

    The ``trackers`` of the config get all scalars as well (`ding.utils.trackers.Tracker`). A run
    that continues in the same folder appends to these files; ``run.json`` lists its earlier runs. A
    disk that fills up later is reported once and does not end the run. In a distributed run, ranks
    other than 0 write only the text log.

    Args:
        exp_name: The run's folder.
        quiet: Whether to keep the text log off the terminal.
        name: Folder under ``log/``.
        starts: Whether the run is still starting, until `begin` is called. Until then, the record
            of an earlier run in the folder is kept, and a new record has ``began=False``.
        config: The run's config, for TensorBoard and its ``trackers``.
        facts: Further entries for ``run.json``, such as the seed.

    Attributes:
        writer: The writer that components get as their ``tb_logger``.
        logger: The text logger.
        record_path: Path of ``run.json``.

    Raises:
        OSError: The folder cannot be created or written.
        ConfigError: A tracker cannot be created.
    """

    def __init__(
        self,
        exp_name: str,
        quiet: bool = False,
        name: str = "serial",
        starts: bool = False,
        config: Settings | None = None,
        **facts: object,
    ) -> None:
        self.folder = os.path.abspath(exp_name)
        log_folder = os.path.join(self.folder, "log", name)
        self._enabled = get_rank() == 0
        self._warned = False
        self._keeps_earlier = False
        self._record = self._begin(exp_name, log_folder, starts, facts)
        self._config = config
        given = config.get("trackers") if config and self._enabled else None
        self._trackers = Trackers(given, self.folder) if given else None
        self.writer = TBLoggerFactory.create_logger(log_folder)
        if self._trackers is not None:
            self.writer.on_flush = self._trackers.feed
        self.logger = LoggerFactory.create_logger(log_folder, name)
        if quiet:
            self.logger.keep_off_terminal()
        self._episodes = AppendFile(
            os.path.join(self.folder, "episodes.csv"), header=",".join(EPISODE_COLUMNS) + "\n"
        )
        self._episode_rows = csv.writer(self._episodes, lineterminator="\n")
        if not starts:
            self._show_config()

    @property
    def status(self) -> str:
        """One of ``STATUSES``."""
        return self._record["status"]

    def episode(
        self,
        source: str,
        env_id: int,
        episode_return: float,
        length: int,
        envstep: int,
        train_iter: int,
    ) -> None:
        """Add a finished episode.

        Args:
            source: Component that ran it, such as ``collector`` or ``evaluator``.
            env_id: Index of the environment in its manager.
            episode_return: Sum of the episode's rewards.
            length: Number of steps.
            envstep: Env steps collected so far.
            train_iter: Updates so far.
        """
        if not self._enabled:
            return
        now = round(time.time(), 3)
        returned = float(episode_return)
        self._episode_rows.writerow((now, source, env_id, returned, length, envstep, train_iter))

    def usage(self, figures: Mapping[str, Mapping[str, float]], train_iter: int) -> None:
        """Write the resource usage of the run's processes, see `ding.utils.usage.UsageMeter`.

        Args:
            figures: Figures by the name of the worker, which is empty in a run of one process.
        """
        for worker, values in figures.items():
            for name, value in values.items():
                tag = f"{USAGE_GROUP}/{name}/{worker}" if worker else f"{USAGE_GROUP}/{name}"
                self.writer.add_scalar(tag, value, train_iter)

    def begin(self) -> None:
        """Mark the run as begun, once all its parts exist, and write its record."""
        self._keeps_earlier = False
        self.note(began=True)
        self._write_record()
        self._show_config()

    def note(self, **facts: object) -> None:
        """Set entries of ``run.json``, such as ``best_return``; `flush` writes them."""
        self._record.update(facts)

    def flush(self) -> None:
        """Write all pending data to disk."""
        self.writer.flush()
        self._episodes.flush()
        self._write_record()

    def finish(self, status: str, reason: str = "", **facts: object) -> None:
        """Record how the run ended. Only the first call sets the status.

        Args:
            status: ``converged``, ``finished``, ``interrupted`` or ``failed``.
            reason: Readable reason, one line.
            facts: Further entries for ``run.json``, such as ``best_return``.
        """
        if status not in STATUSES[1:]:
            raise ValueError(f"status is {status!r}, expected one of {', '.join(STATUSES[1:])}")
        if self.status == "running":
            self._record.update(facts)
            self._record.update(
                status=status,
                reason=reason,
                ended=iso_now(),
                seconds=round(time.monotonic() - self._started, 3),
            )
        self.flush()
        if self._trackers is not None:
            self._trackers.end(status, reason, plain(facts))

    def close(self) -> None:
        """Write all pending data; a run with the status ``running`` becomes ``finished``."""
        self.finish("finished")

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        elif isinstance(error, KeyboardInterrupt):
            self.finish("interrupted", "Ctrl-C")
        else:
            self.finish("failed", f"{type(error).__name__}: {error}")

    def _begin(
        self, exp_name: str, log_folder: str, starts: bool, facts: Mapping[str, object]
    ) -> JsonObject:
        self._started = time.monotonic()
        self.record_path = os.path.join(self.folder, RECORD_FILE)
        self._keeps_earlier = (
            starts and os.path.exists(self.record_path) and not never_began(self.folder)
        )
        record = {
            "exp_name": exp_name,
            "status": "running",
            "reason": "",
            "started": iso_now(),
            "ended": None,
            "seconds": None,
            "command": shlex.join([sys.executable, *sys.argv]),
            "cwd": os.getcwd(),
            "pid": os.getpid(),
            "process": process_identity(),
            "host": platform.node(),
            "platform": platform.platform(),
            "cpus": os.cpu_count(),
            "versions": _versions(),
            "git": git_state(),
            **facts,
            "began": not starts,
            "earlier_runs": _earlier_runs(self.folder),
        }
        try:
            os.makedirs(log_folder, exist_ok=True)
            if self._enabled and not self._keeps_earlier:
                write_facts(self.record_path, plain(record))
        except OSError as error:
            raise OSError(
                error.errno,
                f"cannot write the run folder ({error.strerror}); expected a folder that can be "
                "made and written: choose another exp_name, or check the disk and its permissions",
                self.folder,
            ) from error
        return record

    def _show_config(self) -> None:
        if self._config is not None:
            config = plain(self._config)
            self.writer.add_config(config)
            if self._trackers is not None:
                self._trackers.config(config)

    def _write_record(self) -> None:
        if not self._enabled or self._keeps_earlier:
            return
        try:
            write_facts(self.record_path, plain(self._record))
        except OSError as error:
            if self._warned:
                return
            self._warned = True
            warnings.warn(
                f"cannot write {self.record_path}: {error.strerror or error}; the run continues",
                RuntimeWarning,
                stacklevel=3,
            )


def never_began(folder: str) -> bool:
    """Whether a folder belongs to a run that ended, or was killed, before it had begun."""
    return record_or_empty(folder).facts.get("began") is False


def record_or_empty(folder: str) -> RunRecord:
    """The record of a run; empty if there is none or, with a warning, if it is damaged."""
    try:
        return read_record(folder)
    except FileNotFoundError:
        pass
    except DataError as error:
        logger.warning("%s: %s", folder, error)
    return RunRecord()


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        # Check loaded modules first: searching the installed packages takes longer.
        version = getattr(sys.modules.get(package), "__version__", None)
        if version is None:
            try:
                version = metadata.version(package)
            except metadata.PackageNotFoundError:
                version = None
        versions[package] = None if version is None else str(version)
    return versions


def _earlier_runs(folder: str) -> list[Mapping[str, Json]]:
    before = record_or_empty(folder)
    if not before.facts:
        return []
    keys = ("started", "ended", "status", "reason", "seed", "command")
    return [*before.earlier_runs, {key: before.facts.get(key) for key in keys}]


def iso_now() -> str:
    """The current time in the format of records (ISO 8601), in the local time zone."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def git_state(folder: str | os.PathLike[str] | None = None) -> JsonObject | None:
    """The state of the git repository that contains a folder.

    Returns:
        ``{'commit': str, 'branch': str, 'dirty': bool}`` (untracked files are ignored); ``None``
        outside a repository, without git, or if git takes too long.
    """
    try:
        answer = subprocess.run(
            ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=durations.GIT_TIMEOUT,
            # Do not acquire the repository's lock for reading.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines, mark = answer.stdout.decode(errors="replace").splitlines(), "# branch."
    branch = dict(line[len(mark) :].split(" ", 1) for line in lines if line.startswith(mark))
    commit = branch.get("oid", "")
    if not commit.isalnum():  # git says "(initial)" before the first commit
        return None
    dirty = any(not line.startswith("#") for line in lines)
    return {"commit": commit, "branch": branch.get("head"), "dirty": dirty}
