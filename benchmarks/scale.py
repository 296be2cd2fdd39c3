"""Where one coordinator saturates: simulated workers, no environments and no network.

    python benchmarks/scale.py [--workers 16 64 256 1024] [--seconds 8] [--rate 100] [--draw 20000]

Each collector is a peer in this process that brings ``--rate`` samples a second, as many at a time
as the coordinator has it gather; one learner draws ``--draw`` samples a second in batches of 64.
Printed for each number of collectors: the processor time of the process, simulation included, as a
share of one core; samples a second in and out; how late questions are: what passes from an answer
to the next question, median and 95th percentile.
"""

import argparse
import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.utils import COMMANDER_REGISTRY
from ding.worker import Coordinator, NaiveCommander
from ding.worker.engines.carrier import Stores
from ding.worker.engines.local import LocalCarrier
from ding.worker.messages import (
    ChunkReport,
    CloseTask,
    CollectProgress,
    Demand,
    DemandRequest,
    ResourceRequest as _ResourceRequest,
    Resources,
    SamplesAnswer,
    SamplesRequest,
    StartTask,
    TaskReport,
    TrainAnswer,
    TrainRequest,
)
from ding.worker.seams import Arrival, Engine

BATCH, BATCHES = 64, 64


@COMMANDER_REGISTRY.register("benchmark_scale")
class Commander(NaiveCommander):
    """Gives a task to each worker, and never ends."""


