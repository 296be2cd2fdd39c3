"""The facts of a parallel run as others see them: `GET /status` and the console."""

import time
from collections.abc import Mapping
from typing import Any

from ding.worker.seams import Awaited

from .comm_coordinator import CommCoordinator
from .reported_values import as_number
from .run_facts import RunFacts
from .task_scheduler import TaskTable
from .worker_session import WorkerSession

_RATIO = "samples_per_insert"
#: Lines for workers that the live display has room for.
MAX_LINES = 12


def worker_status(session: WorkerSession, facts: RunFacts) -> dict[str, Any]:
    """One worker's state, task and rate."""
    job, state = session.job, session.state
    status: dict[str, Any] = {
        "kind": session.kind,
        "state": state,
        "address": session.arrival.where,
        "pid": session.arrival.pid,
        "task_id": None if job is None else job.task_id,
        "since_s": round(time.monotonic() - session.since, 1),
        "waits_for": "task" if state == "idle" else None if job is None else job.waits_for,
    }
    if session.kind == "collector":
        status["samples_per_s"] = _rounded(facts.rate_of(session.name))
        status["is_eval"] = job is not None and job.is_eval
    else:
        status["iters_per_s"] = _rounded(job and job.info.get("iters_per_second"))
        status["wait_share"] = as_number(job and job.info.get("wait_share"))
    return status


def awaited_status(worker: Awaited) -> dict[str, Any]:
    """The same of a worker that is not there."""
    status = {"kind": worker.kind, "state": "connecting", "address": worker.where}
    rates = {"samples_per_s": None} if worker.kind == "collector" else {"iters_per_s": None}
    return {**status, "pid": None, "task_id": None, "since_s": None, "waits_for": None, **rates}


def buffer_status(buffer: Any) -> dict[str, Any]:
    """A buffer's fill."""
    return {
        "count": buffer.count(),
        "capacity": buffer.capacity,
        "bytes": buffer.bytes,
        "max_bytes": buffer.max_bytes,
        "files": buffer.files,
        _RATIO: buffer.samples_per_insert,
    }


def who_waits(workers: Mapping[str, Mapping[str, Any]]) -> str:
    """Who cannot go on, and for what."""
    waits = []
    for kind in ("learner", "collector"):
        mine = [worker for worker in workers.values() if worker["kind"] == kind]
        reachable = [worker for worker in mine if worker["state"] not in ("connecting", "gone")]
        if not reachable:
            waits.append(f"no {kind} is connected")
            continue
        held: dict[str, int] = {}
        for worker in reachable:
            if worker["waits_for"] is not None:
                held[worker["waits_for"]] = held.get(worker["waits_for"], 0) + 1
        for what, count in held.items():
            one = len(mine) == 1
            who = f"{kind} waits" if one else f"{count} of {len(mine)} {kind}s wait"
            waits.append(f"{who} for {_WHAT.get(what, what)}")
    return "; ".join(waits) or "nobody waits"


_WHAT = {
    "task": "a task",
    "space": "space in path_data",
    "disk": "space on the disk",
    "learner": "the learner (samples per insert)",
    "collectors": "collectors (samples per insert)",
}


def run_status(
    facts: RunFacts,
    table: TaskTable,
    comm: CommCoordinator,
    buffers: Mapping[str, Any],
) -> dict[str, Any]:
    """All but the run's name and verdict."""
    workers = {worker.name: awaited_status(worker) for worker in comm.awaited()}
    workers.update({one.name: worker_status(one, facts) for one in comm.sessions()})
    return {
        "seconds": round(time.monotonic() - facts.started, 1),
        "envstep": facts.envstep,
        "train_iter": facts.train_iter,
        "episodes": facts.episodes,
        "episode_return": facts.episode_return,
        "best_return": facts.best_return,
        "last_eval_return": facts.last_eval_return,
        "buffers": {name: buffer_status(buffer) for name, buffer in buffers.items()},
        "data_rate": facts.data_rate(),
        "policy": facts.policies(),
        "workers": workers,
        "tasks": table.counts(),
        "waits": who_waits(workers),
        "troubles": dict(facts.troubles),
        "failures": list(facts.failures),
    }


def brief_facts(status: Mapping[str, Any]) -> list[str]:
    """The facts that serial mode does not have, each a few words."""
    rate = status["data_rate"]
    out = [f"{rate['samples_per_s']:,.0f} samples/s", f"{rate['bytes_per_s'] / 1e6:.2f} MB/s"]
    lags = [p["lag_iters"] for p in status["policy"].values() if p["lag_iters"] is not None]
    if lags:
        out.append(f"policy lag {max(lags):,} iters")
    used = sum(buffer["bytes"] for buffer in status["buffers"].values())
    if used:
        out.append(f"data files {used / 1e6:,.1f} MB")
    out += [_ratio_words(ratio) for b in status["buffers"].values() if (ratio := b.get(_RATIO))]
    for kind in ("collector", "learner"):
        mine = [w["state"] for w in status["workers"].values() if w["kind"] == kind]
        working = sum(state in ("starting", "running", "closing") for state in mine)
        out.append(f"{kind}s {working}/{len(mine)}")
    out.append(status["waits"])
    return out


def _ratio_words(ratio: Mapping[str, float | None]) -> str:
    reached = "no" if ratio["reached"] is None else f"{ratio['reached']:.3g}"
    return f"{reached} of {ratio['target']:.3g} samples/insert"


def worker_lines(status: Mapping[str, Any]) -> list[str]:
    """A line for each worker, as far as there is room."""
    lines = []
    for name, worker in sorted(status["workers"].items()):
        task = worker["task_id"] or ""
        if worker.get("is_eval"):
            task += " (evaluation)"
        rate = worker.get("samples_per_s"), worker.get("iters_per_s")
        speed = f"{rate[0]:,.0f} samples/s" if rate[0] is not None else ""
        speed = f"{rate[1]:,.0f} updates/s" if rate[1] is not None else speed
        waits = f"waits for {worker['waits_for']}" if worker["waits_for"] else ""
        words = f"{name:<14}{worker['state']:<11}{task:<34}{speed:<18}{waits}"
        lines.append(words.rstrip())
    if len(lines) > MAX_LINES:
        lines[MAX_LINES - 1 :] = [f"... and {len(lines) - MAX_LINES + 1} workers more"]
    return lines


def _rounded(value: Any) -> float | None:
    number = as_number(value)
    return None if number is None else round(number, 1)
