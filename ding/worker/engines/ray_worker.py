"""A worker of a run as a Ray actor, and the stores that its service is given."""

import contextlib
import dataclasses
import os
import re
import shutil
import sys
import threading
import time
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import ray

from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.utils.errors import CheckpointError, CheckpointNotFoundError, ChunkError
from ding.utils.log_file import redirect_output
from ding.worker.comm_worker import settle_process
from ding.worker.engines.carrier import Stores, Worker, WorkerSpec
from ding.worker.engines.ray_folder import WorkerFolder, folder_of, remove_orphans
from ding.worker.engines.ray_messages import FileChange, Life, Location, Parcel, Reply, RunPath
from ding.worker.engines.ray_payload import (
    pack_samples,
    pack_weights,
    unpack_samples,
    unpack_weights,
)
from ding.worker.engines.shared_folder import FolderArtifacts
from ding.worker.error_report import ErrorReport
from ding.worker.messages import CloseTask, Request, StartTask
from ding.worker.seams import Samples, Weights

Answer = TypeVar("Answer")
#: Objects with samples that stay mapped, as more of what is in them may be needed.
_MAPPED = 16


class RayWorker:
    """The actor: it hands requests to a worker, and sends along what that has stored."""

    def __init__(self) -> None:
        # What lies in the object store cannot be written to, and nobody here tries.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        self._samples, self._weights = WorkerSamples(), WorkerWeights()

    @ray.method(concurrency_group="other")
    def build(self, spec: WorkerSpec, run: str) -> tuple[Life, ErrorReport | None]:
        """Build the worker; returns where it lives, and why it cannot be built.

        Args:
            run: Unlike that of any other run.
        """
        context = ray.get_runtime_context()
        life = Life(os.getpid(), context.get_node_id(), ray.util.get_node_ip_address())
        remove_orphans()
        self._folder = WorkerFolder(folder_of(run, spec.name))
        redirect_output(os.path.join(self._folder.path, "log", spec.name, "output.txt"))
        settle_process(spec.kind, spec.seed, spec.environ)
        artifacts = FolderArtifacts(self._folder.path)
        entry = {**spec.entry, "exp_name": self._folder.path}
        try:
            service = spec.build(
                dataclasses.replace(spec, entry=entry),
                Stores(self._samples, self._weights, artifacts),
            )
            self._service, self._worker = service, Worker(service)
        except Exception as error:  # the edge of the actor: reported onward
            traceback.print_exc()
            return life, ErrorReport.of(error)
        return life, None

    @ray.method(concurrency_group="watch")
    def watch(self) -> str | None:
        """Answered when the worker has ended: why it cannot go on."""
        self._service.join()
        return self._service.failed

    @ray.method(concurrency_group="ask", num_returns=3)
    def ask(self, parcel: Parcel) -> tuple[Reply, Mapping[str, np.ndarray], list[FileChange]]:
        """Answer a request; see `ding.worker.engines.ray_messages`."""
        self._folder.put(parcel.files)
        self._samples.note(parcel.chunks, parcel.gone)
        self._weights.note(parcel.weights, parcel.gone)
        answer, failure = None, None
        try:
            answer = self._worker.answer(self._settled(parcel.request))
        except TaskFail as fail:
            failure = ErrorReport.from_detail(fail.result, str(fail))
        chunks, weights = self._samples.take(), self._weights.take()
        # The last answers of a task carry what it has left.
        files = self._folder.changes(at_once=isinstance(parcel.request, CloseTask))
        reply = Reply(
            answer,
            failure,
            {name: packed.size for name, packed in chunks.items()},
            tuple(weights),
            (*self._samples.take_removed(), *self._weights.take_removed()),
            self._weights.take_kept(),
            bool(files),
        )
        return reply, {**chunks, **weights}, files

    def _settled(self, request: Request[Answer]) -> Request[Answer]:
        """A request whose task has paths in this worker's run folder."""
        if not isinstance(request, StartTask):
            return request
        settled: Any = dataclasses.replace(request, info=_settled(request.info, self._folder.path))
        return settled  # type: ignore[no-any-return]

    @ray.method(concurrency_group="other")
    def end(self) -> list[FileChange]:
        """End; returns what has changed in the run folder."""
        self._worker.close()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        files = self._folder.changes(at_once=True)
        self._folder.remove()
        return files


