"""The two files that describe a run, ``run.json`` and ``metrics.jsonl``, read as untrusted input.

The board, ``ding status``, ``ding plot``, the tables of seeds and sweeps and the trackers use this
module. Links are not followed, and only regular files are read.
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
#: Bytes of ``metrics.jsonl`` that are read at a time; longer lines are skipped.
METRICS_CHUNK = 1 << 20
#: The final return of a run is the mean of this many last evaluations, since a maximum is biased.
LAST = 5


def why_no_run(folder: str, wanted: str) -> str:
    """The reason why a folder is not a run's folder, with a suggestion.

    Args:
        wanted: A file that the folder of a run contains.
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
        facts: All entries as JSON, including those without an attribute.
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
        """Whether the run's process exists; true if this host cannot find out."""
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
        DataError: The file cannot be read, or a field has another type.
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
        content: Complete lines.
        offset: Offset of the next piece.
        size: Current size of the file in bytes.
        restarted: Whether the file is shorter than the offset, and was read from its beginning.
    """

    content: bytes
    offset: int
    size: int
    restarted: bool


def read_metrics(folder: str, offset: int) -> Piece:
    """The complete lines of ``metrics.jsonl`` from an offset on.

    Raises:
        OSError: The file does not exist, or is not a regular file.
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
    """All new pieces of ``metrics.jsonl`` from an offset on.

    Raises:
        OSError: As for `read_metrics`.
    """
    while (piece := read_metrics(folder, offset)).offset != offset or piece.restarted:
        offset = piece.offset
        yield piece


def whole_rows(content: bytes) -> bytes:
    """The lines of ``metrics.jsonl`` that are valid JSON objects without NaN, unchanged."""
    return b"".join(line + b"\n" for line in content.split(b"\n") if _is_object(line))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(strict_json.parse(line), dict)
    except ValueError:
        return False


class Row(NamedTuple):
    """The scalars of one group at one step: a line of ``metrics.jsonl`` or an event of TensorBoard;
    also passed to trackers and the board.

    Attributes:
        time: Seconds since 1970.
        values: Values by tag; ``None`` for a value that was not finite.
    """

    time: float
    step: float | None
    values: dict[str, float | None]


def parse_row(line: bytes) -> Row:
    """
    Raises:
        ValueError: The line is not a row.
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
    """Format a row for `parse_row`; values that are not finite become ``null``."""
    head: dict[str, float | None] = {"time": round(row.time, 3), "step": row.step}
    values = {f"scalar/{tag}" if tag in head else tag: v for tag, v in row.values.items()}
    return strict_json.dumps({**head, **values}) + "\n"


def _number(tag: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{tag[:80]!r} is {str(value)[:80]!r}, expected a number")
    return value
