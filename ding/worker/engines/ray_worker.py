"""A worker as a Ray actor, its stores, and the data that it exchanges with the driver in addition
to the messages.

::

    driver                                             worker (an actor)
      Parcel: request, locations of data            ->   ask(parcel)
      <- Reply: answer, names of the data that it brings
      <- freight: chunks, or weights                     a second return value
      <- files: written to the run's folder              a third one

Return values belong to the caller: chunks and weights survive the worker that created them. They
stay in the object store, where other workers map them; the driver has only references.
"""

import contextlib
import os
import re
import signal
import threading
import time
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import ray
from ray import ObjectRef
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ding.data.chunks import chunk_content, parse_chunk
from ding.interaction.slave import TaskFail
from ding.torch_utils.tensor_file import parse_tensors, tensor_content
from ding.torch_utils.weights_file import grow_weights, weight_tensors
from ding.utils import durations
from ding.utils.errors import CheckpointError, CheckpointNotFoundError, ChunkError
from ding.utils.sent_files import FileChange
from ding.worker.engines.carrier import (
    Answered,
    EndWorker,
    Stores,
    WithFiles,
    Worker,
    WorkerSpec,
)
from ding.worker.engines.shared_folder import FolderArtifacts
from ding.worker.error_report import ErrorReport
from ding.worker.seams import Samples, Weights

#: Files that a worker has written to the run's folder.
Files: TypeAlias = tuple[FileChange, ...]


@dataclass(frozen=True)
class Location:
    """Location of samples or weights: a key in a stored object.

    The reference is nested in this object, so that Ray does not fetch the stored object.
    """

    ref: ObjectRef
    key: str
    size: int  # in bytes


