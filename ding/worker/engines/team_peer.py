"""A learner of several processes, for engines that start workers themselves."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from ding.interaction.slave import TaskFail
from ding.worker.adapter.team_service import TeamService
from ding.worker.error_report import ErrorReport
from ding.worker.messages import Request
from ding.worker.seams import Arrival, Arrivals, WorkerBusy, WorkerFailed, WorkerLost

Answer = TypeVar("Answer")


class TeamPeer:
    """Comes to the coordinator as one learner, each time when all of its members are there.

    Args:
        name: Of the learner.
        names: Of its processes.
        release: Has one of them let go; called with its arrival and the cause.

    Attributes:
        members: To be told when one of these processes comes, or is lost.
    """

    def __init__(
        self, name: str, names: Sequence[str], release: Callable[[Arrival, str], object]
    ) -> None:
        self._name = name
        self._service = TeamService(names, release, name)
        self.members: Arrivals = self._service.team
        self._asking = threading.Lock()
        self._wanted, self._closing = threading.Event(), False
        self._arrivals: Arrivals
        self._thread = threading.Thread(target=self._come, name=f"team-{name}", daemon=True)

    def start(self, arrivals: Arrivals) -> None:
        """Begin to wait for the members."""
        self._arrivals = arrivals
        self._service.start()
        self._wanted.set()
        self._thread.start()

    def end(self, cause: str) -> None:
        """It is let go; it comes again when all of it is there."""
        self._service.coordinator_lost(cause)
        self._wanted.set()

    def close(self) -> None:
        """End; its members are told by who keeps them."""
        self._closing = True
        self._service.close()
        self._wanted.set()

    def _come(self) -> None:
        while self._wanted.wait() and not self._closing:
            self._wanted.clear()
            if self._service.team.wait(None) or self._closing:
                return
            where = f"{len(self._service.team.names)} processes"
            self._arrivals.came(Arrival("learner", self._name, self, where))

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """Put a request and wait for the answer; see `ding.worker.seams.Peer`."""
        if not self._asking.acquire(blocking=False):
            raise WorkerBusy("it still works on an earlier request")
        try:
            return self._service.handle(request)  # which has limits of its own
        except TaskFail as error:
            report = ErrorReport.from_detail(error.result, error.message or "it failed")
            if report.type == "ConnectionLost":
                raise WorkerLost(report.message) from error
            raise WorkerFailed(str(report), error.result, by_worker=True) from error
        finally:
            self._asking.release()
