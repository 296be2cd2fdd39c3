"""The seams of a parallel run: protocols between its parts, and under them what carries messages.

::

    commander -- tasks --> Coordinator <======= sessions ======> workers
                                                                    |  Control: spawn, call, drop
                                       BaseCommCollector, BaseCommLearner (WorkerService)
                                          |    Samples: put, get, remove
                                          |    Weights: publish, newest
                                          |    Artifacts: save, load

A coordinator asks, a worker answers (`ding.worker.messages`). Everything below the services is an
engine: ``flask_fs`` (HTTP and a shared folder), ``local`` (threads of one process), ``ray``, or a
user's own (``docs/comm_types.md``). Whatever knows only this file runs on any of them.
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


# ---------------------------------------------------------------------- what goes wrong


class WorkerFailed(DingError):
    """A worker could not do its task; it is there for the next one.

    Attributes:
        cause: What the operator is shown.
        detail: What else the worker reported: ``type``, ``message``, ``traceback``.
        by_worker: Whether the worker itself named the cause, so that another may meet it, too.
    """

    def __init__(self, cause: str, detail: object = None, by_worker: bool = False) -> None:
        super().__init__(cause)
        self.cause, self.detail, self.by_worker = cause, detail, by_worker


class NonsenseAnswer(WorkerFailed):
    """A worker gave an answer that its task does not have."""


class WorkerBusy(WorkerFailed):
    """A worker has not ended an earlier request."""


class WorkerLost(WorkerFailed):
    """A worker is lost, does not answer in time, or has to be released."""


# ---------------------------------------------------------------------- control


class WorkerService(Protocol):
    """A collector or a learner, whatever carries its messages. It answers one request at a time."""

    kind: Kind

    def start(self) -> None:
        """Begin to take requests."""

    def handle(self, request: Request[Answer]) -> Answer:
        """Answer a request; a `TaskFail` with type, message and traceback if that fails."""

    def coordinator_lost(self, cause: str) -> None:
        """The coordinator is lost: the task ends; another coordinator may come."""

    def released(self) -> None:
        """The coordinator has said that the run is over."""

    def close(self) -> None:
        """End; again does nothing."""

    def join(self, timeout: float | None = None) -> bool:
        """Whether it has ended within ``timeout`` seconds."""

    @property
    def failed(self) -> str | None:
        """The cause if it cannot continue."""


class Peer(Protocol):
    """A worker as its session sees it."""

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """Put a request and wait for the answer.

        Raises:
            WorkerLost: It is gone, or there is no answer after ``timeout`` seconds.
            WorkerBusy: It still works on an earlier request.
            WorkerFailed: It reports that it failed.
            NonsenseAnswer: That is not an answer to this request.
        """


@dataclass(frozen=True)
class Arrival:
    """A worker that has come.

    Attributes:
        where: For humans: ``host:port``, a node, a thread.
        pid: Its process, if it is known.
    """

    kind: Kind
    name: str
    peer: Peer
    where: str
    pid: int | None = None


@dataclass(frozen=True)
class Awaited:
    """A worker that is not there, and that its control tries to reach or start."""

    kind: Kind
    name: str
    where: str


class Arrivals(Protocol):
    """What a control reports: workers that come and go."""

    def came(self, arrival: Arrival) -> None:
        """A worker has joined; it replaces an earlier one of its name."""

    def lost(self, arrival: Arrival, cause: str) -> None:
        """A worker is lost, and its open request has failed; not for one that was replaced."""

    def status(self) -> Mapping[str, object]:
        """The facts of the run."""

    def warn(self, source: str, text: str) -> None:
        """Something that the operator should know."""

    def fatal(self, cause: str) -> None:
        """No worker can be reached any more: the run cannot continue."""


class Control(Protocol):
    """The coordinator's way to its workers."""

    def start(self, arrivals: Arrivals) -> None:
        """Begin to accept workers; does not wait for them."""

    def release(self, arrival: Arrival, cause: str) -> None:
        """Release a worker: nothing more will be asked of it until it comes again. One that was
        replaced since is ignored."""

    def awaited(self) -> Sequence[Awaited]:
        """Workers that are not there and should be."""

    def close(self, timeout: float) -> bool:
        """Notify all workers that the run is over, and end; whether that was done in time."""

    @property
    def address(self) -> str:
        """Where others find it, once it was started."""


# ---------------------------------------------------------------------- data


class SampleStore(Protocol):
    """Where samples are, by name. Collectors put, learners get, the coordinator removes."""

    def put(self, name: str, samples: Samples) -> int:
        """Store samples under a new name; returns their bytes.

        Raises:
            DataError: The name or the samples cannot be stored.
            CheckpointWriteError: There is no room, or no way to write, by its ``errno``.
        """

    def get(self, name: str) -> Samples:
        """Read samples, perhaps read-only views; `ChunkError`: they are missing or damaged."""

    def size(self, name: str) -> int | None:
        """Bytes under a name; ``None`` if there are none."""

    def remove(self, name: str) -> None:
        """Remove samples, if they exist; `CheckpointWriteError`: they cannot be removed."""

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        """Remove all whose whole names match and are not to be kept, also half-written ones."""


@dataclass(frozen=True)
class Weights:
    """A version of a policy's weights.

    Attributes:
        state: As the policy's ``load_state_dict`` takes it.
        facts: ``policy_iter``, ``envstep``, ``time``, ``learner``.
    """

    state: SavedState
    facts: Mapping[str, Json]


class WeightStore(Protocol):
    """Where the newest weights of each policy are. Learners publish, collectors read."""

    def publish(self, name: str, weights: Weights) -> None:
        """Replace what was published under the name; readers see the old or the new, whole.

        Raises:
            OSError: It cannot be stored now.
        """

    def newest(self, name: str) -> Weights:
        """What was published last.

        Raises:
            CheckpointNotFoundError: Nothing was published.
            CheckpointError: It cannot be read.
        """

    def version(self, name: str) -> object:
        """Equal as long as `newest` is the same; ``None`` if there is nothing. Cheap."""

    def keep(self, name: str, as_name: str) -> bool:
        """Give the newest version a second name that later ones do not replace; whether there is
        one."""

    def remove(self, name: str) -> None:
        """Remove what is under a name; nothing there is no error."""

    def clear(self, pattern: re.Pattern[str]) -> list[str]:
        """Remove all whose whole names match, as far as the store can list its contents."""


class Artifacts(Protocol):
    """Files of the run's folder that must outlive a worker: states and checkpoints.

    Paths are below the run's folder, as ``ckpt/learner_policy.pth.tar``.
    """

    def save(self, path: str, state: SavedState) -> None:
        """Write a state, whole or not at all; `OSError`: it cannot be written."""

    def load(self, path: str) -> SavedState | None:
        """Read a state, ``None`` if there is none; `CheckpointError`: it is damaged."""


# ---------------------------------------------------------------------- coordinator


@dataclass(frozen=True)
class TaskFailure:
    """A task that failed, or a worker that was lost without one."""

    worker: str
    cause: str
    task_id: str | None = None
    lost: bool = False
    by_worker: bool = False


# ---------------------------------------------------------------------- engines


@dataclass(frozen=True)
class Engine:
    """Everything that a run needs to be carried, by the name in ``system_config.engine.type``.

    Each worker's reaches the same samples, weights and artifacts as the coordinator's.

    Attributes:
        marks: Of folders of ``buffers`` and ``weights``, for what to remove if the
            coordinator's process dies.
    """

    control: Control
    samples: SampleStore
    weights: WeightStore
    artifacts: Artifacts
    marks: Mapping[str, RunMark] = field(default_factory=dict)
