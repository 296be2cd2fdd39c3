"""Finds the runs below a folder, and summarises them for lists."""

import contextlib
import hashlib
import logging
import math
import os
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, MutableSequence
from typing import TypeVar

from ding.board.run_files import (
    CONFIG_FILE,
    config_text,
    escaped,
    read_config,
)
from ding.utils import strict_json
from ding.utils.console import printable
from ding.utils.errors import DataError
from ding.utils.run_files import (
    LAST,
    METRICS_FILE,
    RECORD_FILE,
    RunRecord,
    metrics_from,
    parse_row,
    read_record,
)
from ding.utils.seed_statistics import final_return
from ding.utils.types import JsonObject

_logger = logging.getLogger(__name__)

Point = TypeVar("Point", bound=tuple[float, ...])
#: Seconds until folders are searched again.
RESCAN = 1.0
#: Seconds per call that may be spent on reading curves; the next call continues.
CURVE_BUDGET = 0.1
MAX_POINTS = 64
MAX_DEPTH = 8
MAX_FOLDERS = 50_000
#: Maximum number of groups of returns per run; there are four, and more in a league.
MAX_GROUPS = 100
#: Larger returns and steps are ignored, so that sums and squares do not overflow.
MAX_NUMBER = 1e100
#: Status of a run whose record cannot be read; its reason is the cause.
UNREADABLE = "unreadable"

_FOLDERS_WITHOUT = {"node_modules", "__pycache__", "site-packages"}
#: Suffixes of the second run with the same name, and of runs of several seeds.
_RUN_SUFFIX = re.compile(r"(_\d{6}_\d{6}(_\d+)?|_seed\d+)$")
_RETURN = re.compile(r"((?:evaluator|collector)\w*)/(?:reward|return)_mean")
_RETURN_KEY = re.compile(rb'"((?:evaluator|collector)\w*)/(?:reward|return)_mean"')


def returns_in(line: bytes) -> Iterator[tuple[str, float, float, float]]:
    """Mean returns in a row of ``metrics.jsonl``: group, step, time, value.

    Raises:
        ValueError: The row is damaged.
    """
    if not _RETURN_KEY.search(line):
        return
    row = parse_row(line)
    if row.step is None or abs(row.step) > MAX_NUMBER or abs(row.time) > MAX_NUMBER:
        return
    for key, value in row.values.items():
        match = _RETURN.fullmatch(key)
        if match and value is not None and abs(value) <= MAX_NUMBER:
            yield match[1], row.step, row.time, float(value)


def returns_of(folder: str) -> Iterator[tuple[str, float, float, float]]:
    """`returns_in` for all readable rows of a run; empty without ``metrics.jsonl``."""
    with contextlib.suppress(OSError):
        for piece in metrics_from(folder, 0):
            for line in piece.content.splitlines():
                with contextlib.suppress(ValueError):
                    yield from returns_in(line)


def best_group(groups: Iterable[str]) -> str | None:
    """The group to show: evaluations are preferred to training, env steps to updates."""
    return min(
        groups,
        key=lambda name: (not name.startswith("evaluator"), name.endswith("_iter"), name),
        default=None,
    )


def add_newest(known: MutableSequence[Point], new: Point) -> None:
    """Add a point, which begins with its step, and remove points from that step on: a resumed run
    repeats these steps."""
    while known and known[-1][0] >= new[0]:
        known.pop()
    known.append(new)


