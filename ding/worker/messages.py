"""The messages of a parallel run: a coordinator's requests and the workers' answers.

A collector supports four requests (`ResourceRequest`, `StartTask`, `SamplesRequest`, `CloseTask`),
a learner six (`OpenMeeting`, `DemandRequest` and `TrainRequest` instead of `SamplesRequest`).
Workers send no requests; they report in their answers. The engine transports messages
(`ding.worker.seams`); over HTTP they are the JSON objects of DI-engine's protocol.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar, get_args

from ding.utils.json_fields import OTHERS, WHOLE, Count, Rule, Seconds, called, to_json

Kind: TypeAlias = Literal["collector", "learner"]
#: Any JSON value.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
#: A commander's task: a `ding.worker.tasks.CollectorTask` or `LearnerTask`, possibly with custom
#: fields.
Task: TypeAlias = Mapping[str, object]

Answer = TypeVar("Answer", covariant=True)


@dataclass(frozen=True)
class Request(Generic[Answer]):
    """A request to a worker; the type parameter is the answer's type."""


def answer_type(request: type[Request[object]]) -> type:
    """The answer's type for a kind of request."""
    found: type = get_args(vars(request)["__orig_bases__"][0])[0]
    return found


class Reported:
    """A worker's report, with further facts that have no field."""

    def as_json(self) -> dict[str, Json]:
        """All facts as one object, for commanders."""
        return to_json(self)


# ---------------------------------------------------------------------- both kinds of workers


@dataclass(frozen=True)
class Resources(Reported):
    """A worker's resources; ``resource_info`` in tasks."""

    cpu: int = 1
    gpu: int = 0
    #: Whether it supports all these messages; otherwise it handles one sample or batch at a time.
    ours: bool = True
    #: Other reported facts.
    others: Mapping[str, Json] = field(default_factory=dict, metadata=OTHERS)


@dataclass(frozen=True)
class ResourceRequest(Request[Resources]):
    """Asks for a worker's resources; the first request to every worker."""


@dataclass(frozen=True)
class StartTask(Request[None]):
    """Begin the commander's task ``info``; a running task is ended first."""

    kind: Kind
    info: Task


@dataclass(frozen=True)
class TaskReport:
    """A task's final report; `info` is for the commander: a `ding.worker.tasks.CollectorReport` or
    a `LearnerInfo`."""

    task_id: str | None
    info: Mapping[str, Json] = field(metadata=WHOLE)


@dataclass(frozen=True)
class CloseTask(Request[TaskReport]):
    """End the current task."""

    kind: Kind


# ---------------------------------------------------------------------- collectors


@dataclass(frozen=True)
class ChunkReport:
    """Samples that a collector has stored in the sample store."""

    data_id: str  # their name in the store
    task_id: str | None
    buffer_id: str | None
    size: int = 0  # bytes; 0 if unknown
    #: A `ding.worker.tasks.ChunkMeta`; in messages to learners with an ascending ``number``.
    meta: Mapping[str, Json] = field(default_factory=dict, metadata=WHOLE)


@dataclass(frozen=True)
class CollectProgress(Reported):
    """Progress of a collector's task."""

    task_id: str | None
    #: Whether nothing remains to collect or report.
    done: bool = field(default=False, metadata=called("collector_done"))
    #: What the collector waits for, such as ``space`` or ``policy``; ``None`` if it is working.
    waiting: str | None = None
    waiting_bytes: Count = 0  # size of the chunk that waits for space
    warning: str | None = None  # for the operator
    #: Further keys of a `ding.worker.tasks.CollectorInfo`.
    info: Mapping[str, Json] = field(default_factory=dict, metadata=WHOLE)


@dataclass(frozen=True)
class SamplesAnswer:
    """A collector's news since the last request, oldest first; ``progress`` is ``None`` from
    collectors that report one item per answer."""

    chunks: tuple[ChunkReport, ...]
    progress: CollectProgress | None


