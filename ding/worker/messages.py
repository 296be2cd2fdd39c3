"""The messages of a parallel run: what a coordinator requests of its workers, and what they answer.

A collector has four requests (`ResourceRequest`, `StartTask`, `SamplesRequest`, `CloseTask`), a
learner six (`OpenMeeting`, `DemandRequest` and `TrainRequest` instead of `SamplesRequest`). Workers
ask nothing, they report in their answers. How messages travel is the carrier's matter
(`ding.worker.seams`); over HTTP they are the JSON objects that DI-engine's workers know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar, get_args

from ding.utils.json_fields import OTHERS, WHOLE, Count, Rule, Seconds, called, to_json

Kind: TypeAlias = Literal["collector", "learner"]
#: What JSON can say.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
#: What a commander hands out and takes back: a `ding.worker.tasks.CollectorTask` or `LearnerTask`,
#: perhaps with custom fields.
Task: TypeAlias = Mapping[str, object]

Answer = TypeVar("Answer", covariant=True)


@dataclass(frozen=True)
class Request(Generic[Answer]):
    """A question to a worker; the parameter is the type of the answer."""


def answer_type(request: type[Request[object]]) -> type:
    """The type of the answer to a kind of request."""
    found: type = get_args(vars(request)["__orig_bases__"][0])[0]
    return found


class Reported:
    """What a worker reports, with facts in addition to those that have a field."""

    def as_json(self) -> dict[str, Json]:
        """All of it in one object, for commanders."""
        return to_json(self)


# ---------------------------------------------------------------------- both kinds of workers


@dataclass(frozen=True)
class Resources(Reported):
    """What a worker has; in tasks, ``resource_info``."""

    cpu: int = 1
    gpu: int = 0
    #: Whether it supports all these messages, or takes and returns one sample or batch at a time.
    ours: bool = True
    #: What else it reported.
    others: Mapping[str, Json] = field(default_factory=dict, metadata=OTHERS)


@dataclass(frozen=True)
class ResourceRequest(Request[Resources]):
    """What do you have? It is the first question to every worker."""


@dataclass(frozen=True)
class StartTask(Request[None]):
    """Begin the commander's task ``info``; one that still runs ends first."""

    kind: Kind
    info: Task


@dataclass(frozen=True)
class TaskReport:
    """How a task ended; `info` is for the commander: a `ding.worker.tasks.CollectorReport` or a
    `LearnerInfo`."""

    task_id: str | None
    info: Mapping[str, Json] = field(metadata=WHOLE)


@dataclass(frozen=True)
class CloseTask(Request[TaskReport]):
    """End the task that runs."""

    kind: Kind


# ---------------------------------------------------------------------- collectors


@dataclass(frozen=True)
class ChunkReport:
    """Samples that a collector has put into the sample store."""

    data_id: str  # their name there
    task_id: str | None
    buffer_id: str | None
    size: int = 0  # bytes; 0 if unknown
    #: A `ding.worker.tasks.ChunkMeta`; for learners with an ascending ``number``.
    meta: Mapping[str, Json] = field(default_factory=dict, metadata=WHOLE)


@dataclass(frozen=True)
class CollectProgress(Reported):
    """How far a collector's task is."""

    task_id: str | None
    #: It has nothing more to collect or to report.
    done: bool = field(default=False, metadata=called("collector_done"))
    #: What it waits for, such as ``space`` or ``policy``; ``None`` if it works.
    waiting: str | None = None
    waiting_bytes: Count = 0  # size of the chunk that waits for space
    warning: str | None = None  # for the operator
    #: What else a `ding.worker.tasks.CollectorInfo` has.
    info: Mapping[str, Json] = field(default_factory=dict, metadata=WHOLE)


@dataclass(frozen=True)
class SamplesAnswer:
    """News of a collector since it was asked last, the oldest first; ``progress`` is ``None`` from
    those that report one thing at a time."""

    chunks: tuple[ChunkReport, ...]
    progress: CollectProgress | None


