"""Workers whose answers cost next to nothing, on any engine; many of them share a process.

    python benchmarks/_simulated.py PORT FOLDER RATE DRAW collector0 collector1 ...

serves workers over HTTP until its stdin ends.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ding.data import Columns
from ding.utils import durations
from ding.worker.engines.carrier import Stores, WorkerSpec
from ding.worker.engines.http_worker import HttpWorker
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from ding.worker.messages import (
    ChunkReport,
    CloseTask,
    CollectProgress,
    Demand,
    DemandRequest,
    ResourceRequest,
    Resources,
    SamplesAnswer,
    SamplesRequest,
    StartTask,
    TaskReport,
    TrainAnswer,
    TrainRequest,
)

BATCH = 64
KEY = "benchmark"
#: Seconds that the next worker of a process waits for one to join: hosts start theirs in turns.
JOIN_LIMIT = 20.0


class SimulatedSpec(WorkerSpec):
    """Of a worker that shares its process with others, which stays as it is."""

    def settle_process(self) -> None:
        pass


class Simulated:
    """A worker. When it closes, it writes when each request came, and how long it had waited for
    it since its last answer: `waits_of` reads that.

    Args:
        spec: Its entry has ``rate`` and ``draw``, samples per second, and ``folder``.
    """

    failed = None

    def __init__(self, spec: WorkerSpec, stores: Stores) -> None:
        self.name, self.kind, self._stores = spec.name, spec.kind, stores
        self.entry: Mapping[str, Any] = spec.entry
        self.over = threading.Event()
        self._waits: list[tuple[float, float]] = []
        self._answered: float | None = None

    def start(self) -> None:
        """It needs none."""

    def handle(self, request: Any) -> Any:
        now = time.monotonic()
        if self._answered is not None:
            self._waits.append((now, now - self._answered))
        answer = self.answer(request)
        self._answered = time.monotonic()
        return answer

    def answer(self, request: Any) -> Any:
        if isinstance(request, ResourceRequest):
            return Resources()
        if isinstance(request, StartTask):
            self.task_id = str(request.info["task_id"])
            self.buffer_id = str(request.info.get("buffer_id"))
            return None
        assert isinstance(request, CloseTask)
        return TaskReport(self.task_id, {"real_episode_count": 0, "step_count": 0})

    def coordinator_lost(self, cause: str) -> None:
        self.close()

    def released(self) -> None:
        self.close()

    def close(self) -> None:
        if not self.over.is_set():
            self.over.set()
            np.save(Path(self.entry["folder"], f"{self.name}.npy"), np.array(self._waits))

    def join(self, timeout: float | None = None) -> bool:
        return self.over.wait(timeout)


class Collector(Simulated):
    """Brings samples at an even rate."""

    _steps = _number = 0
    _began: float | None = None

    def answer(self, request: Any) -> Any:
        if not isinstance(request, SamplesRequest):
            return super().answer(request)
        self.over.wait(request.gather)
        self._began = self._began or time.monotonic()
        rows = int((time.monotonic() - self._began) * self.entry["rate"]) - self._steps
        self._steps += rows
        chunks = [self._chunk(rows)] if rows else []
        info = {"cur_step": self._steps, "cur_sample": self._steps, "collector_done": False}
        progress = CollectProgress(self.task_id, False, None, 0, None, info)
        return SamplesAnswer(tuple(chunks), progress)

    def _chunk(self, rows: int) -> ChunkReport:
        self._number += 1
        name = f"{self.buffer_id}.{self.name}.{self._number}"
        size = self._stores.samples.put(name, Columns({"x": np.zeros((rows, 8), np.float32)}))
        meta = {"sample_num": rows, "collect_iter": 0, "cur_step": self._steps}
        return ChunkReport(name, self.task_id, self.buffer_id, size, meta)


class Learner(Simulated):
    """Trains at an even rate on what it may draw, and asks for more when half of what it wants to
    have ready is used up, the more of it the later it is answered, as a real one does
    (`BatchFeed`); it reads no samples."""

    _ready = _trained = _latency = 0.0
    _taken_in = 0
    _seen: float | None = None

    def answer(self, request: Any) -> Any:
        if isinstance(request, DemandRequest):
            return Demand(self.task_id, BATCH, 0, self._wanted(), buffer_id=self.buffer_id)
        if not isinstance(request, TrainRequest):
            return super().answer(request)
        self._train()
        if self._answered is not None:
            self._latency += 0.3 * (time.monotonic() - self._answered - self._latency)
        self._ready += BATCH * request.draws
        self._taken_in += sum(int(str(chunk.meta["sample_num"])) for chunk in request.chunks)
        self.over.wait(max(0.0, self._ready / self.entry["draw"] - self._ahead / 2))
        self._train()
        updates = int(self._trained) // BATCH
        info = {"learner_step": updates, "learner_done": False}
        return TrainAnswer(
            *(self.task_id, self.buffer_id, updates, False),
            *(request.draws, self._wanted(), 0, None, None, None, (), (), {}, info),
            received=tuple(chunk.data_id for chunk in request.chunks),
            own_rows=self._taken_in,
        )

    @property
    def _ahead(self) -> float:
        """Seconds of training for which batches are to be ready."""
        return durations.BATCHES_AHEAD + 2 * self._latency

    def _wanted(self) -> int:
        return max(1, int((self._ahead * self.entry["draw"] - self._ready) / BATCH))

    def _train(self) -> None:
        before, self._seen = self._seen, time.monotonic()
        if before is not None:
            done = min(self._ready, (self._seen - before) * self.entry["draw"])
            self._trained += done
            self._ready -= done


def simulated(spec: WorkerSpec, stores: Stores) -> Simulated:
    return (Collector if spec.kind == "collector" else Learner)(spec, stores)


def spec_of(name: str, folder: str, rate: float, draw: float) -> SimulatedSpec:
    kind: Any = name.rstrip("0123456789")
    return SimulatedSpec(name, kind, simulated, {"folder": folder, "rate": rate, "draw": draw})


def waits_of(folder: str, begin: float, end: float) -> np.ndarray:
    """Seconds that each request to a collector came after the last answer, between two times."""
    files = list(Path(folder).glob("collector*.npy"))
    found = np.concatenate([np.load(path).reshape(-1, 2) for path in files])
    return found[(begin <= found[:, 0]) & (found[:, 0] < end), 1]


def serve(port: int, folder: str, rate: float, draw: float, names: list[str]) -> None:
    stores = Stores(
        SharedFolderSamples(f"{folder}/data"),
        SharedFolderWeights(f"{folder}/policy"),
        FolderArtifacts(folder),
    )
    with contextlib.ExitStack() as stack:
        for name in names:
            service = simulated(spec_of(name, folder, rate, draw), stores)
            cfg = {"name": name, "coordinator": ("127.0.0.1", port), "run_key": KEY}
            worker = HttpWorker(service, cfg, service.coordinator_lost)
            stack.callback(worker.close)
            stack.callback(service.close)
            worker.start()
            deadline = time.monotonic() + JOIN_LIMIT
            while not worker.in_touch(JOIN_LIMIT) and time.monotonic() < deadline:
                time.sleep(0.01)
        sys.stdin.read()


if __name__ == "__main__":
    at, place, *rates = sys.argv[1:5]
    serve(int(at), place, float(rates[0]), float(rates[1]), sys.argv[5:])
