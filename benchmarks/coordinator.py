"""The cost of a coordinator: its processor time with N connected workers.

    python benchmarks/coordinator.py [--workers 1 16 64 256] [--seconds 10]

The workers are slaves in other processes. Idle ones only give signs of life; busy ones are
collectors that send a chunk's metadata twice a second. Printed is the processor time of the
coordinator's process as a share of one core; for idle workers the first start-up is left out.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from _timing import Figure
from easydict import EasyDict

from ding.interaction import Slave
from ding.utils import COMMANDER_REGISTRY
from ding.worker import Coordinator, NaiveCommander
from ding.worker.engines.http_worker import Joiner

GOAL_WORKERS, GOAL_SHARE = 64, 0.10
#: Rounds at most: each takes half a minute.
MOST_ROUNDS = 3
PER_PROCESS = 64
KEY = "benchmark"


class Collector(Slave):
    """Sends metadata of a chunk of 16 samples at each request, for ever."""

    def _process_task(self, task: Any) -> Any:
        name = task["name"]
        if name == "resource":
            return {"cpu": 1, "gpu": 0, "ours": 1}
        if name == "collector_start_task":
            self.ids = {key: task["task_info"][key] for key in ("task_id", "buffer_id")}
            self.count = 0
        if name == "collector_data_task":
            time.sleep(task["wait"])
            self.count += 1
            steps = {"cur_step": 16 * self.count, "cur_sample": 16 * self.count}
            name = f"{self.ids['task_id']}_{self.count}"
            meta = {"data_id": name, "sample_num": 16, "size": 1000, "policy_iter": 1}
            return [{**self.ids, **steps, **meta}, {**self.ids, **steps, "collector_done": False}]
        return {}


@COMMANDER_REGISTRY.register("benchmark")
class Commander(NaiveCommander):
    """Gives no task to idle workers, and one to each busy one."""

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        self.busy = cfg.policy.other.commander.busy

    def get_collector_task(self) -> dict | None:
        return super().get_collector_task() if self.busy else None


def serve(first: int, count: int, port: int) -> None:
    slaves = [Collector(port=0, key=KEY, heartbeat_span=2.0) for _ in range(count)]
    with contextlib.ExitStack() as stack:
        for number, slave in enumerate(slaves, first):
            stack.enter_context(slave)
            joiner = Joiner(
                (None, port), "collector", f"collector{number}", partial(_address, slave), KEY
            )
            stack.callback(joiner.close)
            joiner.start()
        sys.stdin.read()


def _address(slave: Slave) -> str:
    return slave.my_address


@contextlib.contextmanager
def workers(count: int, port: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for first in range(0, count, PER_PROCESS):
            size = min(PER_PROCESS, count - first)
            command = [sys.executable, __file__, "--serve", str(first), str(size), str(port)]
            child = subprocess.Popen(command, stdin=subprocess.PIPE)
            stack.callback(child.wait)
            stack.callback(child.kill)
        yield


def cost(count: int, busy: bool, seconds: float) -> tuple[float, float]:
    """Share of a core, and samples per second, of a coordinator with `count` workers."""
    commander = {"type": "benchmark", "collector_task_space": count, "busy": busy}
    buffer = {"type": "naive", "replay_buffer_size": 100_000}
    other = {"commander": commander, "replay_buffer": buffer}
    system = {"host": None, "port": 0, "run_key": KEY, "path_data": "data", "path_policy": "policy"}
    main = {"exp_name": "exp", "policy": {"other": other, "learn": {"learner": {}}, "collect": {}}}
    coordinator = Coordinator(EasyDict(main=main, system={"coordinator": system}))
    coordinator.start()
    try:
        with workers(count, coordinator.port):
            deadline = time.monotonic() + 120
            state = "running" if busy else "idle"
            while (there := _states(coordinator).count(state)) < count:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{there} of {count} workers came")
                time.sleep(0.1)
            time.sleep(2.0)
            begin, cpu = time.monotonic(), time.process_time()
            steps = coordinator.status()["envstep"]
            time.sleep(seconds)
            took = time.monotonic() - begin
            cpu = time.process_time() - cpu
            if (there := _states(coordinator).count(state)) < count:
                raise RuntimeError(f"only {there} of {count} workers are still {state}")
            return cpu / took, (coordinator.status()["envstep"] - steps) / took
    finally:
        coordinator.close()


def measure(rounds: int, seconds: float) -> list[Figure]:
    """Cost of 64 idle workers, and of one among 256 against one among 16."""
    rounds, counts = min(rounds, MOST_ROUNDS), (16, GOAL_WORKERS, 256)
    found: dict[int, list[float]] = {count: [] for count in counts}
    folder = os.getcwd()
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        for _ in range(rounds):
            for count in counts:
                found[count].append(cost(count, False, max(seconds, 5.0))[0])
        os.chdir(folder)
    few, goal, many = ([100 * share for share in found[count]] for count in counts)
    limit = [100 * GOAL_SHARE] * rounds
    each = [share / 256 for share in many], [share / 16 for share in few]
    return [
        Figure(f"coordinator, {GOAL_WORKERS} idle workers", goal, limit, "limit", 1, "%", True),
        Figure("coordinator, each of 256 idle workers", *each, "each of 16", 1.5, "%", True),
    ]


def _states(coordinator: Coordinator) -> list[str]:
    return [worker["state"] for worker in coordinator.status()["workers"].values()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", nargs=3, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 16, 64, 256])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    args = parser.parse_args()
    if args.serve:
        serve(*args.serve)
        return 0
    missed = False
    print("| workers | idle: of a core | each | busy: of a core | each | samples/s |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for count in args.workers:
            idle, _ = cost(count, False, args.seconds)
            busy, samples = cost(count, True, args.seconds)
            cells = [f"{share:.1%} | {share / count:.3%}" for share in (idle, busy)]
            print(f"| {count} | {cells[0]} | {cells[1]} | {samples:,.0f} |", flush=True)
            missed |= count == GOAL_WORKERS and idle > GOAL_SHARE
        os.chdir("/")
    verdict = "missed" if missed else "reached"
    print(f"goal: {GOAL_WORKERS} idle workers <= {GOAL_SHARE:.0%}: {verdict}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
