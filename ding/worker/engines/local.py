"""A run in threads of one process: for tests, and for runs of a few seconds."""

import contextlib
import copy
import itertools
import logging
import queue
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from typing import Any, TypeVar

from ding.data import Columns, IdColumn, as_columns, tree_map
from ding.utils import ENGINE_REGISTRY, durations, set_pkg_seed
from ding.utils.errors import ChunkError
from ding.utils.system_helper import ReportingThread
from ding.worker.engines.carrier import Carrier, OnDeath, Worker, WorkerSpec
from ding.worker.messages import Request, StartTask
from ding.worker.seams import Samples, Weights

Answer = TypeVar("Answer")

_logger = logging.getLogger(__name__)

#: Workers share the process's random generators, which are seeded for the one being built.
_starting = threading.Lock()
#: Assumed bytes of a number or string in a row.
_SCALAR_BYTES = 8


class LocalWorker:
    """A worker in its own thread.

    Args:
        spec: Its specification.
        carrier: The store of its samples and weights.
        on_death: Called when it has ended by itself.
    """

    def __init__(self, spec: WorkerSpec, carrier: "LocalCarrier", on_death: OnDeath) -> None:
        self.name, self._seed = spec.name, spec.seed
        self._worker = Worker.of(spec, carrier)
        self._on_death = on_death
        self._gone: Future[str] = Future()  # the cause of its end
        self._calls: queue.SimpleQueue[tuple[Request[Any], Future[Any]] | None]
        self._calls = queue.SimpleQueue()
        self._thread = ReportingThread(self._run, spec.name, self.end)
        self._closer = ReportingThread(self._worker.close, f"{spec.name}-close", _logger.warning)
        self._thread.start()

    def call(self, request: Request[Answer], timeout: float) -> Answer:
        future: Future[Answer] = Future()
        self._calls.put((request, future))
        either: list[Future[Any]] = [future, self._gone]
        wait(either, timeout, FIRST_COMPLETED)
        if future.done():
            return future.result()
        if self._gone.done():
            raise EOFError(self._gone.result())
        raise TimeoutError

    def end(self, cause: str, is_death: bool = True) -> None:
        """End it without waiting for its work; open calls fail at once."""
        try:
            self._gone.set_result(cause)
        except InvalidStateError:  # it has ended before
            return
        self._calls.put(None)
        self._closer.start()  # a service may be slow to close, or hang
        if is_death:
            self._on_death(cause)

    def join(self, timeout: float) -> bool:
        """Whether it ends within ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        for thread in (self._thread, self._closer):
            thread.join(max(0.0, deadline - time.monotonic()))
        return not (self._thread.is_alive() or self._closer.is_alive())

    def _run(self) -> None:
        while (item := self._calls.get()) is not None:
            request, future = item
            try:
                answer = self._answer(request)
                if self._gone.done():  # the answer may be a result of its end
                    raise EOFError(self._gone.result())
                future.set_result(answer)
            except BaseException as error:  # raised in the caller
                future.set_exception(error)
            if self._worker.ended.is_set():
                self.end(self._worker.failed or "it has ended")

    def _answer(self, request: Request[Answer]) -> Answer:
        starts = isinstance(request, StartTask)
        with _starting if starts else contextlib.nullcontext():
            if starts:
                set_pkg_seed(self._seed, use_cuda=False)
            return self._worker.answer(request)


@ENGINE_REGISTRY.register("local")
class LocalCarrier(Carrier[LocalWorker]):
    """Workers are threads, samples and weights are objects in dicts; nothing leaves the process.

    Workers share random generators: a run is reproducible until two workers use them at the same
    time. Only states and logs are files. A worker that hangs is abandoned, since threads cannot be
    killed.
    """

    in_one_process = True

    def __init__(self, cfg: Mapping[str, Any], exp_name: str) -> None:
        super().__init__(cfg, exp_name)
        self._workers: dict[str, LocalWorker] = {}
        self._ended: list[LocalWorker] = []
        self._samples: dict[str, tuple[Samples, int]] = {}
        self._weights: dict[str, tuple[int, Weights]] = {}
        self._versions = itertools.count()

    # ------------------------------------------------------------------ workers

    def spawn(self, worker: WorkerSpec, on_death: OnDeath) -> LocalWorker:
        handle = self._workers[worker.name] = LocalWorker(worker, self, on_death)
        return handle

    def call(self, handle: LocalWorker, request: Request[Answer], timeout: float) -> Answer:
        return handle.call(request, timeout)

    def drop(self, handle: LocalWorker) -> None:
        handle.end("it was dropped", is_death=False)
        self._ended.append(handle)

    def kill(self, name: str) -> None:
        """Simulate the death of a worker's process; for tests."""
        self._workers[name].end("killed")

    def address(self, handle: LocalWorker) -> tuple[str, int | None]:
        return f"thread {handle.name}", None

    def close(self) -> None:
        deadline = time.monotonic() + durations.LOCAL_JOIN
        for worker in self._ended:
            worker.join(max(0.0, deadline - time.monotonic()))

    # ------------------------------------------------------------------ samples and weights

    def put(self, name: str, samples: Samples) -> int:
        columns = as_columns(samples)
        # A copy: a collector writes further steps to the arrays of its samples.
        kept = copy.deepcopy(samples if columns is None else columns)
        size = _bytes_of(kept)
        self._samples[name] = kept, size
        return size

    def get(self, name: str) -> Samples:
        found = self._samples.get(name)
        if found is None:
            raise ChunkError(name, "it is not there")
        samples = found[0]
        # A new container, since reading rows modifies it.
        return Columns(samples.columns) if isinstance(samples, Columns) else copy.deepcopy(samples)

    def size(self, name: str) -> int | None:
        found = self._samples.get(name)
        return None if found is None else found[1]

    def names(self) -> Iterable[str]:
        return list(self._samples)

    def remove(self, name: str) -> None:
        self._samples.pop(name, None)
        self._weights.pop(name, None)

    def publish(self, name: str, weights: Weights) -> None:
        # A copy: the learner's next update modifies these tensors.
        own = Weights(copy.deepcopy(weights.state), dict(weights.facts))
        self._weights[name] = next(self._versions), own

    def newest(self, name: str) -> Weights | None:
        found = self._weights.get(name)
        return None if found is None else found[1]

    def version(self, name: str) -> object:
        found = self._weights.get(name)
        return None if found is None else found[0]


def _bytes_of(samples: Samples) -> int:
    sizes: list[int] = []

    def note(leaf: Any) -> None:
        array = leaf.numbers if isinstance(leaf, IdColumn) else leaf
        sizes.append(int(getattr(array, "nbytes", _SCALAR_BYTES)))

    for tree in [samples.columns] if isinstance(samples, Columns) else samples:
        tree_map(note, tree)
    return sum(sizes)