class Curve:
    """The returns of a run for a small plot, read incrementally.

    Args:
        most: Approximate number of returns that are kept; beyond it, every second one is dropped.

    Attributes:
        offset: Number of bytes read so far.
        steps: Env steps so far, or updates if those are unknown.
        time: Time of the newest row, in seconds since the epoch.
        problem: Reason why a part of the file could not be read; empty if there is none.
    """

    def __init__(self, folder: str, most: float = MAX_POINTS) -> None:
        self._folder, self._most = folder, most
        self.offset = 0
        self._points: dict[str, list[tuple[float, float]]] = {}
        self._last: dict[str, deque[tuple[float, float]]] = {}
        self._counts: dict[str, float] = {}
        self.time: float | None = None
        self.problem = ""

    @property
    def steps(self) -> int | None:
        steps = self._counts.get("step", self._counts.get("iter"))
        return None if steps is None else int(steps)

    @property
    def points(self) -> list[tuple[float, float]]:
        """Pairs ``(step, mean return)``, at most twice ``most``."""
        group = best_group(self._points)
        return [] if group is None else self._points[group]

    def last_return(self, converged: bool) -> float | None:
        """The final return of the run, as in tables over seeds."""
        last = self._last.get(best_group(self._last) or "", ())
        return final_return([value for _, value in last], converged) if last else None

    def read(self, deadline: float = math.inf) -> bool:
        """Read new rows until `deadline` (``time.monotonic()``); returns whether all were read."""
        try:
            for piece in metrics_from(self._folder, self.offset):
                if time.monotonic() >= deadline:
                    return False
                if piece.restarted:
                    self._points, self._last, self._counts, self.problem = {}, {}, {}, ""
                self.offset = piece.offset
                self._take(piece.content.splitlines())
        except FileNotFoundError:
            pass
        except OSError as error:
            self.problem = f"{METRICS_FILE} cannot be read: {error.strerror}"
        return True

    def _take(self, lines: list[bytes]) -> None:
        for line in _some_with_returns(lines, self._most):
            try:
                for group, step, _, value in returns_in(line):
                    self._add(group, step, value)
            except ValueError as error:
                self.problem = f"{METRICS_FILE} is damaged: {error}"
        for line in lines[-20:]:
            # A line that a crash left incomplete is ignored; complete lines follow.
            with contextlib.suppress(ValueError):
                self._count(line)

    def _add(self, group: str, step: float, value: float) -> None:
        if group not in self._last and len(self._last) >= MAX_GROUPS:
            return
        last = self._last.setdefault(group, deque(maxlen=2 * LAST))
        points = self._points.setdefault(group, [])
        add_newest(last, (step, value))
        add_newest(points, (step, value))
        if len(points) > 2 * self._most:
            del points[1:-1:2]

    def _count(self, line: bytes) -> None:
        row = parse_row(line)
        self.time = row.time
        for key in row.values:
            kind = key.partition("/")[0].rpartition("_")[2]
            if kind in ("step", "iter") and row.step is not None:
                self._counts[kind] = max(row.step, self._counts.get(kind, 0))


class Run:
    """One run's folder."""

    def __init__(self, folder: str, id: str) -> None:
        self.folder, self.id = folder, id
        self.curve = Curve(folder)
        self._record = RunRecord()
        self._record_stamp: tuple[int, ...] | None = None
        self._group: tuple[tuple[int, ...] | None, str] | None = None
        self._config: tuple[tuple[int, ...] | None, dict[str, str]] | None = None

    @property
    def record(self) -> RunRecord:
        """The current ``run.json``; if it cannot be read, a record with the status `UNREADABLE`."""
        stamp = _stamp(os.path.join(self.folder, RECORD_FILE))
        if stamp != self._record_stamp:
            try:
                self._record = read_record(self.folder)
            except FileNotFoundError:
                self._record = RunRecord()
            except DataError as error:
                self._record = RunRecord(status=UNREADABLE, reason=str(error))
            self._record_stamp = stamp
        return self._record

    @property
    def status(self) -> str:
        """The status in its record; ``killed`` if its process has ended without a final status."""
        record = self.record
        return "killed" if record.status == "running" and not record.may_live else record.status

    @property
    def name(self) -> str:
        """The name without a suffix of time or seed: the same for all runs of one config."""
        path = self.record.exp_name or self.folder
        whole = name = printable(os.path.basename(os.path.normpath(path)))
        while (shorter := _RUN_SUFFIX.sub("", name)) != name:
            name = shorter
        return name or whole

    def summary(self, deadline: float = math.inf) -> JsonObject:
        """A row for tables of runs; never raises, whatever the run's files contain.

        Args:
            deadline: Time (``time.monotonic()``) until which new rows of its curve are read.
        """
        try:
            self.curve.read(deadline)
            return self._summary()
        except Exception as error:  # one run must not break the list of all runs
            _logger.debug("%s cannot be shown", self.folder, exc_info=True)
            cause = f"{type(error).__name__}: {error}"
            shown = dict.fromkeys((*_SHOWN, "envstep", "best_return", "last_return", "last_time"))
            name = printable(os.path.basename(self.folder))
            words = {"folder": name, "name": name, "group": name, "curve": [], "problem": ""}
            return {"id": self.id, **shown, **words, "status": UNREADABLE, "reason": cause}

    def _summary(self) -> JsonObject:
        record, points = self.record, self.curve.points
        best, envstep = record.best_return, record.envstep
        if best is None and points:
            best = max(value for _, value in points)
        return {
            "id": self.id,
            "folder": printable(os.path.basename(self.folder)),
            "name": self.name,
            "group": self.group,
            "status": self.status,
            **{key: getattr(record, key) for key in _SHOWN},
            "problem": self.curve.problem,
            "envstep": self.curve.steps if envstep is None else envstep,
            "best_return": best,
            "last_return": self.curve.last_return(record.status == "converged"),
            "last_time": self.curve.time,
            "curve": points,
        }

    @property
    def group(self) -> str:
        """An id that is the same for runs that differ only in seed and folder."""
        stamp = _stamp(os.path.join(self.folder, CONFIG_FILE))
        if self._group is None or self._group[0] != stamp:
            text = config_text(self.folder, self.record.exp_name)
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            self._group = stamp, f"{self.name} {digest}"
        return self._group[1]

    @property
    def config(self) -> dict[str, str]:
        """The flat config, see `read_config`; empty if it cannot be read."""
        stamp = _stamp(os.path.join(self.folder, CONFIG_FILE))
        if self._config is None or self._config[0] != stamp:
            found: dict[str, str] = {}
            with contextlib.suppress(ValueError):
                found = read_config(self.folder)
            self._config = stamp, found
        return self._config[1]


