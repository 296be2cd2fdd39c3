"""The known facts of one worker, and the moves of its session; values only, no I/O."""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast

from ding.utils import durations
from ding.worker.messages import Request, Resources, Task, answer_type
from ding.worker.seams import Arrival, NonsenseAnswer, WorkerLost

Answer = TypeVar("Answer")
Result = TypeVar("Result")
#: ``gone``: the session is over. ``resting``: other workers are tried first after its failures.
SessionState: TypeAlias = Literal[
    "connecting", "idle", "starting", "running", "closing", "resting", "gone"
]
FOREVER = float("inf")


@dataclass(frozen=True)
class Ask:
    """Send this request to the worker; its answer or failure determines the next move."""

    request: Request[Any]


@dataclass(frozen=True)
class Wait:
    """Do nothing before that time, unless the session is woken."""

    until: float


@dataclass(frozen=True)
class Leave:
    """End the worker's session. With a cause, the worker must be released."""

    cause: str | None


Move: TypeAlias = Ask | Wait | Leave
#: A generator of moves; the answer to each move is sent into it.
Steps: TypeAlias = Generator[Ask | Wait, object, Result]


class WaitShares:
    """The fractions of the last seconds that were spent waiting, by cause."""

    # The latest state alone would show a worker that waits a tenth of the time as waiting, or not.

    def __init__(self, now: float) -> None:
        self.what: str | None = None
        self._since, self._seen = now, 0.0
        self._sums: dict[str, float] = {}

    def change(self, what: str | None, now: float) -> None:
        """Record what is waited for from now on; ``None`` for nothing."""
        if what != self.what:
            self._seen, self._sums = self._until(now)
            self._since, self.what = now, what

    def at(self, now: float) -> dict[str, float]:
        """The fractions, 0 to 1, by cause."""
        seen, sums = self._until(now)
        return {what: round(total / seen, 3) for what, total in sums.items() if seen}

    def _until(self, now: float) -> tuple[float, dict[str, float]]:
        """Observed time, and time spent waiting by cause; older time has less weight."""
        # Exponential weights need only sums, and no history.
        kept = math.exp(min(self._since - now, 0.0) / durations.WAIT_SHARE_SPAN)
        sums = {what: total * kept for what, total in self._sums.items()}
        if self.what is not None:
            sums[self.what] = sums.get(self.what, 0.0) + 1.0 - kept
        return self._seen * kept + 1.0 - kept, sums


class WorkerSession:
    """One worker, from joining to its end."""

    steps: Steps[str | None]  # the session's moves; set by the core

    def __init__(self, arrival: Arrival, now: float) -> None:
        self.arrival, self.name, self.kind = arrival, arrival.name, arrival.kind
        self.resources = Resources()  # as reported by the worker
        self.reported_bytes = 0  # of all chunks that a collector has reported
        #: Seconds for which a collector's first news waits for more.
        self.gather = durations.MESSAGE_GATHER
        self.next_task: Task | None = None  # assigned and not begun yet
        self.task_id: str | None = None  # of the open task
        self.info: dict[str, Any] = {}  # the latest reported progress of this task
        self.is_eval = False  # whether it evaluates instead of collecting
        self.lost: str | None = None  # why the worker is lost, if it is
        self.ended: str | None = None  # why the session must end, if it must
        self.is_close_asked = False
        self.topic: str | None = None  # event that wakes it, in addition to its own news
        #: Topics for other sessions that have changed through its job.
        self.changed: set[str] = set()
        self.failures = 0  # tasks that failed in a row
        self.state: SessionState = "connecting"
        self.now = self.since = now  # seconds; ``since``: when it entered its state
        self.waits = WaitShares(now)

    @property
    def waits_for(self) -> str | None:
        """What the worker needs to continue; ``None`` if it is not blocked."""
        return self.waits.what

    @waits_for.setter
    def waits_for(self, what: str | None) -> None:
        self.waits.change(what, self.now)

    @property
    def gone(self) -> str | None:
        """Why the worker accepts no more requests; ``None`` if it does."""
        return self.lost or self.ended

    @property
    def is_open(self) -> bool:
        """Whether the worker has a task that has not ended."""
        return self.task_id is not None or self.next_task is not None

    def become(self, state: SessionState) -> None:
        self.state, self.since = state, self.now

    def ask(self, request: Request[Answer]) -> Steps[Answer]:
        """Send a request to the worker; returns its answer, raises as `Peer.ask`."""
        if self.gone is not None:
            raise WorkerLost(self.gone)
        try:
            answer = yield Ask(request)
        except WorkerLost as err:
            # The control may know the cause of a missing answer better.
            yield from self.pause(durations.CAUSE_WAIT, until_close=False)
            if self.lost is None:
                raise
            raise WorkerLost(self.lost) from err
        if not isinstance(answer, answer_type(type(request))):
            name = type(request).__name__
            raise NonsenseAnswer(f"it answered {name} with a {type(answer).__name__}")
        return cast(Answer, answer)

    def pause(
        self, seconds: float, topic: str | None = None, until_close: bool = True
    ) -> Steps[bool]:
        """Wait, at most until news of ``topic``; returns whether task or session must end."""
        until, self.topic = self.now + seconds, topic
        while not self._is_over(until_close) and self.now < until:
            yield Wait(until)
            if topic is not None and self.topic is None:
                break
        self.topic = None
        return self._is_over(until_close)

    def _is_over(self, until_close: bool) -> bool:
        return self.gone is not None or (until_close and self.is_close_asked)