@dataclass(frozen=True)
class SamplesRequest(Request[SamplesAnswer]):
    """What have you collected?"""

    #: Seconds to wait for news; ``None``: one thing at a time, as foreign collectors do.
    wait: Seconds | None = None
    #: Bytes that may have been written in this task by now; ``None``: no limit.
    quota: Count | None = None
    #: Seconds for which the first news waits for more; ``None``: up to the collector.
    gather: Seconds | None = None


# ---------------------------------------------------------------------- learners


@dataclass(frozen=True)
class Meeting:
    """Where the processes of one learner meet for a task."""

    host: str  # address of rank 0 that the others reach
    port: Annotated[int, Rule(lambda port: 0 < port < 65536, "a port")]
    name: str  # used for one meeting only
    learners: tuple[str, ...] = ()  # names of all processes, in the order of their ranks
    rank: Count = 0  # the rank of the process that is sent this


@dataclass(frozen=True)
class OpenMeeting(Request[Meeting]):
    """Listen for the other processes of your learner: in the next task, you are their rank 0."""


@dataclass(frozen=True)
class Demand:
    """What a learner wants to train on next."""

    task_id: str | None
    batch_size: int
    #: Updates that it has made.
    train_iter: int = field(default=-1, metadata=called("cur_learner_iter"))
    batch_num: Count | None = None  # batches; ``None``: one at a time, as foreign learners do
    buffer_id: str | None = None  # buffer to take them from, if not the task's


@dataclass(frozen=True)
class DemandRequest(Request[Demand]):
    """What do you want? Answered as soon as batches are wanted, or after ``wait`` seconds."""

    wait: Seconds | None = None


@dataclass(frozen=True)
class TrainAnswer(Reported):
    """What has happened in training since the last answer."""

    task_id: str | None
    buffer_id: str | None
    learner_step: int = 0  # updates so far
    learner_done: bool = False
    #: Batches that were trained on or skipped; ``None`` from learners that answer after training.
    trained: Count | None = None
    batch_num: Count | None = None  # batches that are wanted next; ``None``: ask
    policy_iter: int | None = None  # update of the newest weights that were published
    waiting: str | None = None
    trouble: str | None = None
    error: str | None = None  # why training has ended early
    warnings: tuple[str, ...] = ()
    bad_chunks: tuple[tuple[str, str], ...] = ()  # chunks that cannot be read: name and cause
    #: For the buffer, lists with an entry for each sample: ``priority`` (>= 0),
    #: ``replay_unique_id`` and ``replay_buffer_idx``.
    priority_info: Mapping[str, Json] = field(default_factory=dict)
    #: What else a `ding.worker.tasks.LearnerInfo` has, and what the policy logs.
    info: Mapping[str, Json] = field(default_factory=dict, metadata=WHOLE)
    received: tuple[str, ...] = ()  # chunks whose samples are in the learner's replay buffer now
    left: tuple[str, ...] = ()  # chunks none of whose samples is in it any more
    own_rows: Count | None = None  # samples in that buffer; ``None`` if it has none
    starved: bool = False  # whether that buffer has too little for a batch that may be drawn


@dataclass(frozen=True)
class TrainRequest(Request[TrainAnswer]):
    """Train on batches; answered at once, or when more are wanted."""

    envstep: Count = 0  # env steps of all collectors so far
    #: What normalising environments have seen, if that is news.
    env_statistics: Mapping[str, Json] | None = None
    #: One batch for a foreign learner, a dict for each sample; answered after training.
    rows: tuple[Mapping[str, Json], ...] | None = None
    wait: Seconds | None = None  # seconds to wait, at most, until batches are wanted
    chunks: tuple[ChunkReport, ...] = ()  # samples for the learner's replay buffer
    draws: Count = 0  # batches that it may draw from that buffer

    @property
    def names(self) -> set[str]:
        """All chunks that it takes to answer."""
        return {chunk.data_id for chunk in self.chunks}
