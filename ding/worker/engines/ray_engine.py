"""The engine for clusters, and for hosts without a shared folder: workers are Ray actors, samples
and weights are in Ray's object store.

The driver owns everything that must last: chunks and weights are return values of the driver's
calls, so that they survive the actor that created them; Ray frees what the driver drops. A copy of
the newest weights is stored on the driver's node. The run restarts workers, not Ray, so that
restarts count against ``max_restart`` and have a cause.
"""

import contextlib
import hashlib
import itertools
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from ding.interaction.slave import TaskFail
from ding.utils import ENGINE_REGISTRY, durations
from ding.utils.errors import ChunkError, ConfigError, DingError
from ding.utils.run_claims import read_run_key
from ding.utils.system_helper import ReportingThread
from ding.worker.engines.carrier import (
    Answered,
    Carrier,
    EndWorker,
    NotYetError,
    OnDeath,
    WithFiles,
    WorkerSpec,
)
from ding.worker.engines.ray_cluster import NodeWatch, RayCluster
from ding.worker.engines.ray_worker import (
    Files,
    Life,
    Location,
    News,
    Parcel,
    RayWorker,
    Reply,
    fetch,
    fetch_time,
    first_line,
    kill_on_node,
    pack_samples,
    pack_weights,
    transfer_time,
    unpack_samples,
    unpack_weights,
)
from ding.worker.error_report import ErrorReport
from ding.worker.messages import Request, TrainRequest
from ding.worker.seams import Samples, Weights

Answer = TypeVar("Answer")

_logger = logging.getLogger(__name__)

#: Errors that may not occur on another node.
_OF_NODE = frozenset(
    {"ImportError", "ModuleNotFoundError", "MissingModuleError", "MissingNameError"}
)
#: Concurrent calls of an actor by group: requests, the wait for its end, the driver's heartbeat,
#: and the others.
_GROUPS = {"ask": 1, "watch": 1, "driver": 1, "other": 1}
_DEATH = re.compile(r"exit detail: (.+)|actor is dead because (.+)", re.IGNORECASE)
_NODE_DEATH = re.compile(r"node has died|placement group was removed", re.IGNORECASE)
#: The label that Ray gives each node.
_NODE_LABEL = "ray.io/node-id"


@dataclass(eq=False)
class RayHandle:
    """One life of a worker."""

    spec: WorkerSpec
    actor: Any
    on_death: OnDeath
    first: ray.ObjectRef | None = None  # ready when it is built; None if it was found
    watch: ray.ObjectRef | None = None  # ready at its end
    life: Life | None = None
    known: set[str] = field(default_factory=set)  # samples whose locations were sent to it
    versions: dict[str, int] = field(default_factory=dict)  # versions of weights sent to it
    gone: list[str] = field(default_factory=list)  # of these, those not needed any more
    ending: bool = False  # it was asked to end
    silent: bool = False  # it did not answer in time


