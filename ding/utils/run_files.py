"""The two files that describe a run, ``run.json`` and ``metrics.jsonl``, read as untrusted input.

The page of runs, ``ding status``, ``ding plot``, the tables of seeds and sweeps and the trackers
read them here. Links are not followed, and only regular files are read.
"""

import difflib
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from ding.utils import strict_json
from ding.utils.errors import DataError
from ding.utils.file_helper import load_facts, open_regular
from ding.utils.json_fields import WHOLE, Rule, from_json
from ding.utils.processes import still_runs
from ding.utils.types import Json

RECORD_FILE = "run.json"
METRICS_FILE = "metrics.jsonl"
STATUSES = ("running", "converged", "finished", "interrupted", "failed")
#: Bytes of ``metrics.jsonl`` that are read at once; a longer line is passed over.
METRICS_CHUNK = 1 << 20
#: Evaluations at the end of a run whose mean is its last return: the best of many is luck, too.
LAST = 5


def why_no_run(folder: str, wanted: str) -> str:
    """Why a folder is not that of a run, and which one could be meant.

    Args:
        wanted: The file that a run's folder would have.
    """
    if os.path.isfile(folder):
        return f"no run in {folder!r}: it is a file; give the run's folder"
    if not os.path.isdir(folder):
        above, name = os.path.split(folder.rstrip(os.sep))
        there = os.listdir(above or ".") if os.path.isdir(above or ".") else []
        folders = [one for one in there if os.path.isdir(os.path.join(above, one))]
        near = difflib.get_close_matches(name, folders, n=1)
        meant = f"; did you mean {os.path.join(above, near[0])}?" if near else ""
        return f"no run in {folder!r}: the folder does not exist{meant}"
    runs = (os.path.join(folder, one) for one in sorted(os.listdir(folder)))
    inside = [one for one in runs if os.path.isfile(os.path.join(one, wanted))]
    meant = f"; its folders are runs, such as {inside[0]}" if inside else ""
    return f"no run in {folder!r}: there is no {wanted}{meant}"


_Path = Annotated[str, Rule(lambda text: len(text) <= 4096, "a path")]
_Time = Annotated[str, Rule(lambda text: len(text) <= 100, "a time in ISO 8601")]
_Pid = Annotated[int, Rule(lambda pid: 0 < pid < 1 << 31, "the number of a process")]
_Status = Annotated[str, Rule(lambda status: status in STATUSES, " or ".join(STATUSES))]


@dataclass(frozen=True)
class RunRecord:
    """The facts in ``run.json``, each of the expected type.

    Attributes:
        facts: All entries, also those without an attribute here; JSON.
    """

    exp_name: _Path = ""
    status: _Status = "unknown"
    reason: str = ""
    started: _Time | None = None
    ended: _Time | None = None
    seconds: float | None = None
    seed: float | None = None
    pid: _Pid | None = None
    process: Mapping[str, Json] | None = None
    host: str = ""
    platform: str = ""
    command: str = ""
    cwd: _Path = ""
    cpus: float | None = None
    versions: Mapping[str, Json] = field(default_factory=dict)
    git: Mapping[str, Json] | None = None
    best_return: float | None = None
    envstep: float | None = None
    train_iter: float | None = None
    earlier_runs: tuple[Mapping[str, Json], ...] = ()
    facts: Mapping[str, Json] = field(default_factory=dict, metadata=WHOLE)

    @property
    def may_live(self) -> bool:
        """Whether the run's process exists, as far as can be found out from this host."""
        if self.process is not None:
            return still_runs(self.process) is not False
        if self.host != platform.node() or self.pid is None:
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:  # a process of another user
            return True
        return True


def read_record(folder: str) -> RunRecord:
    """The record of the run in a folder.

    Raises:
        FileNotFoundError: There is no ``run.json``.
        DataError: It cannot be read, or a field is of another type; states the cause.
    """
    try:
        return from_json(RunRecord, load_facts(os.path.join(folder, RECORD_FILE)))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{RECORD_FILE} cannot be read: {cause}") from error


@dataclass(frozen=True)
class Piece:
    """A part of a growing file.

    Attributes:
        content: Whole lines.
        offset: Where the next piece begins.
        size: Bytes that the file has now.
        restarted: The file is shorter than what was read of it before: this is its beginning.
    """

    content: bytes
    offset: int
    size: int
    restarted: bool


def read_metrics(folder: str, offset: int) -> Piece:
    """The lines of ``metrics.jsonl`` from an offset on; a last one that is not whole comes later.

    Raises:
        OSError: There is no such file, or it is not a regular one.
    """
    with open_regular(os.path.join(folder, METRICS_FILE), follow_links=False) as file:
        size = os.fstat(file.fileno()).st_size
        restarted = offset > size
        start = 0 if restarted else offset
        file.seek(start)
        content = file.read(METRICS_CHUNK)
    end = content.rfind(b"\n") + 1
    if end == 0 and len(content) == METRICS_CHUNK:  # no row is that long
        return Piece(b"", start + METRICS_CHUNK, size, restarted)
    return Piece(content[:end], start + end, size, restarted)


def metrics_from(folder: str, offset: int) -> Iterator[Piece]:
    """All pieces of ``metrics.jsonl`` from an offset on that are new or begin it again.

    Raises:
        OSError: As for `read_metrics`.
    """
    while (piece := read_metrics(folder, offset)).offset != offset or piece.restarted:
        offset = piece.offset
        yield piece


def whole_rows(content: bytes) -> bytes:
    """The lines of ``metrics.jsonl`` that are JSON, unchanged: nothing torn, no NaN, no garbage."""
    return b"".join(line + b"\n" for line in content.split(b"\n") if _is_object(line))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(strict_json.parse(line), dict)
    except ValueError:
        return False


class Row(NamedTuple):
    """The scalars of one group at one step, which every sink of a run takes: a line of
    ``metrics.jsonl``, an event of TensorBoard, what trackers and the page of runs get.

    Attributes:
        time: Seconds since 1970.
        values: By tag; ``None`` for a value that was not finite.
    """

    time: float
    step: float | None
    values: dict[str, float | None]


def parse_row(line: bytes) -> Row:
    """
    Raises:
        ValueError: It is not a row; states the cause.
    """
    found = strict_json.loads(line)
    if not isinstance(found, dict):
        raise ValueError(f"{type(found).__name__} instead of a row")
    values = {tag: _number(tag, value) for tag, value in found.items()}
    time, step = values.pop("time", None), values.pop("step", None)
    if time is None:
        raise ValueError("a row without 'time'")
    return Row(time, step, values)


def format_row(row: Row) -> str:
    """The line of a row, for `parse_row`; a value that is not finite becomes ``null``."""
    head: dict[str, float | None] = {"time": round(row.time, 3), "step": row.step}
    values = {f"scalar/{tag}" if tag in head else tag: v for tag, v in row.values.items()}
    return strict_json.dumps({**head, **values}) + "\n"


def _number(tag: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{tag[:80]!r} is {str(value)[:80]!r}, expected a number")
    return value