@dataclass(frozen=True)
class Parcel:
    """A request and the data locations that its worker needs.

    Attributes:
        chunks: Locations of samples that are new to the worker.
        gone: Samples and weights that are not needed any more.
        weights: Versions and locations of weights that are new to the worker.
    """

    request: WithFiles[Any]
    chunks: Mapping[str, Location] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    weights: Mapping[str, tuple[int, Location]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes that must reach the worker before it can answer."""
        files = sum(map(len, self.request.files.values()))
        return files + sum(place.size for place in self.chunks.values())


@dataclass
class News:
    """A worker's changes of samples and weights since its last answer.

    Attributes:
        chunks: Names and sizes in bytes of samples in the freight.
        weights: Names and sizes in bytes of weights in the freight.
        removed: Samples and weights to remove.
        kept: Second names that the worker has given to weights.
    """

    chunks: dict[str, int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    kept: dict[str, Location] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """An answer or a failure, with a description of its data.

    Attributes:
        files: Bytes of the files written to the run's folder.
    """

    answer: object
    failure: ErrorReport | None
    news: News | None  # None saves packing an empty object, the usual case
    files: int


@dataclass(frozen=True)
class Life:
    """One life of a worker: its process and its node."""

    pid: int
    node: str
    host: str

    def __str__(self) -> str:
        return f"{self.host} (node {self.node[:8]})"


#: Number of objects with samples that stay mapped, since more of their contents may be needed.
_MAPPED = 16


class RayWorker:
    """The actor: passes requests to a worker, and sends its stored data with the answers.

    Args:
        driver_tolerance: Seconds without a `beat` after which it ends. ``None``: Ray ends it with
            its driver.
    """

    def __init__(self, driver_tolerance: float | None = None) -> None:
        # Arrays in the object store are read-only, and no code here writes to them.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        self._store = WorkerStore()
        self._worker: Worker | None = None
        self._beat = threading.Event()
        if driver_tolerance is not None:
            args = (driver_tolerance,)
            threading.Thread(target=self._look_for_driver, args=args, daemon=True).start()

    @ray.method(concurrency_group="other")
    def build(self, spec: WorkerSpec) -> tuple[Life, ErrorReport | None]:
        """Build the worker; returns its location, and the error if building failed."""
        self._spec = spec
        context = ray.get_runtime_context()
        self._life = Life(os.getpid(), context.get_node_id(), ray.util.get_node_ip_address())
        # Other processes of its learner may be on other nodes.
        spec = replace(spec, entry={**spec.entry, "host": self._life.host})
        artifacts = FolderArtifacts(spec.folder or "")
        try:
            self._worker = Worker.over(spec, Stores(self._store, self._store, artifacts))
        except TaskFail as fail:  # the edge of the actor: reported to the driver
            traceback.print_exc()
            return self._life, ErrorReport.from_detail(fail.result, str(fail))
        return self._life, None

    @ray.method(concurrency_group="driver")
    def adopt(self, spec: WorkerSpec) -> Life | None:
        """Serve another driver of the run; ``None`` if its specification of the worker differs."""
        self._beat.set()
        # A run that is resumed with another config needs newly built workers.
        if self._worker is None or self._worker.ended.is_set() or self._spec != spec:
            return None
        self._store.forget()
        return self._life

    @ray.method(concurrency_group="driver")
    def beat(self) -> None:
        """Record a heartbeat of the driver."""
        self._beat.set()

    def _look_for_driver(self, tolerance: float) -> None:
        while self._beat.wait(tolerance):
            self._beat.clear()
        # Hanging environments would keep the node's resources, without a driver to end them.
        threading.Timer(durations.WORKER_END, os._exit, (1,)).start()
        if self._worker is not None:
            self._worker.close()
        os._exit(0)

    @ray.method(concurrency_group="watch")
    def watch(self) -> str | None:
        """Returns when the worker has ended, with the cause if it failed."""
        assert self._worker is not None  # it was built
        return self._worker.join()

    @ray.method(concurrency_group="ask", num_returns=3)
    def ask(self, parcel: Parcel) -> tuple[Reply, Mapping[str, np.ndarray], Files]:
        """Answer a request; see the module docstring."""
        assert self._worker is not None  # it was built
        self._store.note(parcel)
        answered, failure = Answered[object](None), None
        try:
            answered = self._worker.answer(parcel.request)
        except TaskFail as fail:
            failure = ErrorReport.from_detail(fail.result, str(fail))
        news, freight = self._store.take()
        written = sum(len(change.content or change.path) for change in answered.files)
        return Reply(answered.answer, failure, news, written), freight, answered.files

    @ray.method(concurrency_group="other")
    def end(self) -> Answered[None]:
        """End the worker; returns the files that it wrote last."""
        assert self._worker is not None  # it was built
        return self._worker.answer(EndWorker())


class WorkerStore:
    """A worker's samples and weights.

    New data is sent with the next answer. Data that the driver has named can be read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._news = News()
        self._freight: dict[str, np.ndarray] = {}
        self._places: dict[str, tuple[int, Location]] = {}
        self._new: list[ObjectRef] = []
        self._mapped: OrderedDict[ObjectRef, Mapping[str, np.ndarray]] = OrderedDict()
        self._deadline = 0.0

    # Called by the service

    def put(self, name: str, samples: Samples) -> int:
        packed = pack_samples(name, samples)
        with self._lock:
            self._freight[name], self._news.chunks[name] = packed, packed.size
        return packed.size

    def get(self, name: str) -> Samples:
        with self._lock:
            _, place = self._places.get(name, (0, None))
            new, self._new = self._new, []
        if place is None:
            raise ChunkError(name, "this worker does not know where it is")
        # If a node has just died, the other chunks are tried nevertheless.
        left = max(0.05, self._deadline - time.monotonic())
        if new:  # request all of them for this node at once
            ray.wait(new, num_returns=len(new), timeout=left)
        found = self._mapped.get(place.ref)
        if found is None:
            try:
                found = self._mapped[place.ref] = fetch(place, left)
            except LookupError as error:
                raise ChunkError(name, str(error)) from error
            if len(self._mapped) > _MAPPED:
                self._mapped.popitem(last=False)
        return unpack_samples(name, found[place.key])

    def size(self, name: str) -> int | None:
        return self._news.chunks.get(name)

    def publish(self, name: str, weights: Weights) -> None:
        packed = pack_weights(weights)
        with self._lock:
            self._freight[name], self._news.weights[name] = packed, packed.size

    def newest(self, name: str) -> Weights:
        _, place = self._places.get(name, (0, None))
        if place is None:
            raise CheckpointNotFoundError(f"no weights {name!r} were published")
        try:
            return unpack_weights(fetch(place, fetch_time(place.size))[place.key])
        except LookupError as error:
            raise CheckpointError(f"the weights {name!r} cannot be read: {error}") from error

    def version(self, name: str) -> int | None:
        found = self._places.get(name)
        return None if found is None else found[0]

    def keep(self, name: str, as_name: str) -> bool:
        with self._lock:
            found = self._places.get(name)
            if found is not None:
                self._places[as_name] = found
                self._news.kept[as_name] = found[1]
        return found is not None

    def remove(self, name: str) -> None:
        with self._lock:
            news = self._news
            if news.chunks.pop(name, None) is not None:
                del self._freight[name]
            elif news.kept.pop(name, None) is None:
                news.removed.append(name)  # it was sent already
            self._places.pop(name, None)

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        return []  # the driver knows the names

    # Called by the actor

    def take(self) -> tuple[News | None, Mapping[str, np.ndarray]]:
        """The changes since the last call, and the freight."""
        with self._lock:
            news, freight = self._news, self._freight
            self._news, self._freight = News(), {}
        return (None if news == News() else news), freight

    def forget(self) -> None:
        """The driver has died, and with it all objects that it owned."""
        with self._lock:
            # Keep weights that were not sent yet: the new driver has none, and the learner
            # publishes again only after further updates.
            self._news, self._new = News(weights=self._news.weights), []
            self._freight = {name: self._freight[name] for name in self._news.weights}
            self._places.clear()
            self._mapped.clear()

    def note(self, parcel: Parcel) -> None:
        """Apply a driver's parcel; objects that it names must arrive in time for the answer."""
        self._deadline = time.monotonic() + fetch_time(parcel.size)
        with self._lock:
            for name in parcel.gone:
                if name in self._places:
                    # A mapped object occupies the node's store as long as an array refers to it.
                    self._mapped.pop(self._places.pop(name)[1].ref, None)
            self._places.update(parcel.weights)
            self._places.update({name: (0, place) for name, place in parcel.chunks.items()})
            self._new += dict.fromkeys(place.ref for place in parcel.chunks.values())


def transfer_time(size: int) -> float:
    """Seconds to transfer ``size`` bytes over a slow network."""
    return durations.RAY_FETCH_PER_BYTE * size


def fetch_time(size: int) -> float:
    """Seconds within which ``size`` bytes must reach a node, even over a slow network."""
    return durations.RAY_FETCH + transfer_time(size)


def fetch(place: Location, timeout: float) -> Mapping[str, np.ndarray]:
    """The object at a location.

    Raises:
        LookupError: It is lost, or cannot be fetched in time; with the cause in one line.
    """
    try:
        found: Mapping[str, np.ndarray] = ray.get(place.ref, timeout=timeout)
    except ray.exceptions.GetTimeoutError as error:
        raise LookupError(f"it cannot be fetched within {timeout:.1f} s") from error
    except ray.exceptions.RayError as error:
        raise LookupError(f"{type(error).__name__}: {first_line(error)}") from error
    return found


def kill_on_node(life: Life) -> None:
    """Send SIGKILL to a worker's process; does not wait if it runs on another node."""
    if life.node == ray.get_runtime_context().get_node_id():
        _kill(life.pid)
    else:
        # A task on that node that requires no free resources.
        strategy = NodeAffinitySchedulingStrategy(life.node, soft=False)
        task = ray.remote(num_cpus=0, max_retries=0)(_kill)
        task.options(scheduling_strategy=strategy).remote(life.pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def pack_samples(name: str, samples: Samples) -> np.ndarray:
    """A copy of samples, uint8 [bytes]."""
    return np.frombuffer(b"".join(chunk_content(name, samples)), np.uint8)


def unpack_samples(name: str, packed: np.ndarray) -> Samples:
    """The samples from `pack_samples`; columns are read-only views."""
    return parse_chunk(name, packed.data)


def pack_weights(weights: Weights) -> np.ndarray:
    """A copy of weights, uint8 [bytes]."""
    pieces = tensor_content(*weight_tensors(weights.state, weights.facts))
    return np.frombuffer(b"".join(pieces), np.uint8)


def unpack_weights(packed: np.ndarray) -> Weights:
    """A copy of the weights from `pack_weights`."""
    return Weights(*grow_weights(*parse_tensors(bytearray(packed.data))))
