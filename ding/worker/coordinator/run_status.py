"""The operator's view of a parallel run: facts of `GET /status`, console, lines of failures."""

import contextlib
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import TypedDict

from ding.utils.console import Console
from ding.utils.errors import CheckpointWriteError
from ding.utils.file_helper import write_facts
from ding.utils.log_helper import RepeatFilter
from ding.utils.processes import process_identity
from ding.worker.messages import Kind
from ding.worker.seams import Awaited, TaskFailure

from .buffer_pace import RatioStatus
from .chunk_buffer import ChunkBuffer
from .run_facts import (
    DataRate,
    FailureStatus,
    PolicyStatus,
    RunFacts,
    as_number,
    one_line,
    own_numbers,
    usage_figures,
)
from .worker_session import WorkerSession

#: Minimum fraction of the time to be shown.
SHOWN_SHARE = 0.01


class WorkerStatus(TypedDict, total=False):
    """A worker's state, the seconds spent in it, its task, and what it waits for; with the
    fractions of the last seconds that it has waited for anything, and its process's resource usage
    (`ding.utils.usage.FIGURES`). For collectors also ``samples_per_s`` and ``is_eval``, for
    learners ``iters_per_s``, ``wait_share`` for batches, and ``numbers`` that only a custom policy
    logs, not its base class.
    """

    kind: Kind
    state: str
    address: str
    pid: int | None
    task_id: str | None
    since_s: float | None
    waits_for: str | None
    wait_shares: dict[str, float]
    usage: dict[str, float]

    samples_per_s: float | None
    is_eval: bool
    iters_per_s: float | None
    wait_share: float | None
    numbers: dict[str, float]


class BufferStatus(TypedDict):
    """A buffer's fill and capacity in samples, and its bytes and chunks in the store."""

    count: int
    capacity: int
    bytes: int
    max_bytes: int | None
    files: int
    samples_per_insert: RatioStatus | None


class RunStatus(TypedDict):
    """The facts of a run, for `GET /status`.

    ``state`` is ``running`` or the state of the ending, ``reason`` its reason; ``seconds`` since
    the start; ``tasks`` counts by stage; ``waits`` lists which workers wait for what, and for which
    fraction of the time; ``troubles`` lists by worker what prevents a part of its work.
    """

    exp_name: str
    state: str
    reason: str | None
    stop_value: float | None
    seconds: float
    envstep: int
    train_iter: int
    episodes: int
    episode_return: float | None
    best_return: float | None
    last_eval_return: float | None
    buffers: dict[str, BufferStatus]
    data_rate: DataRate
    policy: dict[str, PolicyStatus]
    workers: dict[str, WorkerStatus]
    tasks: dict[str, int]
    waits: str
    troubles: dict[str, str]
    failures: list[FailureStatus]


def worker_status(worker: WorkerSession | Awaited, facts: RunFacts, now: float) -> WorkerStatus:
    """A worker's state, task and rate; for a missing worker, its expected location."""
    status: WorkerStatus = {
        "kind": worker.kind,
        "state": "connecting",
        "address": "",
        "pid": None,
        "task_id": None,
        "since_s": None,
        "waits_for": None,
        "wait_shares": {},
        "usage": {},
    }
    if isinstance(worker, Awaited):
        return {**status, "address": worker.where}
    status["state"], status["task_id"] = worker.state, worker.task_id
    status["address"], status["pid"] = worker.arrival.where, worker.arrival.pid
    status["since_s"] = round(now - worker.since, 1)
    status["waits_for"], status["wait_shares"] = worker.waits_for, worker.waits.at(now)
    if worker.is_open:
        status["usage"] = usage_figures(worker.info.get("usage"))
    if worker.kind == "collector":
        status["samples_per_s"] = _rounded(facts.rate_of(worker.name))
        status["is_eval"] = worker.is_eval
    else:
        status["iters_per_s"] = _rounded(worker.info.get("iters_per_second"))
        status["wait_share"] = as_number(worker.info.get("wait_share"))
        status["numbers"] = own_numbers(worker.info.get("numbers"))
    return status


def buffer_status(buffer: ChunkBuffer) -> BufferStatus:
    """A buffer's fill level."""
    return {
        "count": buffer.count(),
        "capacity": buffer.capacity,
        "bytes": buffer.bytes,
        "max_bytes": buffer.max_bytes,
        "files": buffer.files,
        "samples_per_insert": buffer.pace.ratio_status(),
    }


def who_waits(workers: Mapping[str, WorkerStatus]) -> str:
    """Which workers wait for what, and for which fraction of the time; averaged over workers."""
    waits = []
    for kind in ("learner", "collector"):
        mine = [worker for worker in workers.values() if worker["kind"] == kind]
        reachable = [worker for worker in mine if worker["state"] not in ("connecting", "gone")]
        if not reachable:
            waits.append(f"no {kind} is connected")
            continue
        sums: Counter[str] = Counter()
        for worker in reachable:
            sums.update(worker["wait_shares"])
        for what, total in sums.most_common():
            share = total / len(reachable)
            if share >= SHOWN_SHARE:
                who = f"{kind} waits" if len(mine) == 1 else f"{len(reachable)} {kind}s wait"
                waits.append(f"{who} for {_WHAT.get(what, what)} {share:.0%} of the time")
    return "; ".join(waits) or "no worker waits"