@ENGINE_REGISTRY.register("ray")
class RayCarrier(Carrier[RayHandle]):
    """Workers are actors, samples and weights are objects that the driver owns."""

    has_teams = True
    config: dict[str, Any] = dict(
        # None: a Ray for this run, on this host. 'auto': the cluster of this host. Otherwise
        # 'host:port' of the head.
        address=None,
        # Resources that each worker requests. Default: one CPU on a cluster, none if the run
        # starts Ray.
        collector=dict(num_cpus=None, num_gpus=0, resources=dict()),
        learner=dict(num_cpus=None, num_gpus=None, resources=dict()),
        # Modules sent to nodes in addition to import_names, and further options for Ray.
        modules=[],
        runtime_env=dict(),
        # Bytes of a node's object store if the run starts Ray; None: Ray chooses.
        object_store_memory=None,
        # Seconds for which the head of a cluster may be unreachable.
        head_tolerance=durations.RAY_HEAD_AWAY,
        # Seconds that workers on a cluster wait for another driver after theirs has died.
        driver_tolerance=durations.RAY_DRIVER_AWAY,
    )

    def __init__(self, cfg: Mapping[str, Any], exp_name: str) -> None:
        super().__init__(cfg, exp_name)
        self._namespace = _namespace(exp_name)
        self._cluster = RayCluster(self.cfg, self._namespace)
        self._lock = threading.Lock()
        self._samples: dict[str, Location] = {}
        self._weights: dict[str, tuple[int, Location, Mapping[str, np.ndarray]]] = {}
        self._versions = itertools.count(1)
        self._handles: dict[str, RayHandle] = {}
        self._known_by: dict[str, list[RayHandle]] = {}  # workers that know samples, by name
        self._left: dict[str, Any] = {}  # actors of an earlier driver of this run
        self._waiting: dict[str, RayHandle] = {}
        self._unkilled: list[RayHandle] = []  # dropped while the head was unreachable
        self._teams: dict[str, Any] = {}  # placement groups of learners with several processes
        self._closing = threading.Event()
        self._nodes = NodeWatch()
        self._head_is_away = False
        self._lost_head: str | None = None
        # Two threads, since a call to Ray may wait for its head.
        self._watchers = [
            ReportingThread(self._watch, "watch-ray", self._lose_head),
            ReportingThread(self._watch_head, "watch-ray-head", self._lose_head),
        ]

    def open(self) -> None:
        tolerance = self.cfg.driver_tolerance
        if not tolerance >= durations.RAY_DRIVER_AWAY_LEAST:
            raise ConfigError(
                f"system_config.engine.driver_tolerance={tolerance!r} must be at least "
                f"{durations.RAY_DRIVER_AWAY_LEAST:g} s: workers hear of their driver every "
                f"{durations.RAY_BEAT:g} s"
            )
        self._cluster.connect()
        named = [] if self._cluster.is_own else ray.util.list_named_actors(all_namespaces=True)
        for found in named:
            if found["namespace"] == self._namespace:
                with contextlib.suppress(ValueError):  # it has ended in the meantime
                    actor = ray.get_actor(found["name"], self._namespace)
                    # Each life has a random suffix in its name, since the name of a dying actor is
                    # still in use.
                    self._left[found["name"].rpartition("-")[0]] = actor
        for watcher in self._watchers:
            watcher.start()

    def close(self) -> None:
        self._closing.set()
        deadline = time.monotonic() + 2 * durations.RAY_LOOK + durations.RAY_PROBE
        for watcher in self._watchers:
            if watcher.ident is not None:
                watcher.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            left = [*self._handles.values(), *self._waiting.values()]
        for handle in left:
            self.drop(handle)
        self._samples.clear()
        self._weights.clear()
        if not self._head_is_away:
            for group in self._teams.values():
                remove_placement_group(group)
        self._cluster.leave()

    # ------------------------------------------------------------------ workers

    def spawn(self, worker: WorkerSpec, on_death: OnDeath) -> RayHandle:
        self._check_head()
        with self._lock:
            handle = self._waiting.pop(worker.name, None)
        if handle is None:
            if self._head_is_away:  # Ray would wait for the head, and the run's end for Ray
                raise NotYetError(self._away)
            handle = self._begin(worker, on_death)
        handle.on_death = on_death
        assert handle.first is not None  # it was started here
        try:
            life, failure = ray.get(handle.first, timeout=durations.RAY_PLACE)
        except ray.exceptions.GetTimeoutError as error:
            with self._lock:
                self._waiting[worker.name] = handle  # Ray keeps searching for a node
            raise NotYetError(self._waits_for(worker)) from error
        except ray.exceptions.RuntimeEnvSetupError as error:
            raise TaskFail(message=f"its runtime_env: {first_line(error)}") from error
        except ray.exceptions.RayError as error:
            if _NODE_DEATH.search(str(error)):  # Ray had placed it on a node that was already lost
                raise NotYetError(death_of(error)) from error
            raise OSError(death_of(error)) from error
        handle.life = life
        if failure is not None:
            self._kill(handle)
            raise self._fail(failure, life)
        handle.watch = handle.actor.watch.remote()
        with self._lock:
            self._handles[worker.name] = handle
        return handle

    def find(self, worker: WorkerSpec, on_death: OnDeath) -> RayHandle | None:
        actor = self._left.pop(worker.name, None)
        if actor is None:
            return None
        try:
            life = ray.get(actor.adopt.remote(worker), timeout=durations.RAY_ADOPT)
            if life is not None:
                handle = RayHandle(worker, actor, on_death, None, actor.watch.remote(), life)
                with self._lock:
                    self._handles[worker.name] = handle
                return handle
        except ray.exceptions.RayError as error:
            _logger.debug("%s is not used any more: %s", worker.name, death_of(error))
        # It has another config or cannot answer: free its name and resources.
        ray.kill(actor)
        return None

    def _begin(self, worker: WorkerSpec, on_death: OnDeath) -> RayHandle:
        options = {**self._options(worker), "runtime_env": self._cluster.worker_env}
        # The processes of a learner end together, and with their driver.
        outlives = not self._cluster.is_own and worker.team is None
        if outlives:
            options["lifetime"] = "detached"
        make: Any = ray.remote
        kind = make(concurrency_groups=_GROUPS)(RayWorker)
        name = f"{worker.name}-{secrets.token_hex(4)}"
        try:
            actor = kind.options(
                name=name, namespace=self._namespace, max_restarts=0, **options
            ).remote(self.cfg.driver_tolerance if outlives else None)
            return RayHandle(worker, actor, on_death, actor.build.remote(worker))
        except (ray.exceptions.RayError, ValueError) as error:
            raise OSError(first_line(error)) from error

    @property
    def _away(self) -> str:
        return f"the head of the Ray cluster at {self._cluster.head} cannot be reached"

    def _options(self, worker: WorkerSpec) -> dict[str, Any]:
        """The resources that a worker reserves on a node."""
        given = self.cfg[worker.kind]
        cpus, gpus = given.get("num_cpus"), given.get("num_gpus")
        if cpus is None:
            cpus = 0 if self._cluster.is_own else 1
        if gpus is None:
            gpus = min(1, ray.cluster_resources().get("GPU", 0))
        own = {"num_cpus": cpus, "num_gpus": gpus, "resources": dict(given.get("resources") or {})}
        # Ray still places actors on lost nodes.
        gone = ",".join(sorted(self._nodes.gone))
        living = {_NODE_LABEL: f"!in({gone})"} if gone else {}
        bundle = _asked(own)
        if worker.team is None or not bundle:  # without resources, there is only one node
            return {**own, "label_selector": living}
        rank, size = worker.place_in_team
        with self._lock:  # all processes of a learner, on one node if it has the resources
            group = self._teams.get(worker.team)
            if group is None:
                group = self._teams[worker.team] = placement_group(
                    [bundle] * size, strategy="PACK", bundle_label_selector=[living] * size
                )
        return {**own, "scheduling_strategy": PlacementGroupSchedulingStrategy(group, rank)}

    def _waits_for(self, worker: WorkerSpec) -> str:
        """Why the worker is not ready yet."""
        if self._head_is_away:
            return self._away
        asked = _asked(self._options(worker))
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if any(all(n.get(name, 0) >= amount for name, amount in asked.items()) for n in nodes):
            return "Ray is still starting it, or all nodes are full"
        # All resources except memory and those of single nodes.
        free = {
            name: amount
            for name, amount in ray.available_resources().items()
            if ":" not in name and "memory" not in name
        }
        return f"no node has room for it: it asks for {_words(asked)}, free are {_words(free)}"

    def call(self, handle: RayHandle, request: Request[Answer], timeout: float) -> Answer:
        if isinstance(request, EndWorker):
            handle.ending = True
            with self._asking(handle):
                return ray.get(handle.actor.end.remote(), timeout=timeout)
        self._check_head()
        assert isinstance(request, WithFiles)  # since workers are not threads of this process
        with self._asking(handle):
            parcel = self._parcel(handle, request)
            refs = handle.actor.ask.remote(parcel)
            # Data that the parcel names must be transferred to the worker first.
            reply: Reply = ray.get(refs[0], timeout=timeout + transfer_time(parcel.size))
        if handle.ending:
            raise OSError("the run is over")
        files = self._take(reply, refs[1], refs[2])
        if reply.failure is not None:
            raise self._fail(reply.failure, handle.life)
        return Answered(reply.answer, files)  # type: ignore[return-value]

    def drop(self, handle: RayHandle) -> None:
        with self._lock:
            if self._handles.get(handle.spec.name) is handle:
                del self._handles[handle.spec.name]
        self._kill(handle)

    def address(self, handle: RayHandle) -> tuple[str, int | None]:
        life = handle.life
        return ("ray", None) if life is None else (str(life), life.pid)

    @contextlib.contextmanager
    def _asking(self, handle: RayHandle) -> Iterator[None]:
        """Convert Ray's errors to those of `call`."""
        try:
            yield
        except ray.exceptions.GetTimeoutError as error:
            handle.silent = True
            raise TimeoutError from error
        except ray.exceptions.RayError as error:
            raise OSError(death_of(error)) from error

    def _kill(self, handle: RayHandle) -> None:
        if self._head_is_away:  # Ray would wait for the head
            self._unkilled.append(handle)
            return
        if not ray.is_initialized():
            return
        life = handle.life
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            if handle.silent and life is not None and life.node not in self._nodes.gone:
                # A stopped process does not react to Ray, whose own SIGKILL may take a minute.
                kill_on_node(life)
            ray.kill(handle.actor, no_restart=True)

    def _fail(self, failure: ErrorReport, life: Life | None) -> TaskFail:
        fail = failure.task_fail()
        if failure.type in _OF_NODE:
            fail.message = f"{failure} (on {life})"
        return fail

    # ------------------------------------------------------------------ data of requests

    def _parcel(self, handle: RayHandle, request: WithFiles[Any]) -> Parcel:
        places: dict[str, Location] = {}
        asked = request.request
        with self._lock:
            if isinstance(asked, TrainRequest):
                news = asked.names.difference(handle.known)
                places = {name: self._samples[name] for name in news if name in self._samples}
                handle.known.update(places)
                for name in places:
                    self._known_by.setdefault(name, []).append(handle)
            gone, handle.gone = handle.gone, []
            weights: dict[str, tuple[int, Location]] = {}
            # Not to learners, which read no weights: references would keep old ones in memory.
            for name, found in self._weights.items() if handle.spec.kind == "collector" else ():
                if found[0] != handle.versions.get(name):
                    handle.versions[name] = found[0]
                    weights[name] = found[0], found[1]
        return Parcel(request, places, tuple(gone), weights)

    def _take(self, reply: Reply, freight: ray.ObjectRef, files: ray.ObjectRef) -> Files:
        """Process the data that came with an answer; returns the written files."""
        news = reply.news or News()
        with self._lock:
            for name, size in news.chunks.items():
                self._samples[name] = Location(freight, name, size)
        for name in news.removed:
            self.remove(name)
        try:
            places = {name: Location(freight, name, size) for name, size in news.weights.items()}
            for name, place in {**places, **news.kept}.items():
                self._add_weights(name, place)
            written: Files = ()
            # Only if there are files: a look-up of an object is slow, and most answers have none.
            if reply.files:
                written = ray.get(files, timeout=fetch_time(reply.files))
        except (LookupError, ray.exceptions.RayError) as error:
            # The node is being lost, together with the answer's data.
            raise OSError(f"what came with its answer is lost: {first_line(error)}") from error
        return written

    def _add_weights(self, name: str, place: Location) -> None:
        """Record a version, and store a copy on this node."""
        # The learner's node may die with the object: collectors would have no weights until the
        # next version.
        copied = fetch(place, fetch_time(place.size))
        with self._lock:
            self._weights[name] = next(self._versions), place, copied

    # ------------------------------------------------------------------ ends

    def _watch(self) -> None:
        """Report workers that end, by themselves or with their nodes."""
        beaten = 0.0
        while not self._closing.is_set():
            if time.monotonic() - beaten > durations.RAY_BEAT and not self._cluster.is_own:
                beaten = time.monotonic()
                with self._lock:  # including those being built
                    handles = [*self._handles.values(), *self._waiting.values()]
                for handle in handles:
                    handle.actor.beat.remote()
            with self._lock:
                watched = {h.watch: h for h in self._handles.values() if h.watch is not None}
            if watched:
                ended, _ = ray.wait(list(watched), timeout=durations.RAY_LOOK, fetch_local=False)
            else:
                ended = []
                self._closing.wait(durations.RAY_LOOK)
            for ref in ended:
                try:
                    cause = ray.get(ref, timeout=durations.RAY_PROBE) or "it has ended"
                except ray.exceptions.RayError as error:
                    cause = death_of(error)
                self._end_of(watched[ref], cause)
            self._look_at_nodes(watched.values())

    def _watch_head(self) -> None:
        """Report the loss of the head."""
        seen = time.monotonic()
        while not self._closing.wait(durations.RAY_LOOK):
            now = time.monotonic()
            self._head_is_away = not self._cluster.answers()
            if not self._head_is_away:
                seen = now
                left, self._unkilled = self._unkilled, []
                for handle in left:
                    self._kill(handle)
            elif now - seen > self._cluster.head_tolerance:
                self._lose_head(f"the head of the Ray cluster at {self._cluster.head} is gone")
                return

    def _look_at_nodes(self, watched: Iterable[RayHandle]) -> None:
        lives = {handle: handle.life for handle in watched if handle.life is not None}
        if self._head_is_away:  # Ray then does not list new nodes
            return
        self._nodes.look({life.node for life in lives.values()})
        for handle, life in lives.items():
            if life.node not in self._nodes.gone:
                continue
            with self._lock:
                group = self._teams.pop(handle.spec.team or "", None)
            if group is not None:
                remove_placement_group(group)
            self._end_of(handle, f"its node does not answer: {life}")

    def _end_of(self, handle: RayHandle, cause: str) -> None:
        with self._lock:
            # It was dropped already, or its next life has begun.
            if self._handles.get(handle.spec.name) is not handle:
                return
            del self._handles[handle.spec.name]
        handle.on_death(cause)

    def _lose_head(self, cause: str) -> None:
        self._lost_head = cause
        with self._lock:
            # None of them can be reached any more, although their processes may be running.
            handles, self._handles = list(self._handles.values()), {}
        for handle in handles:
            handle.on_death(cause)

    def _check_head(self) -> None:
        if self._lost_head is not None:
            raise TaskFail(message=self._lost_head)
        if self._closing.is_set():
            raise OSError("the run is over")

    # ------------------------------------------------------------------ samples and weights

    def put(self, name: str, samples: Samples) -> int:
        packed = pack_samples(name, samples)
        with self._lock:
            self._samples[name] = Location(ray.put({name: packed}), name, packed.size)
        return packed.size

    def get(self, name: str) -> Samples:
        found = self._samples.get(name)
        if found is None:
            raise ChunkError(name, "it is not there")
        try:
            return unpack_samples(name, fetch(found, fetch_time(found.size))[name])
        except LookupError as error:
            raise ChunkError(name, str(error)) from error

    def size(self, name: str) -> int | None:
        found = self._samples.get(name)
        return None if found is None else found.size

    def names(self) -> Iterable[str]:
        with self._lock:
            return list(self._samples)

    def remove(self, name: str) -> None:
        with self._lock:
            holders = self._known_by.pop(name, [])
            self._samples.pop(name, None)
            if self._weights.pop(name, None) is not None:
                all_handles = self._handles.values()
                holders = [h for h in all_handles if h.versions.pop(name, None) is not None]
            for handle in holders:
                handle.known.discard(name)
                handle.gone.append(name)

    def publish(self, name: str, weights: Weights) -> None:
        packed = pack_weights(weights)
        self._add_weights(name, Location(ray.put({name: packed}), name, packed.size))

    def newest(self, name: str) -> Weights | None:
        found = self._weights.get(name)
        return None if found is None else unpack_weights(found[2][found[1].key])

    def version(self, name: str) -> int | None:
        found = self._weights.get(name)
        return None if found is None else found[0]


def _namespace(exp_name: str) -> str:
    """The run's namespace in Ray; only holders of the key can compute it."""
    key = read_run_key(exp_name) or secrets.token_hex(16)
    return "ding-" + hashlib.sha256(f"{key} {os.path.abspath(exp_name)}".encode()).hexdigest()[:16]


def _asked(options: Mapping[str, Any]) -> dict[str, float]:
    """Resources in an actor's options, by Ray's names."""
    asked = {"CPU": options["num_cpus"], "GPU": options["num_gpus"], **options["resources"]}
    return {name: amount for name, amount in asked.items() if amount}


def _words(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {amounts[name]:g}" for name in sorted(amounts)) or "none"


def death_of(error: BaseException) -> str:
    """Why an actor has died, in one line."""
    match = _DEATH.search(str(error))
    words = first_line(error) if match is None else (match[1] or match[2]).strip()[:300]
    return words if isinstance(error, DingError) else f"{type(error).__name__}: {words}"
