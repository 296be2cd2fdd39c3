"""Where one coordinator saturates: simulated workers, whose answers cost next to nothing.

    python benchmarks/scale.py [--engines local flask_fs ray] [--workers 16 64 256 1024]
                               [--seconds 8] [--rate 100] [--draw 20000] [--processes 4]

Each collector brings ``--rate`` samples a second, as many at a time as the coordinator has it
gather; one learner draws ``--draw`` samples a second in batches of 64. On ``local`` all are threads
of the coordinator's process. On ``flask_fs`` (HTTP with TLS, a shared folder) and ``ray`` (actors,
an object store) they share ``--processes`` processes, and everything travels as in a real run.

Printed for each number of collectors: how many of them are at work at the end; the processor time
of the coordinator's process as a share of one core, and of it for each worker; that of the other
processes (workers, Ray's own); requests a second; samples a second in and out; how late requests
are: what passes from an answer to the next request, median and 95th percentile.
"""

import argparse
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _simulated import BATCH, KEY, spec_of, waits_of
from easydict import EasyDict

from ding.utils import COMMANDER_REGISTRY
from ding.worker import Coordinator, NaiveCommander
from ding.worker.engines.carrier import Carrier, Stores
from ding.worker.engines.control import RunControl
from ding.worker.engines.local import LocalCarrier
from ding.worker.seams import Engine

HERE = Path(__file__).resolve().parent
ENGINES = ("local", "flask_fs", "ray")
#: Seconds in which workers may come; seconds in which the run settles before it is measured, or
#: fewer if the measurement itself is shorter.
COME, SETTLE = 120.0, 3.0


@COMMANDER_REGISTRY.register("benchmark_scale")
class Commander(NaiveCommander):
    """Gives a task to each worker, and never ends."""


@contextlib.contextmanager
def coordinator_of(
    engine: str, names: list[str], rates: tuple[float, float], processes: int, folder: str
) -> Iterator[Coordinator]:
    """A coordinator whose workers are on their way."""
    space = {"collector_task_space": len(names) - 1, "learner_task_space": 1, "eval_interval": 1e9}
    other = {
        "commander": {"type": "benchmark_scale", **space},
        "replay_buffer": {"type": "naive", "replay_buffer_size": 1_000_000},
    }
    policy = {"other": other, "learn": {"learner": {}}, "collect": {}}
    paths = {name: os.path.join(folder, name.removeprefix("path_")) for name in PATHS}
    system = {"host": None, "port": 0, "run_key": KEY, "samples_per_insert": None, **paths}
    main = {"exp_name": os.path.join(folder, "exp"), "policy": policy}
    cfg = EasyDict(main=main, system={"coordinator": system})
    with contextlib.ExitStack() as stack:
        made = None
        if engine != "flask_fs":
            carrier = carrier_of(engine, main["exp_name"], processes, len(names))
            carrier.open()
            stack.callback(carrier.close)
            specs = [spec_of(name, folder, *rates) for name in names]
            stores = Stores.of(carrier)
            control = RunControl(carrier, specs, max_restart=0)
            made = Engine(control, stores.samples, stores.weights, stores.artifacts)
        coordinator = Coordinator(cfg, engine=made)
        coordinator.start()
        stack.callback(coordinator.close)
        if engine == "flask_fs":
            stack.enter_context(http_workers(coordinator.port, folder, rates, names, processes))
            stack.callback(coordinator.close)  # before its workers are
        yield coordinator


PATHS = ("path_data", "path_policy")


def carrier_of(engine: str, exp_name: str, processes: int, workers: int) -> Carrier[Any]:
    if engine == "local":
        return LocalCarrier({}, exp_name)
    from _crowded_ray import CrowdedRay

    return CrowdedRay(exp_name, processes, workers)


@contextlib.contextmanager
def http_workers(
    port: int, folder: str, rates: tuple[float, float], names: list[str], processes: int
) -> Iterator[None]:
    script = str(HERE / "_simulated.py")
    given = [str(port), folder, *map(str, rates)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    children = [
        subprocess.Popen([sys.executable, script, *given, *share], stdin=subprocess.PIPE, env=env)
        for share in (names[first::processes] for first in range(processes))
        if share
    ]
    try:
        yield
    finally:
        for child in children:
            child.stdin.close()  # type: ignore[union-attr]
        for child in children:
            try:
                child.wait(20.0)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def measure(
    engine: str, count: int, rate: float, draw: float, seconds: float, processes: int
) -> str:
    """A row of the table."""
    names = ["learner0", *(f"collector{number}" for number in range(count))]
    with tempfile.TemporaryDirectory() as folder:
        with coordinator_of(engine, names, (rate, draw), processes, folder) as coordinator:
            wait_for_all(coordinator, count + 1)
            time.sleep(min(SETTLE, seconds))
            begin, cpu, others = time.monotonic(), time.process_time(), cpu_of_others()
            before = coordinator.status()
            time.sleep(seconds)
            end, cpu = time.monotonic(), time.process_time() - cpu
            after, others = coordinator.status(), cpu_of_others() - others
            working = at_work(coordinator) - 1
        waits = 1e3 * waits_of(folder, begin, end)
    took = end - begin
    steps, updates = (after[key] - before[key] for key in ("envstep", "train_iter"))
    late = (
        "none" if not len(waits) else " / ".join(f"{x:.1f}" for x in np.percentile(waits, [50, 95]))
    )
    cells = [
        *(engine, str(count), str(working), f"{cpu / took:.0%}", f"{cpu / took / count:.2%}"),
        f"{others / took:.0%}",
        f"{len(waits) / took:,.0f}",
        f"{steps / took:,.0f} of {rate * count:,.0f}",
        f"{BATCH * updates / took:,.0f}",
        late,
    ]
    return f"| {' | '.join(cells)} |"


def wait_for_all(coordinator: Coordinator, count: int) -> None:
    deadline = time.monotonic() + COME
    while at_work(coordinator) < count and time.monotonic() < deadline:
        time.sleep(0.2 + count / 500)  # the status of a thousand workers takes a while


def at_work(coordinator: Coordinator) -> int:
    return sum(w["state"] == "running" for w in coordinator.status()["workers"].values())


def cpu_of_others() -> float:
    """Seconds of processor time of the processes that this one, or one of these, has started."""
    parents, times = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            times[int(entry.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    ours, size = {os.getpid()}, 0
    while len(ours) > size:
        size = len(ours)
        ours.update(pid for pid, parent in parents.items() if parent in ours)
    return sum(times.get(pid, 0.0) for pid in ours - {os.getpid()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--workers", nargs="+", type=int, default=[16, 64, 256, 1024])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--rate", type=float, default=100.0, help="samples/s of each collector")
    parser.add_argument("--draw", type=float, default=20_000.0, help="samples/s of the learner")
    parser.add_argument("--processes", type=int, default=4, help="that workers share")
    args = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    head = [
        "engine",
        "collectors",
        "at work",
        "coordinator: of a core",
        "each",
        "others: of a core",
    ]
    head += ["requests/s", "samples/s in", "drawn/s", "late, ms"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for count in args.workers:
        for engine in args.engines:
            row = measure(engine, count, args.rate, args.draw, args.seconds, args.processes)
            print(row, flush=True)


if __name__ == "__main__":
    main()
