"""The seams of a parallel run: the protocols between its parts, and those of an engine.

::

    commander -- tasks --> Coordinator <======= sessions ======> workers
                                                                    |  Control: spawn, call, drop
                                       BaseCommCollector, BaseCommLearner (WorkerService)
                                          |    Samples: put, get, remove
                                          |    Weights: publish, newest
                                          |    Artifacts: save, load

The coordinator sends requests, workers answer (`ding.worker.messages`). Everything below the
services is an engine: ``flask_fs`` (HTTP and a shared folder), ``local`` (threads of one process),
``ray``, or a custom one (``docs/comm_types.md``). Code that only uses this file runs on any engine.
"""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ding.data.chunks import Samples as Samples
from ding.utils.errors import DingError
from ding.utils.run_claims import RunMark
from ding.utils.types import SavedState
from ding.worker.messages import Json, Kind, Request

Answer = TypeVar("Answer")


# ---------------------------------------------------------------------- errors


class WorkerFailed(DingError):
    """A worker's task failed; the worker remains available for the next one.

    Attributes:
        cause: The message for the operator.
        detail: Further facts from the worker: ``type``, ``message``, ``traceback``.
        by_worker: Whether the worker itself named the cause, so that another may fail in the same
            way.
    """

    def __init__(self, cause: str, detail: object = None, by_worker: bool = False) -> None:
        super().__init__(cause)
        self.cause, self.detail, self.by_worker = cause, detail, by_worker


class NonsenseAnswer(WorkerFailed):
    """A worker's answer does not fit its request or task."""


class WorkerBusy(WorkerFailed):
    """A worker is still processing an earlier request."""


class WorkerLost(WorkerFailed):
    """A worker was lost, does not answer in time, or must be released."""


# ---------------------------------------------------------------------- control


class WorkerService(Protocol):
    """A collector or a learner, on any engine. It answers one request at a time."""

    kind: Kind

    def start(self) -> None:
        """Start to accept requests."""

    def handle(self, request: Request[Answer]) -> Answer:
        """Answer a request; a failure is a `TaskFail` with type, message and traceback."""

    def coordinator_lost(self, cause: str) -> None:
        """The coordinator was lost: end the task; another coordinator may join."""

    def released(self) -> None:
        """The coordinator has reported the end of the run."""

    def close(self) -> None:
        """End the worker; closing twice does nothing."""

    def join(self, timeout: float | None = None) -> bool:
        """Whether it ends within ``timeout`` seconds."""

    @property
    def failed(self) -> str | None:
        """The cause if it cannot continue."""


class Peer(Protocol):
    """A worker, as seen by its session in the coordinator."""

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """Send a request and wait for the answer.

        Raises:
            WorkerLost: The worker is lost, or did not answer within ``timeout`` seconds.
            WorkerBusy: It is still processing an earlier request.
            WorkerFailed: It reports a failure.
            NonsenseAnswer: The answer does not fit the request.
        """


@dataclass(frozen=True)
class Arrival:
    """A worker that has joined.

    Attributes:
        where: Its location for humans: ``host:port``, a node, a thread.
        pid: Its process id, if known.
    """

    kind: Kind
    name: str
    peer: Peer
    where: str
    pid: int | None = None


@dataclass(frozen=True)
class Awaited:
    """A missing worker that its control tries to reach or start."""

    kind: Kind
    name: str
    where: str


class Arrivals(Protocol):
    """Receives a control's reports of workers that join or are lost."""

    def came(self, arrival: Arrival) -> None:
        """A worker has joined; it replaces an earlier worker of the same name."""

    def lost(self, arrival: Arrival, cause: str) -> None:
        """A worker was lost, and its open request failed; not called for replaced workers."""

    def status(self) -> Mapping[str, object]:
        """The facts of the run."""

    def warn(self, source: str, text: str) -> None:
        """Pass a warning to the operator."""

    def fatal(self, cause: str) -> None:
        """No worker can be reached any more: the run cannot continue."""