_SHOWN = ("reason", "seed", "started", "ended", "seconds", "train_iter", "host")


class RunList:
    """All runs below a folder. Thread-safe.

    Args:
        root: The folder, which may also be the folder of a run.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._scanned = -RESCAN
        # For each run, the digest of its row and the version in which the row changed.
        self._seen: dict[str, tuple[bytes, int]] = {}
        self._token, self._version = secrets.token_hex(4), 0
        #: Whether the search was stopped because there are too many folders.
        self.is_cut = False

    def summaries(self) -> list[JsonObject]:
        """The summaries of all runs, the newest first."""
        with self._lock:
            deadline = time.monotonic() + CURVE_BUDGET
            runs = sorted(self._found().values(), key=lambda run: run.curve.offset)
            rows = [run.summary(deadline) for run in runs]
        return sorted(rows, key=lambda row: (row["started"] or "", row["id"]), reverse=True)

    def changes(self, since: str) -> JsonObject:
        """The changes of the list since a version.

        Args:
            since: The ``version`` of the previous answer, or any other text for all rows.

        Returns:
            ``version``, ``ids`` of all runs, the newest first, and ``runs``, the changed rows.
        """
        rows = self.summaries()
        with self._lock:
            for row in rows:
                digest = hashlib.sha256(strict_json.dumps(row).encode()).digest()
                if self._seen.get(row["id"], (b"", 0))[0] != digest:
                    self._version += 1
                    self._seen[row["id"]] = digest, self._version
            token, _, number = since.partition(".")
            known = int(number) if token == self._token and number.isdecimal() else -1
            return {
                "version": f"{self._token}.{self._version}",
                "ids": [row["id"] for row in rows],
                "runs": [row for row in rows if self._seen[row["id"]][1] > known],
            }

    def configs(self) -> dict[str, dict[str, str]]:
        """The configs of all runs, by id."""
        with self._lock:
            return {id: run.config for id, run in self._found().items()}

    def summary(self, run: Run) -> JsonObject:
        """The summary of one run."""
        with self._lock:
            return run.summary(time.monotonic() + CURVE_BUDGET)

    def all(self) -> list[Run]:
        """The runs, sorted by folder."""
        with self._lock:
            return sorted(self._found().values(), key=lambda run: run.folder)

    def get(self, id: str) -> Run:
        """
        Raises:
            KeyError: There is no such run.
        """
        with self._lock:
            return self._found()[id]

    def _found(self) -> dict[str, Run]:
        if time.monotonic() - self._scanned >= RESCAN:
            found = {}
            for folder in self._folders():
                id = escaped(os.path.relpath(folder, self.root))
                found[id] = self._runs.get(id) or Run(folder, id)
            self._runs, self._scanned = found, time.monotonic()
        return self._runs

    def _folders(self) -> Iterator[str]:
        todo, seen = [(self.root, 0)], 0
        while todo:
            folder, depth = todo.pop()
            seen += 1
            try:
                with os.scandir(folder) as entries:
                    names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
            except OSError:
                continue  # the folder is not readable, or was removed
            if RECORD_FILE in names or METRICS_FILE in names:
                yield folder
            elif depth < MAX_DEPTH:
                inner = (name for name, is_folder in names.items() if is_folder)
                todo += [
                    (os.path.join(folder, name), depth + 1)
                    for name in inner
                    if name[0] != "." and name not in _FOLDERS_WITHOUT
                ]
            self.is_cut = seen >= MAX_FOLDERS
            if self.is_cut:
                return


def _some_with_returns(lines: list[bytes], most: float) -> Iterator[bytes]:
    """The rows with returns, per group; a subset if there are many, since the plot is small."""
    groups: dict[bytes, list[bytes]] = {}
    for line in lines:
        if b"_mean" in line and (match := _RETURN_KEY.search(line)):
            groups.setdefault(match[1], []).append(line)
    for found in groups.values():
        every = 1 + int(len(found) // most)
        yield from found[:-LAST:every]
        yield from found[-LAST:]


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        stat = os.lstat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
