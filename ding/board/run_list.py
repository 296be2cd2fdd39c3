"""The runs below a folder, and what a list shows of each."""

import hashlib
import json
import os
import platform
import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ding.board.run_files import CONFIG_FILE, config_text, read_metrics, read_record
from ding.utils.log_writer import METRICS_FILE
from ding.utils.run_log import RECORD_FILE

#: Seconds for which the folders found stay found.
RESCAN = 1.0
#: Seconds that one look may spend on curves; the others come with the next look.
CURVE_BUDGET = 0.1
CURVE_CHUNK = 1 << 20
MAX_POINTS = 64
#: Evaluations at the end of a run whose mean is its last return: the best of many is luck, too.
LAST = 5
MAX_DEPTH = 8
MAX_FOLDERS = 50_000

_FOLDERS_WITHOUT = {"node_modules", "__pycache__", "site-packages"}
#: What the second of two runs with one name, and one of several seeds, has at its end.
_RUN_SUFFIX = re.compile(r"(_\d{6}_\d{6}(_\d+)?|_seed\d+)+$")
_RETURN = re.compile(r"((?:evaluator|collector)\w*)/(?:reward|return)_mean")
_RETURN_KEY = re.compile(rb'"((?:evaluator|collector)\w*)/(?:reward|return)_mean"')


def returns_in(line: bytes) -> Iterator[tuple[str, float, float, float]]:
    """Mean returns in a row of ``metrics.jsonl``: group, step, time, value."""
    if not _RETURN_KEY.search(line):
        return
    row = _parsed(line)
    step, now = row.get("step"), row.get("time")
    if not isinstance(step, (int, float)) or not isinstance(now, (int, float)):
        return
    for key, value in row.items():
        match = _RETURN.fullmatch(key)
        if match and isinstance(value, (int, float)):
            yield match[1], step, now, value


def best_group(groups: Iterable[str]) -> str | None:
    """Whose returns to show: evaluations before training, by env steps before by updates."""
    return min(
        groups,
        key=lambda name: (not name.startswith("evaluator"), name.endswith("_iter"), name),
        default=None,
    )


class Curve:
    """The returns of a run for a small picture, read on from where the last look has ended.

    Attributes:
        offset: Bytes that were read.
        steps: Environment steps so far, updates if they are not known.
        time: Of the newest row, in seconds since the epoch.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.offset = 0
        self._points: dict[str, list[tuple[float, float]]] = {}
        self._last: dict[str, deque[tuple[float, float]]] = {}
        self._counts: dict[str, float] = {}
        self.time: float | None = None

    @property
    def steps(self) -> int | None:
        steps = self._counts.get("step", self._counts.get("iter"))
        return None if steps is None else int(steps)

    @property
    def points(self) -> list[tuple[float, float]]:
        """``(step, mean return)``, at most twice ``MAX_POINTS``."""
        group = best_group(self._points)
        return [] if group is None else self._points[group]

    @property
    def last_return(self) -> float | None:
        """Mean of the last five returns."""
        last = self._last.get(best_group(self._last) or "", ())
        values = [value for _, value in last][-LAST:]
        return sum(values) / len(values) if values else None

    def read(self, deadline: float) -> bool:
        """Read what is new; whether all of it was, until a time of ``time.monotonic()``."""
        while time.monotonic() < deadline:
            try:
                piece = read_metrics(self._folder, self.offset, CURVE_CHUNK)
            except OSError:
                return True
            if piece.restarted:
                self._points, self._last, self._counts = {}, {}, {}
            if piece.offset == self.offset and not piece.restarted:
                return True
            self.offset = piece.offset
            lines = piece.content.splitlines()
            for line in _some_with_returns(lines):
                for group, step, _, value in returns_in(line):
                    self._add(group, step, value)
            for line in lines[-20:]:
                self._count(line)
        return False

    def _add(self, group: str, step: float, value: float) -> None:
        last = self._last.setdefault(group, deque(maxlen=2 * LAST))
        points = self._points.setdefault(group, [])
        for known in (last, points):
            while known and known[-1][0] >= step:
                known.pop()  # a run that was resumed says it again
            known.append((step, value))
        if len(points) > 2 * MAX_POINTS:
            del points[1:-1:2]

    def _count(self, line: bytes) -> None:
        row = _parsed(line)
        step, now = row.get("step"), row.get("time")
        if isinstance(now, (int, float)):
            self.time = now
        for key in row:
            kind = key.partition("/")[0].rpartition("_")[2]
            if kind in ("step", "iter") and isinstance(step, (int, float)):
                self._counts[kind] = max(step, self._counts.get(kind, 0))


class Run:
    """One run's folder."""

    def __init__(self, folder: str, id: str) -> None:
        self.folder, self.id = folder, id
        self.curve = Curve(folder)
        self._record: dict[str, Any] = {}
        self._record_stamp: tuple[int, ...] | None = None
        self._group: tuple[tuple[int, ...] | None, str] | None = None

    @property
    def record(self) -> dict[str, Any]:
        """What ``run.json`` says now."""
        stamp = _stamp(os.path.join(self.folder, RECORD_FILE))
        if stamp != self._record_stamp:
            self._record, self._record_stamp = read_record(self.folder), stamp
        return self._record

    @property
    def status(self) -> str:
        """That of its record, ``killed`` if its process has gone without a word."""
        status = str(self.record.get("status") or "unknown")
        if status == "running" and not _may_live(self.record):
            return "killed"
        return status

    @property
    def name(self) -> str:
        """Without the time and seed at its end: the same for all runs of one config."""
        base = os.path.basename(os.path.normpath(str(self.record.get("exp_name") or self.folder)))
        return _RUN_SUFFIX.sub("", base) or base

    def summary(self) -> dict[str, Any]:
        """What a list shows."""
        record, points = self.record, self.curve.points
        best = record.get("best_return")
        if best is None and points:
            best = max(value for _, value in points)
        envstep = record.get("envstep")
        if not isinstance(envstep, (int, float)):
            envstep = self.curve.steps
        return {
            "id": self.id,
            "folder": os.path.basename(self.folder),
            "name": self.name,
            "group": self.group,
            "status": self.status,
            **{key: record.get(key) for key in _SHOWN},
            "envstep": envstep,
            "best_return": best,
            "last_return": self.curve.last_return,
            "last_time": self.curve.time,
            "curve": points,
        }

    @property
    def group(self) -> str:
        """The same for runs that differ in seed and folder alone."""
        stamp = _stamp(os.path.join(self.folder, CONFIG_FILE))
        if self._group is None or self._group[0] != stamp:
            text = config_text(self.folder, self.record)
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            self._group = stamp, f"{self.name} {digest}"
        return self._group[1]