class Control(Protocol):
    """Connects the coordinator to its workers."""

    def start(self, arrivals: Arrivals) -> None:
        """Start to accept workers; does not wait for them."""

    def release(self, arrival: Arrival, cause: str) -> None:
        """Release a worker: it gets no requests until it joins again. A worker that was replaced in
        the meantime is ignored."""

    def awaited(self) -> Sequence[Awaited]:
        """Workers that are expected and missing."""

    def close(self, timeout: float) -> bool:
        """Notify all workers of the run's end, and stop; returns whether the time sufficed."""

    @property
    def address(self) -> str:
        """Address for workers, after `start`."""


# ---------------------------------------------------------------------- data


class SampleStore(Protocol):
    """Stores samples by name. Collectors put, learners get, the coordinator removes."""

    def put(self, name: str, samples: Samples) -> int:
        """Store samples under a new name; returns their size in bytes.

        Raises:
            DataError: The name or the samples cannot be stored.
            CheckpointWriteError: There is no space, or writing failed; see its ``errno``.
        """

    def get(self, name: str) -> Samples:
        """Read samples, possibly as read-only views; `ChunkError` if missing or damaged."""

    def size(self, name: str) -> int | None:
        """Size of the named samples in bytes; ``None`` if there are none."""

    def remove(self, name: str) -> None:
        """Remove samples if they exist; `CheckpointWriteError` if they cannot be removed."""

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        """Remove all samples whose full name matches, except `keep`; also half-written ones."""


@dataclass(frozen=True)
class Weights:
    """A version of a policy's weights.

    Attributes:
        state: A state for the policy's ``load_state_dict``.
        facts: ``policy_iter``, ``envstep``, ``time``, ``learner``.
    """

    state: SavedState
    facts: Mapping[str, Json]


class WeightStore(Protocol):
    """Stores the newest weights of each policy. Learners publish, collectors read."""

    def publish(self, name: str, weights: Weights) -> None:
        """Replace the weights under a name atomically: readers get either version, complete.

        Raises:
            OSError: They cannot be stored now.
        """

    def newest(self, name: str) -> Weights:
        """The version published last.

        Raises:
            CheckpointNotFoundError: Nothing was published.
            CheckpointError: The version cannot be read.
        """

    def version(self, name: str) -> object:
        """A value that changes with each new version; ``None`` if there is none. Cheap."""

    def keep(self, name: str, as_name: str) -> bool:
        """Copy the newest version to a name that later versions do not replace; returns whether
        there was one."""

    def remove(self, name: str) -> None:
        """Remove the weights under a name, if they exist."""

    def clear(self, pattern: re.Pattern[str]) -> list[str]:
        """Remove all weights whose full name matches, as far as the store can list its contents."""


class Artifacts(Protocol):
    """Files of the run's folder that must outlive a worker: states and checkpoints.

    Paths are relative to the run's folder, such as ``ckpt/learner_policy.pth.tar``.
    """

    def save(self, path: str, state: SavedState) -> None:
        """Write a state atomically; raises `OSError` if it cannot be written."""

    def load(self, path: str) -> SavedState | None:
        """Read a state, ``None`` if there is none; raises `CheckpointError` if it is damaged."""


# ---------------------------------------------------------------------- coordinator


@dataclass(frozen=True)
class TaskFailure:
    """A failed task, or a worker that was lost without a task."""

    worker: str
    cause: str
    task_id: str | None = None
    lost: bool = False
    by_worker: bool = False


# ---------------------------------------------------------------------- engines


@dataclass(frozen=True)
class Engine:
    """The transport of a run, registered under the name in ``system_config.engine.type``.

    Each worker's engine accesses the same samples, weights and artifacts as the coordinator's.

    Attributes:
        marks: Marker files in the folders of ``buffers`` and ``weights`` that list what to remove
            if the coordinator's process dies.
    """

    control: Control
    samples: SampleStore
    weights: WeightStore
    artifacts: Artifacts
    marks: Mapping[str, RunMark] = field(default_factory=dict)