class Peer:
    """A worker whose answers are made up."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self._answered: float | None = None
        self.over = threading.Event()

    def ask(self, request: Any, timeout: float) -> Any:
        if self._answered is not None:
            self.late.append(time.perf_counter() - self._answered)
        answer = self.answer(request)
        self._answered = time.perf_counter()
        return answer

    def answer(self, request: Any) -> Any:
        if isinstance(request, _ResourceRequest):
            return Resources()
        if isinstance(request, StartTask):
            self.task_id = str(request.info["task_id"])
            self.buffer_id = str(request.info.get("buffer_id"))
            return None
        assert isinstance(request, CloseTask)
        return TaskReport(self.task_id, {"real_episode_count": 0, "step_count": 0})


class Collector(Peer):
    """Brings samples at an even rate."""

    def __init__(self, name: str, rate: float) -> None:
        super().__init__()
        self._name, self._rate = name, rate
        self._steps = self._number = 0
        self._began = time.monotonic()

    def answer(self, request: Any) -> Any:
        if not isinstance(request, SamplesRequest):
            return super().answer(request)
        self.over.wait(request.gather)
        rows = int((time.monotonic() - self._began) * self._rate) - self._steps
        self._steps += rows
        chunks = []
        if rows:
            self._number += 1
            name = f"{self.buffer_id}.{self._name}.{self._number}"
            meta = {"sample_num": rows, "collect_iter": 0, "cur_step": self._steps}
            chunks.append(ChunkReport(name, self.task_id, self.buffer_id, 60 * rows, meta))
        info = {"cur_step": self._steps, "cur_sample": self._steps, "collector_done": False}
        return SamplesAnswer(
            tuple(chunks), CollectProgress(self.task_id, False, None, 0, None, info)
        )


class Learner(Peer):
    """Wants many batches at once, and trains on them at an even rate."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate = rate
        self.drawn = self.taken_in = 0

    def answer(self, request: Any) -> Any:
        if isinstance(request, DemandRequest):
            return Demand(self.task_id, BATCH, 0, BATCHES, buffer_id=self.buffer_id)
        if not isinstance(request, TrainRequest):
            return super().answer(request)
        self.drawn += BATCH * request.draws
        self.over.wait(BATCH * request.draws / self._rate)
        self.taken_in += sum(int(str(chunk.meta["sample_num"])) for chunk in request.chunks)
        info = {"learner_step": self.drawn // BATCH, "learner_done": False}
        return TrainAnswer(
            *(self.task_id, self.buffer_id, self.drawn // BATCH, False),
            *(request.draws, BATCHES, 0, None, None, None, (), (), {}, info),
            received=tuple(chunk.data_id for chunk in request.chunks),
            own_rows=self.taken_in,
        )


class Control:
    """Lets the simulated workers come."""

    address = None

    def __init__(self, peers: dict[str, Peer]) -> None:
        self._peers = peers

    def start(self, arrivals: Any) -> None:
        for name, peer in self._peers.items():
            arrivals.came(Arrival(name.rstrip("0123456789"), name, peer, "here"))  # type: ignore[arg-type]

    def release(self, arrival: Arrival, cause: str) -> None:
        pass

    def awaited(self) -> list[Any]:
        return []

    def close(self, timeout: float) -> bool:
        for peer in self._peers.values():
            peer.over.set()
        return True


def engine_of(peers: dict[str, Peer], exp_name: str) -> Engine:
    """Everything that the coordinator needs, in this process."""
    stores = Stores.of(LocalCarrier({}, exp_name))
    return Engine(Control(peers), stores.samples, stores.weights, stores.artifacts)


@contextlib.contextmanager
def coordinator_of(peers: dict[str, Peer]) -> Iterator[Coordinator]:
    count = len(peers) - 1
    space = {"collector_task_space": count, "learner_task_space": 1, "eval_interval": 1e9}
    other = {
        "commander": {"type": "benchmark_scale", **space},
        "replay_buffer": {"type": "naive", "replay_buffer_size": 1_000_000},
    }
    policy = {"other": other, "learn": {"learner": {}}, "collect": {}}
    system = {"coordinator": {"samples_per_insert": None}}
    with tempfile.TemporaryDirectory() as folder:
        main = {"exp_name": os.path.join(folder, "exp"), "policy": policy}
        cfg = EasyDict(main=main, system=system)
        coordinator = Coordinator(cfg, engine=engine_of(peers, main["exp_name"]))
        coordinator.start()
        try:
            yield coordinator
        finally:
            coordinator.close()


def measure(count: int, rate: float, draw: float, seconds: float) -> str:
    """A row of the table."""
    names = [f"collector{i}" for i in range(count)]
    peers: dict[str, Peer] = {name: Collector(name, rate) for name in names}
    learner = peers["learner0"] = Learner(draw)
    with coordinator_of(peers) as coordinator:
        deadline = time.monotonic() + 60
        while _running(coordinator) <= count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not all of {count} workers came to work")
            time.sleep(0.2)
        time.sleep(2.0)
        for peer in peers.values():
            peer.late.clear()
        begin, cpu = time.monotonic(), time.process_time()
        steps, drawn = coordinator.status()["envstep"], learner.drawn
        time.sleep(seconds)
        took, cpu = time.monotonic() - begin, time.process_time() - cpu
        steps, drawn = coordinator.status()["envstep"] - steps, learner.drawn - drawn
        late = np.concatenate([peer.late for name, peer in peers.items() if name != "learner0"])
    middle, most = (1e3 * np.percentile(late, share) for share in (50, 95))
    cells = [
        *(str(count), f"{cpu / took:.0%}", f"{cpu / took / count:.2%}"),
        f"{len(late) / took:,.0f}",
        f"{steps / took:,.0f} of {rate * count:,.0f}",
        f"{drawn / took:,.0f}",
        f"{middle:.1f} / {most:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _running(coordinator: Coordinator) -> int:
    return sum(w["state"] == "running" for w in coordinator.status()["workers"].values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", nargs="+", type=int, default=[16, 64, 256, 1024])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--rate", type=float, default=100.0, help="samples/s of each collector")
    parser.add_argument("--draw", type=float, default=20_000.0, help="samples/s of the learner")
    args = parser.parse_args()
    head = ["collectors", "of a core", "each", "questions/s", "samples/s in"]
    head += ["drawn/s", "late, ms"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for count in args.workers:
        print(measure(count, args.rate, args.draw, args.seconds), flush=True)


if __name__ == "__main__":
    main()
