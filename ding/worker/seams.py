"""The seams of a parallel run: protocols between its parts, and under them what carries messages.

::

    commander -- tasks --> Coordinator <======= sessions ======> workers
                                                                    |  Control: spawn, call, drop
                                       CollectorService, LearnerService (WorkerService)
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

from ding.data.chunks.chunk_file import Samples as Samples
from ding.utils.errors import DingError
from ding.utils.run_claims import RunMark
from ding.worker.messages import Json, Kind, Request

Answer = TypeVar("Answer")
#: Nested mappings of tensors, arrays, numbers and texts.
State = Mapping[str, object]


# ---------------------------------------------------------------------- what goes wrong


class WorkerFailed(DingError):
    """A worker could not do its task; it is there for the next one.

    Attributes:
        cause: What the operator is shown.
        detail: What the worker reported beside it: ``type``, ``message``, ``traceback``.
        by_worker: Whether the worker itself named the cause, so that another may well meet it, too.
    """

    def __init__(self, cause: str, detail: object = None, by_worker: bool = False) -> None:
        super().__init__(cause)
        self.cause, self.detail, self.by_worker = cause, detail, by_worker


class NonsenseAnswer(WorkerFailed):
    """A worker gave an answer that its task does not have."""


class WorkerBusy(WorkerFailed):
    """A worker has not ended an earlier request."""


class WorkerLost(WorkerFailed):
    """A worker is gone, does not answer in time, or has to be let go."""


# ---------------------------------------------------------------------- control


class WorkerService(Protocol):
    """A collector or a learner, whatever carries its messages. It answers one request at a time."""

    kind: Kind

    def start(self) -> None:
        """Begin to take requests."""

    def handle(self, request: Request[Answer]) -> Answer:
        """Answer a request.

        Raises:
            TaskFail: It failed, or is none of this kind of worker; with type, message, traceback.
        """

    def coordinator_lost(self, cause: str) -> None:
        """The coordinator is gone without a word: the task ends; another one may come."""

    def released(self) -> None:
        """The coordinator has said that the run is over."""

    def close(self) -> None:
        """End; again does nothing."""

    def join(self, timeout: float | None = None) -> bool:
        """Whether it has ended within ``timeout`` seconds."""

    @property
    def failed(self) -> str | None:
        """Why it cannot go on, if it cannot."""


class Peer(Protocol):
    """A worker as its session sees it."""

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """Put a request and wait for the answer.

        Raises:
            WorkerLost: It is gone, or there is no answer after ``timeout`` seconds.
            WorkerBusy: It still works on an earlier request.
            WorkerFailed: It says that it failed.
            NonsenseAnswer: The answer is none to this request.
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
    """A worker that is not there, or not any more, and that its control tries to reach or start."""

    kind: Kind
    name: str
    where: str


class Arrivals(Protocol):
    """What a control tells: workers that come and go."""

    def came(self, arrival: Arrival) -> None:
        """A worker is there, for the first time or again; then it takes the place of the one
        before."""

    def lost(self, arrival: Arrival, cause: str) -> None:
        """A worker is gone; a request under way has failed. Of one that has come anew since,
        nothing is said."""

    def status(self) -> Mapping[str, object]:
        """The facts of the run, for those who ask the control for them."""

    def warn(self, source: str, text: str) -> None:
        """Something that the operator should know."""

    def fatal(self, cause: str) -> None:
        """No worker can be reached any more: the run cannot go on."""


class Control(Protocol):
    """The coordinator's way to its workers."""

    def start(self, arrivals: Arrivals) -> None:
        """Begin to let workers come; does not wait for them."""

    def release(self, arrival: Arrival, cause: str) -> None:
        """Let a worker go: nothing more will be asked of it until it comes anew. One that has come
        anew since is not meant."""

    def awaited(self) -> Sequence[Awaited]:
        """Workers that are not there and should be."""

    def close(self, timeout: float) -> bool:
        """Tell all workers that the run is over, and end; whether that was done in time."""

    @property
    def address(self) -> str | None:
        """Where others find it, if they can."""


# ---------------------------------------------------------------------- data


class SampleStore(Protocol):
    """Where samples are, by name. Collectors put, learners get, the coordinator removes."""

    def put(self, name: str, samples: Samples) -> int:
        """Store samples under a new name; returns their bytes.

        Raises:
            DataError: The name or the samples cannot be stored.
            CheckpointWriteError: There is no room, or no way to write; ``errno`` tells.
        """

    def get(self, name: str) -> Samples:
        """Read samples; arrays may be views that cannot be written to.

        Raises:
            ChunkError: They are not there, or damaged.
        """

    def size(self, name: str) -> int | None:
        """Bytes under a name; ``None`` if nothing is there."""

    def remove(self, name: str) -> None:
        """Remove samples; those that are not there are no error.

        Raises:
            CheckpointWriteError: They cannot be removed.
        """

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        """Remove all whose whole names match and are not to be kept, also half-written ones."""


@dataclass(frozen=True)
class Weights:
    """A version of a policy's weights.

    Attributes:
        state: As the policy's ``load_state_dict`` takes it.
        facts: ``policy_iter``, ``envstep``, ``time``, ``learner``.
    """

    state: State
    facts: Mapping[str, Json]


class WeightStore(Protocol):
    """Where the newest weights of each policy are. Learners publish, collectors read."""

    def publish(self, name: str, weights: Weights) -> None:
        """Replace what was published under the name; readers see the old or the new, whole.

        Raises:
            OSError: It cannot be stored now (`CheckpointWriteError` is one).
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
        """Give the newest version a second name that later ones do not replace; whether it was
        there."""

    def remove(self, name: str) -> None:
        """Remove what is under a name; nothing there is no error."""

    def clear(self, pattern: re.Pattern[str]) -> list[str]:
        """Remove all whose whole names match, as far as the store can tell which it has."""


class Artifacts(Protocol):
    """Files of the run's folder that must outlive a worker: states and checkpoints.

    Paths are below the run's folder, as ``ckpt/learner_policy.pth.tar``.
    """

    def save(self, path: str, state: State) -> None:
        """Write a state, whole or not at all.

        Raises:
            OSError: It cannot be written.
        """

    def load(self, path: str) -> State | None:
        """Read a state; ``None`` if there is none.

        Raises:
            CheckpointError: It is damaged.
        """


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

    The coordinator's process has one, and each worker's reaches the same samples, weights and
    artifacts.

    Attributes:
        samples: ``None``: somewhere that the coordinator cannot see.
        weights: Likewise.
        marks: Of folders of ``buffers`` and ``weights``, for what is to be removed if the
            coordinator's process dies.
    """

    control: Control
    samples: SampleStore | None
    weights: WeightStore | None
    artifacts: Artifacts
    marks: Mapping[str, RunMark] = field(default_factory=dict)
