"""What is known of one worker, and the moves that it can be made to do. It only holds values."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

from ding.utils import durations
from ding.worker.messages import (
    CloseTask,
    Request,
    Resources,
    StartTask,
    Task,
    TrainRequest,
)
from ding.worker.seams import Arrival, NonsenseAnswer, WorkerLost

Answer = TypeVar("Answer")
Result = TypeVar("Result")
#: ``gone``: nothing will come of it any more. ``resting``: others may try after its failures.
SessionState: TypeAlias = Literal[
    "connecting", "idle", "starting", "running", "closing", "resting", "gone"
]
#: Names of the limits that a request may be under.
Limit: TypeAlias = Literal["step", "start", "close", "learn"]
FOREVER = float("inf")


@dataclass(frozen=True)
class Ask:
    """Put this request to the worker; what it answers, or how it fails, decides what is next."""

    request: Request[Any]
    limit: Limit


@dataclass(frozen=True)
class Wait:
    """Nothing is to be done before that time, unless the worker is woken."""

    until: float


@dataclass(frozen=True)
class Leave:
    """The worker's session is over. With a cause, the worker is to be released."""

    cause: str | None


Move: TypeAlias = Ask | Wait | Leave
#: Moves, one after another; each is sent the answer to it.
Steps: TypeAlias = Generator[Ask | Wait, object, Result]


class WorkerSession:
    """One worker from its arrival to its end.

    Attributes:
        resources: What it has reported that it has.
        reported_bytes: Size of all chunks that a collector has reported.
        gather: Seconds for which a collector's news is to wait for more.
        next_task: A task that it was given and has not begun.
        task_id: The task that is open.
        waits_for: What that task cannot go on without, ``None`` if it goes on.
        info: The latest that the worker reported of its progress in it.
        is_eval: Whether it evaluates instead of collecting.
        lost: Why the worker is lost, if it is.
        ended: Why its session shall end, if it shall.
        topic: What wakes it, in addition to its own news.
        changed: What others may wait for and has changed through its job.
        failures: Tasks that failed in a row.
        since: When it came to its state, in seconds.
        steps: Its life; the core's.
    """

    steps: Steps[str | None]

    def __init__(self, arrival: Arrival, now: float) -> None:
        self.arrival, self.name, self.kind = arrival, arrival.name, arrival.kind
        self.resources = Resources()
        self.reported_bytes = 0
        self.gather = durations.MESSAGE_GATHER
        self.next_task: Task | None = None
        self.task_id: str | None = None
        self.waits_for: str | None = None
        self.info: dict[str, Any] = {}
        self.is_eval = False
        self.lost: str | None = None
        self.ended: str | None = None
        self.is_close_asked = False
        self.topic: str | None = None
        self.changed: set[str] = set()
        self.failures = 0
        self.state: SessionState = "connecting"
        self.now = self.since = now

    @property
    def gone(self) -> str | None:
        """Why nothing can be asked of it any more."""
        return self.lost or self.ended

    @property
    def is_open(self) -> bool:
        """Whether it has a task that has not ended."""
        return self.task_id is not None or self.next_task is not None

    def become(self, state: SessionState) -> None:
        self.state, self.since = state, self.now

    def ask(self, request: Request[Answer]) -> Steps[Answer]:
        """Put a request to the worker; returns its answer.

        Raises:
            WorkerFailed: There is none; as `ding.worker.seams.Peer.ask` says.
        """
        if self.gone is not None:
            raise WorkerLost(self.gone)
        try:
            answer = yield Ask(request, _limit(request))
        except WorkerLost as err:
            # The control may know better why there is no answer.
            yield from self.pause(durations.CAUSE_WAIT, until_close=False)
            if self.lost is None:
                raise
            raise WorkerLost(self.lost) from err
        (wanted,) = get_args(type(request).__orig_bases__[0])  # type: ignore[attr-defined]
        if not isinstance(answer, wanted):
            name = type(request).__name__
            raise NonsenseAnswer(f"it answered {name} with a {type(answer).__name__}")
        return cast(Answer, answer)

    def pause(
        self, seconds: float, topic: str | None = None, until_close: bool = True
    ) -> Steps[bool]:
        """Wait; returns whether the task or the session shall end.

        Args:
            topic: News of this end the pause.
        """
        until, self.topic = self.now + seconds, topic
        while not self._is_over(until_close) and self.now < until:
            yield Wait(until)
            if topic is not None and self.topic is None:
                break
        self.topic = None
        return self._is_over(until_close)

    def _is_over(self, until_close: bool) -> bool:
        return self.gone is not None or (until_close and self.is_close_asked)


def _limit(request: Request[Answer]) -> Limit:
    if isinstance(request, StartTask):
        return "start"
    if isinstance(request, CloseTask):
        return "close"
    if isinstance(request, TrainRequest) and request.rows is not None:
        return "learn"  # answered when it has been trained on
    return "step"