_WHAT = {
    "task": "a task",
    "space": "space for samples",
    "disk": "space on the disk",
    "learner": "the learner (samples per insert)",
    "collectors": "collectors (samples per insert)",
}


def _rounded(value: object) -> float | None:
    number = as_number(value)
    return None if number is None else round(number, 1)


#: Maximum number of lines for workers in the live display.
MAX_LINES = 12


def brief_facts(status: RunStatus) -> list[str]:
    """The facts that serial mode does not have, in a few words each."""
    rate = status["data_rate"]
    out = [f"{rate['samples_per_s']:,.0f} samples/s", f"{rate['bytes_per_s'] / 1e6:.2f} MB/s"]
    lags = [p["lag_iters"] for p in status["policy"].values() if p["lag_iters"] is not None]
    if lags:
        out.append(f"policy lag {max(lags):,} iters")
    used = sum(buffer["bytes"] for buffer in status["buffers"].values())
    if used:
        out.append(f"data files {used / 1e6:,.1f} MB")
    ratios = [buffer["samples_per_insert"] for buffer in status["buffers"].values()]
    for ratio in filter(None, ratios):
        if ratio["reached"] is not None:
            out.append(f"{ratio['reached']:.3g} of {ratio['target']:.3g} samples/insert")
    for kind in ("collector", "learner"):
        mine = [w["state"] for w in status["workers"].values() if w["kind"] == kind]
        working = sum(state in ("starting", "running", "closing") for state in mine)
        out.append(f"{kind}s {working}/{len(mine)}")
    for worker in status["workers"].values():
        out += [f"{name} {value:.4g}" for name, value in worker.get("numbers", {}).items()]
    out.append(status["waits"])
    return out


def worker_lines(status: RunStatus) -> list[str]:
    """A line for each worker, up to a maximum number."""
    lines = []
    for name, worker in sorted(status["workers"].items()):
        task = worker["task_id"] or ""
        if worker.get("is_eval"):
            task += " (evaluation)"
        speed = ""
        if (rate := worker.get("samples_per_s")) is not None:
            speed = f"{rate:,.0f} samples/s"
        if (rate := worker.get("iters_per_s")) is not None:
            speed = f"{rate:,.0f} updates/s"
        waits = ""
        if worker["waits_for"]:
            share = worker["wait_shares"].get(worker["waits_for"], 0.0)
            waits = f"waits for {worker['waits_for']} ({share:.0%} of its time)"
        words = f"{name:<14}{worker['state']:<11}{task:<34}{speed:<18}{waits}"
        lines.append(words.rstrip())
    if len(lines) > MAX_LINES:
        lines[MAX_LINES - 1 :] = [f"... and {len(lines) - MAX_LINES + 1} workers more"]
    return lines


class RunView:
    """Shows the run on the console, if any, and in the log; the coordinator calls `draw`."""

    def __init__(self, console: Console | None, logger: logging.Logger) -> None:
        self._console, self._logger = console, logger
        self._evals: deque[float] = deque()
        self._repeats = RepeatFilter()

    def log(self, text: str, warning: bool = False) -> None:
        """Log one line with its time; repeated lines are thinned out."""
        text = one_line(text)
        with contextlib.suppress(Exception):  # a custom handler may raise
            self._logger.log(logging.WARNING if warning else logging.INFO, text)
        shown = self._repeats.passed(text)
        if self._console is not None and shown is not None:
            self._console.log(f"{time.strftime('%H:%M:%S')} {shown}")

    def failed(self, failure: TaskFailure) -> None:
        """A task failed, or a worker was lost."""
        task = f" (task {failure.task_id})" if failure.task_id else ""
        verb = "lost" if failure.lost else "failed"
        self.log(f"{failure.worker} {verb}{task}: {failure.cause}", warning=True)

    def evaluated(self, reward: float) -> None:
        """An evaluation has ended; shown at the next `draw`."""
        self._evals.append(reward)

    def draw(self, status: Callable[[], RunStatus], at_end: bool = False) -> None:
        """Update the display if it is time."""
        if self._console is None or not (at_end or self._evals or self._console.is_due):
            return
        now = status()
        evals = [self._evals.popleft() for _ in range(len(self._evals))]
        buffers = list(now["buffers"].values())
        fill = (sum(b["count"] for b in buffers), sum(b["capacity"] for b in buffers))
        self._console.update(
            envstep=now["envstep"],
            train_iter=now["train_iter"],
            episode_return=now["episode_return"],
            eval_return=evals[-1] if evals else None,
            best_return=now["best_return"],
            buffer_fill=fill if buffers else None,
            extra=brief_facts(now),
            lines=worker_lines(now),
        )


def write_address(exp_name: str, address: tuple[str, int]) -> str:
    """Write the coordinator's address for ``ding status``; returns the file."""
    host, port = address
    facts = {"host": host, "port": port, "pid": os.getpid(), "process": process_identity()}
    path = os.path.join(exp_name, "coordinator.json")
    try:
        os.makedirs(exp_name, exist_ok=True)
        write_facts(path, facts)
    except OSError as err:
        raise CheckpointWriteError(
            f"cannot write {path}: {err.strerror}; choose another exp_name", err.errno
        ) from err
    return path