_SHOWN = ("reason", "seed", "started", "ended", "seconds", "train_iter")


class RunList:
    """All runs below a folder; threads may share it.

    Args:
        root: The folder; it may be a run's own.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._scanned = -RESCAN
        #: Whether there were too many folders to look into all of them.
        self.is_cut = False

    def summaries(self) -> list[dict[str, Any]]:
        """What a list shows of each run, the newest first."""
        with self._lock:
            runs = list(self._found().values())
            deadline = time.monotonic() + CURVE_BUDGET
            for run in sorted(runs, key=lambda run: run.curve.offset):
                if not run.curve.read(deadline):
                    break
            rows = [run.summary() for run in runs]
        return sorted(rows, key=lambda row: str(row["started"] or ""), reverse=True)

    def all(self) -> list[Run]:
        """The runs, by their folders."""
        with self._lock:
            return sorted(self._found().values(), key=lambda run: run.folder)

    def get(self, id: str) -> Run:
        """
        Raises:
            KeyError: There is no such run.
        """
        with self._lock:
            run = self._found()[id]
            run.curve.read(time.monotonic() + CURVE_BUDGET)
            return run

    def _found(self) -> dict[str, Run]:
        if time.monotonic() - self._scanned >= RESCAN:
            found = {}
            for folder in self._folders():
                id = os.path.relpath(folder, self.root).replace(os.sep, "/")
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
                continue  # one that may not be looked into, or has gone
            if names.get(RECORD_FILE) is False or names.get(METRICS_FILE) is False:
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


def _some_with_returns(lines: list[bytes]) -> Iterator[bytes]:
    """Of each group the rows that hold returns; of very many, some: a picture is small."""
    groups: dict[bytes, list[bytes]] = {}
    for line in lines:
        if b"_mean" in line and (match := _RETURN_KEY.search(line)):
            groups.setdefault(match[1], []).append(line)
    for found in groups.values():
        every = 1 + len(found) // MAX_POINTS
        yield from found[:-LAST:every]
        yield from found[-LAST:]


def _may_live(record: dict[str, Any]) -> bool:
    pid = record.get("pid")
    if record.get("host") != platform.node() or type(pid) is not int or pid <= 0:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        stat = os.lstat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
