"""One parallel run in a separate process group, and what is left when it has ended.

    python benchmarks/_parallel_runs.py parallel 0        # seed 0, in a temporary folder

Sides: those of `_parallel_sides.SIDES`, of this project, and ``DI-engine`` (with its own
interpreter: the config of parallel CartPole that it ships, which this project's follows).
"""

import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean

from _peers import peer_python

HERE = Path(__file__).resolve().parent
#: Seconds after which a run counts as hung.
LIMIT = 600.0
#: Seconds that processes have to end after the run.
GRACE = 5.0


@dataclass
class Run:
    """How a run went.

    Attributes:
        wall: Seconds from the start of Python to the end of the pipeline, ``inf`` if it hung.
        pipeline: Seconds of the pipeline's call alone, without imports.
        reached: Whether the goal was reached.
        envstep: Environment steps, 0 where the library does not say.
        files: Data, weights and temporary files that were left.
        size: Their bytes.
        processes: Processes that were left after `GRACE`.
        reason: A sentence on how it ended.
        evaluations: Of each: seconds, env steps, updates, mean return.
    """

    side: str
    seed: int
    wall: float
    pipeline: float = float("inf")
    reached: bool = False
    envstep: int = 0
    train_iter: int = 0
    files: int = 0
    size: int = 0
    processes: int = 0
    reason: str = ""
    evaluations: list[list[float]] = field(default_factory=list)

    @property
    def left_nothing(self) -> bool:
        return not (self.files or self.processes)


def run(side: str, seed: int, limit: float = LIMIT, engine: str = "flask_fs") -> Run:
    """Run a side once, in a folder that is removed afterwards.

    Args:
        engine: Of this project's parallel runs.
    """
    python = peer_python("di-engine") if side == "DI-engine" else sys.executable
    folder = Path(tempfile.mkdtemp(prefix="parallel_"))
    shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    env = {**os.environ, "OMP_NUM_THREADS": "1", "DING_CONSOLE": "plain", "PYTHONPATH": str(HERE)}
    env["BENCH_ENGINE"] = engine
    if side != "DI-engine":
        env["PYTHONPATH"] += os.pathsep + str(HERE.parent)
    begin = time.perf_counter()
    child = subprocess.Popen(
        [python, str(HERE / "_parallel_sides.py"), side, str(seed)],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=(folder / "stderr").open("w"),
        text=True,
        start_new_session=True,
    )
    result = Run(side, seed, float("inf"))
    timer = _kill_after(child, limit)
    try:
        for line in child.stdout:
            if line.startswith("RESULT "):
                result.wall = time.perf_counter() - begin
                for name, value in json.loads(line.removeprefix("RESULT ")).items():
                    setattr(result, name, value)
                break
    finally:
        timer.cancel()
    if result.wall == float("inf"):
        result.reason = (folder / "stderr").read_text()[-300:] or f"no end within {limit:g} s"
    result.processes = _left_of(child)
    result.files, result.size = _left_in(folder, shared)
    result.evaluations = _evaluations(folder / "run" / "episodes.csv")
    shutil.rmtree(folder, ignore_errors=True)
    return result


def _evaluations(path: Path) -> list[list[float]]:
    """Of each evaluation: seconds since the first, env steps, updates, mean return."""
    groups: dict[tuple[int, int], list[tuple[float, float]]] = {}
    if not path.exists():
        return []
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if "eval" in row["source"]:
                at = int(float(row["envstep"])), int(float(row["train_iter"]))
                groups.setdefault(at, []).append((float(row["time"]), float(row["return"])))
    begin = min((rows[0][0] for rows in groups.values()), default=0.0)
    return [
        [round(rows[0][0] - begin, 2), *at, round(mean(value for _, value in rows), 1)]
        for at, rows in groups.items()
    ]


def _kill_after(child: subprocess.Popen, limit: float) -> threading.Timer:
    timer = threading.Timer(limit, os.killpg, (child.pid, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    return timer


def _left_of(child: subprocess.Popen) -> int:
    """Processes of the run's session after a while; they are ended."""
    deadline = time.monotonic() + GRACE
    while (left := _session(child.pid)) and time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.1)
        if child.returncode is not None:
            time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    child.wait()
    return len(left)


def _session(leader: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry))
    return found


def _left_in(folder: Path, shared: set[str]) -> tuple[int, int]:
    """Unexpected files and their bytes: all but checkpoints, logs, curves and configs."""
    files = [path for path in folder.rglob("*") if path.is_file() and _unwanted(path, folder)]
    size = sum(path.stat().st_size for path in files)
    extra = set(os.listdir("/dev/shm")) - shared if os.path.isdir("/dev/shm") else set()
    return len(files) + len([name for name in extra if "ding" in name]), size


def _unwanted(path: Path, folder: Path) -> bool:
    inside = {"data", "policy"} & set(path.relative_to(folder).parts[:-1])
    return bool(inside) or ".tmp" in path.name or path.name == "run.key"


if __name__ == "__main__":
    print(asdict(run(sys.argv[1], int(sys.argv[2]))))