class WorkerSamples:
    """The sample store of a worker. Its own samples leave with its next answer, which may tell of
    them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: dict[str, np.ndarray] = {}
        self._removed: list[str] = []
        self._places: dict[str, Location] = {}
        self._new: list[ray.ObjectRef] = []
        self._mapped: OrderedDict[ray.ObjectRef, Mapping[str, np.ndarray]] = OrderedDict()
        self._deadline = 0.0

    def put(self, name: str, samples: Samples) -> int:
        packed = pack_samples(name, samples)
        with self._lock:
            self._own[name] = packed
        return packed.size

    def get(self, name: str) -> Samples:
        with self._lock:
            place, new = self._places.get(name), self._new
            self._new = []
        if place is None:
            raise ChunkError(name, "nobody has told this worker where it is")
        # A node that just died does not answer: the other chunks are looked for all the same.
        left = max(0.05, self._deadline - time.monotonic())
        if new:  # have all of them brought to this node at once
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
        packed = self._own.get(name)
        return None if packed is None else packed.size

    def remove(self, name: str) -> None:
        with self._lock:
            if self._own.pop(name, None) is None:
                self._removed.append(name)  # it has left already

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        with self._lock:
            names = [name for name in self._own if pattern.fullmatch(name) and name not in keep]
        for name in names:
            self.remove(name)
        return names

    def take(self) -> dict[str, np.ndarray]:
        """What was put since the last call."""
        with self._lock:
            own, self._own = self._own, {}
        return own

    def take_removed(self) -> list[str]:
        """What was removed since the last call and had left before."""
        with self._lock:
            removed, self._removed = self._removed, []
        return removed

    def note(self, places: Mapping[str, Location], gone: tuple[str, ...]) -> None:
        """What the driver tells of the samples of others; what is needed has to be there in time
        for the answer."""
        self._deadline = time.monotonic() + durations.RAY_FETCH
        with self._lock:
            self._places.update(places)
            self._new += dict.fromkeys(place.ref for place in places.values())
            for name in gone:
                place = self._places.pop(name, None)
                if place is not None:
                    self._mapped.pop(place.ref, None)


class WorkerWeights:
    """The weight store of a worker. What it publishes leaves with its next answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._published: dict[str, np.ndarray] = {}
        self._newest: dict[str, tuple[int, Location]] = {}
        self._second: dict[str, Location] = {}
        self._kept: dict[str, Location] = {}
        self._removed: list[str] = []

    def publish(self, name: str, weights: Weights) -> None:
        packed = pack_weights(weights)
        with self._lock:
            self._published[name] = packed

    def newest(self, name: str) -> Weights:
        with self._lock:
            place = self._second.get(name) or self._newest.get(name, (0, None))[1]
        if place is None:
            raise CheckpointNotFoundError(f"no weights {name!r} were published")
        try:
            return unpack_weights(fetch(place, durations.RAY_FETCH)[place.key])
        except LookupError as error:
            raise CheckpointError(f"the weights {name!r} cannot be read: {error}") from error

    def version(self, name: str) -> int | None:
        with self._lock:
            found = self._newest.get(name)
        return None if found is None else found[0]

    def keep(self, name: str, as_name: str) -> bool:
        with self._lock:
            found = self._newest.get(name)
            if found is not None:
                self._second[as_name] = self._kept[as_name] = found[1]
        return found is not None

    def remove(self, name: str) -> None:
        with self._lock:
            if self._second.pop(name, None) is not None and self._kept.pop(name, None) is None:
                self._removed.append(name)

    def clear(self, pattern: re.Pattern[str]) -> list[str]:
        names = [name for name in [*self._second] if pattern.fullmatch(name)]
        for name in names:
            self.remove(name)
        return names

    def note(self, weights: Mapping[str, tuple[int, Location]], gone: tuple[str, ...]) -> None:
        """What the driver tells of newer versions."""
        with self._lock:
            self._newest.update(weights)
            for name in gone:
                self._newest.pop(name, None)

    def take(self) -> dict[str, np.ndarray]:
        """What was published since the last call."""
        with self._lock:
            published, self._published = self._published, {}
        return published

    def take_removed(self) -> list[str]:
        """Second names that were removed since the last call, and that the driver knows."""
        with self._lock:
            removed, self._removed = self._removed, []
        return removed

    def take_kept(self) -> dict[str, Location]:
        """Second names that were given since the last call."""
        with self._lock:
            kept, self._kept = self._kept, {}
        return kept


def fetch(place: Location, timeout: float) -> Mapping[str, np.ndarray]:
    """The object of a place.

    Raises:
        LookupError: It is lost, or cannot be fetched in time; the cause in one line.
    """
    try:
        found: Mapping[str, np.ndarray] = ray.get(place.ref, timeout=timeout)
    except ray.exceptions.GetTimeoutError as error:
        raise LookupError(f"it cannot be fetched within {timeout:.1f} s") from error
    except ray.exceptions.RayError as error:
        raise LookupError(f"{type(error).__name__}: {first_line(error)}") from error
    return found


def clean_host(run: str, nodes: Iterable[str]) -> None:
    """Remove what killed workers of a run have left on its nodes, as far as these answer."""
    _clean(run)
    nodes = set(nodes) - {ray.get_runtime_context().get_node_id()}
    if not nodes:
        return
    clean = ray.remote(num_cpus=0, max_retries=0)(_clean)
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    refs = [clean.options(scheduling_strategy=strategy(n, soft=False)).remote(run) for n in nodes]
    with contextlib.suppress(ray.exceptions.RayError):
        ray.wait(refs, num_returns=len(refs), timeout=durations.RAY_LEAVE)


def _clean(run: str) -> None:
    shutil.rmtree(folder_of(run), ignore_errors=True)


def _settled(value: Any, folder: str) -> Any:
    """Part of a task with the paths that it has on this host."""
    if isinstance(value, Mapping):
        return {key: _settled(item, folder) for key, item in value.items()}
    if isinstance(value, RunPath):
        return os.path.normpath(os.path.join(folder, value.path))
    return value


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
