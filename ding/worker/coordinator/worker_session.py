"""What is known of one worker, and the moves that it can be made to do. It only holds values."""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast

from ding.utils import durations
from ding.worker.messages import Request, Resources, Task, answer_type
from ding.worker.seams import Arrival, NonsenseAnswer, WorkerLost

Answer = TypeVar("Answer")
Result = TypeVar("Result")
#: ``gone``: nothing will come of it any more. ``resting``: others may try after its failures.
SessionState: TypeAlias = Literal[
    "connecting", "idle", "starting", "running", "closing", "resting", "gone"
]
FOREVER = float("inf")


@dataclass(frozen=True)
class Ask:
    """Put this request to the worker; its answer or failure decides what is next."""

    request: Request[Any]


@dataclass(frozen=True)
class Wait:
    """Nothing is to be done before that time, unless the worker is woken."""

    until: float


@dataclass(frozen=True)
class Leave:
    """The worker's session is over. With a cause, the worker has to be released."""

    cause: str | None


Move: TypeAlias = Ask | Wait | Leave
#: Moves, one after another; each is sent the answer to it.
Steps: TypeAlias = Generator[Ask | Wait, object, Result]


class WaitShares:
    """For which shares of the last seconds something was waited for."""

    # The latest state alone shows a worker that waits a tenth of its time as waiting by chance.

    def __init__(self, now: float) -> None:
        self.what: str | None = None
        self._since, self._seen = now, 0.0
        self._sums: dict[str, float] = {}

    def change(self, what: str | None, now: float) -> None:
        """From now on that is waited for; ``None`` for nothing."""
        if what != self.what:
            self._seen, self._sums = self._until(now)
            self._since, self.what = now, what

    def at(self, now: float) -> dict[str, float]:
        """The shares, 0 to 1, by what was waited for."""
        seen, sums = self._until(now)
        return {what: round(total / seen, 3) for what, total in sums.items() if seen}

    def _until(self, now: float) -> tuple[float, dict[str, float]]:
        """Time that was seen, and of that what was waited for; older time counts less."""
        # Exponential weights need no list of what was: two sums, whatever happens.
        kept = math.exp(min(self._since - now, 0.0) / durations.WAIT_SHARE_SPAN)
        sums = {what: total * kept for what, total in self._sums.items()}
        if self.what is not None:
            sums[self.what] = sums.get(self.what, 0.0) + 1.0 - kept
        return self._seen * kept + 1.0 - kept, sums


class WorkerSession:
    """One worker from its arrival to its end."""

    steps: Steps[str | None]  # its life; the core's

    def __init__(self, arrival: Arrival, now: float) -> None:
        self.arrival, self.name, self.kind = arrival, arrival.name, arrival.kind
        self.resources = Resources()  # what it has reported that it has
        self.reported_bytes = 0  # of all chunks that a collector has reported
        #: Seconds for which a collector's news is to wait for more.
        self.gather = durations.MESSAGE_GATHER
        self.next_task: Task | None = None  # that it was given and has not begun
        self.task_id: str | None = None  # of the task that is open
        self.info: dict[str, Any] = {}  # the latest that it reported of its progress in that
        self.is_eval = False  # whether it evaluates instead of collecting
        self.lost: str | None = None  # why it is lost, if it is
        self.ended: str | None = None  # why its session shall end, if it shall
        self.is_close_asked = False
        self.topic: str | None = None  # what wakes it, in addition to its own news
        #: What others may wait for and has changed through its job.
        self.changed: set[str] = set()
        self.failures = 0  # tasks that failed in a row
        self.state: SessionState = "connecting"
        self.now = self.since = now  # seconds; when it came to its state
        self.waits = WaitShares(now)

    @property
    def waits_for(self) -> str | None:
        """What it needs to continue; ``None`` if nothing blocks it."""
        return self.waits.what

    @waits_for.setter
    def waits_for(self, what: str | None) -> None:
        self.waits.change(what, self.now)

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
        """Put a request to the worker; returns its answer, raises as `Peer.ask`."""
        if self.gone is not None:
            raise WorkerLost(self.gone)
        try:
            answer = yield Ask(request)
        except WorkerLost as err:
            # The control may know better why there is no answer.
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
        """Wait, until news of ``topic`` at most; returns whether task or session shall end."""
        until, self.topic = self.now + seconds, topic
        while not self._is_over(until_close) and self.now < until:
            yield Wait(until)
            if topic is not None and self.topic is None:
                break
        self.topic = None
        return self._is_over(until_close)

    def _is_over(self, until_close: bool) -> bool:
        return self.gone is not None or (until_close and self.is_close_asked)
