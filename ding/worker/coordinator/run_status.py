"""The facts of a parallel run, for `GET /status` and those who show them."""

from collections import Counter
from collections.abc import Mapping
from typing import TypedDict

from ding.worker.messages import Kind
from ding.worker.seams import Awaited

from .buffer_pace import RatioStatus
from .chunk_buffer import ChunkBuffer
from .reported_values import as_number, usage_figures
from .run_facts import DataRate, FailureStatus, PolicyStatus, RunFacts
from .worker_session import WorkerSession

#: Smaller shares of the time are not shown.
SHOWN_SHARE = 0.01


class WorkerStatus(TypedDict, total=False):
    """One worker: its state, for how many seconds, its task and what it waits for, with the shares
    of the last seconds that it has waited for that and for other things, and what its process uses
    of the machine (`ding.utils.usage.FIGURES`). Of collectors in addition ``samples_per_s`` and
    ``is_eval``, of learners ``iters_per_s`` and ``wait_share`` for batches.
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

    ``state`` is ``running`` or that of the ending, ``reason`` its reason; ``seconds`` since the
    start; ``tasks`` counts by stage; ``waits`` says who waits for whom, and for which share of the
    time; ``troubles`` what keeps workers from a part of their work, by their names.
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
    """One worker's state, task and rate; of one that is not there, where it should be."""
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
    return status


def buffer_status(buffer: ChunkBuffer) -> BufferStatus:
    """A buffer's fill."""
    return {
        "count": buffer.count(),
        "capacity": buffer.capacity,
        "bytes": buffer.bytes,
        "max_bytes": buffer.max_bytes,
        "files": buffer.files,
        "samples_per_insert": buffer.pace.ratio_status(),
    }


def who_waits(workers: Mapping[str, WorkerStatus]) -> str:
    """Who waits, for what, and for which share of the time; of several workers, the mean."""
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