@dataclass(frozen=True)
class SamplesRequest(Request[SamplesAnswer]):
    """Asks for collected samples."""

    #: Seconds to wait for news; ``None``: one item per answer, as foreign collectors expect.
    wait: Seconds | None = None
    #: Total bytes that this task may have written so far; ``None``: no limit.
    quota: Count | None = None
    #: Seconds for which the first item waits for more; ``None``: the collector decides.
    gather: Seconds | None = None


# ---------------------------------------------------------------------- learners


@dataclass(frozen=True)
class Meeting:
    """The rendezvous of one learner's processes for a task."""

    host: str  # address of rank 0 that the other ranks can reach
    port: Annotated[int, Rule(lambda port: 0 < port < 65536, "a port")]
    name: str  # used for one meeting only
    learners: tuple[str, ...] = ()  # names of all processes, in the order of their ranks
    rank: Count = 0  # rank of the receiving process


@dataclass(frozen=True)
class OpenMeeting(Request[Meeting]):
    """Asks rank 0 of the next task to listen for the other processes of its learner."""


@dataclass(frozen=True)
class Demand:
    """The batches that a learner wants next."""

    task_id: str | None
    batch_size: int
    #: Number of its updates so far.
    train_iter: int = field(default=-1, metadata=called("cur_learner_iter"))
    batch_num: Count | None = None  # batches; ``None``: one at a time, from foreign learners
    buffer_id: str | None = None  # buffer to draw them from, if not the task's


@dataclass(frozen=True)
class DemandRequest(Request[Demand]):
    """Asks how many batches are wanted; answered when some are, or after ``wait`` seconds."""

    wait: Seconds | None = None


@dataclass(frozen=True)
class TrainAnswer(Reported):
    """News of training since the last answer."""

    task_id: str | None
    buffer_id: str | None
    learner_step: int = 0  # updates so far
    learner_done: bool = False
    #: Batches trained on or skipped; ``None`` from learners that answer after training.
    trained: Count | None = None
    batch_num: Count | None = None  # batches wanted next; ``None``: send a `DemandRequest`
    policy_iter: int | None = None  # update of the newest published weights
    waiting: str | None = None
    trouble: str | None = None
    error: str | None = None  # why training ended early
    warnings: tuple[str, ...] = ()
    bad_chunks: tuple[tuple[str, str], ...] = ()  # chunks that cannot be read: name and cause
    #: For the buffer, lists with one entry per sample: ``priority`` (>= 0),
    #: ``replay_unique_id`` and ``replay_buffer_idx``.
    priority_info: Mapping[str, Json] = field(default_factory=dict)
    #: Further keys of a `ding.worker.tasks.LearnerInfo`, and the policy's log.
    info: Mapping[str, Json] = field(default_factory=dict, metadata=WHOLE)
    received: tuple[str, ...] = ()  # chunks whose samples are now in the learner's replay buffer
    left: tuple[str, ...] = ()  # chunks without any sample left in it
    own_rows: Count | None = None  # samples in that buffer; ``None`` if there is no buffer
    starved: bool = False  # whether that buffer has too few samples for a permitted batch


@dataclass(frozen=True)
class TrainRequest(Request[TrainAnswer]):
    """Permits batches for training; answered at once, or when more batches are wanted."""

    envstep: Count = 0  # env steps of all collectors so far
    #: New statistics of normalising environments, if any.
    env_statistics: Mapping[str, Json] | None = None
    #: One batch for a foreign learner, one dict per sample; answered after training.
    rows: tuple[Mapping[str, Json], ...] | None = None
    wait: Seconds | None = None  # maximum seconds to wait until batches are wanted
    chunks: tuple[ChunkReport, ...] = ()  # samples for the learner's replay buffer
    draws: Count = 0  # batches that may be drawn from that buffer

    @property
    def names(self) -> set[str]:
        """All chunks that are needed to answer the request."""
        return {chunk.data_id for chunk in self.chunks}
