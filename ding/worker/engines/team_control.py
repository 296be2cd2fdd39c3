"""Learners of several processes, for engines that start workers themselves."""

import threading
from collections.abc import Mapping, Sequence
from typing import TypeVar

from ding.interaction.slave import TaskFail
from ding.worker.adapter.team_service import TeamService
from ding.worker.error_report import ErrorReport
from ding.worker.messages import Request
from ding.worker.seams import (
    Arrival,
    Arrivals,
    Awaited,
    Control,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)

Answer = TypeVar("Answer")


class TeamControl:
    """Lets each team of learners come as one; implements `Control` and, for another, `Arrivals`.

    Args:
        control: What reaches all workers.
        teams: The names of each team's members, by its own.
    """

    def __init__(self, control: Control, teams: Mapping[str, Sequence[str]]) -> None:
        self._control = control
        self._teams = {name: _Team(name, members, control) for name, members in teams.items()}
        self._team_of = {member: self._teams[name] for name, m in teams.items() for member in m}
        self._arrivals: Arrivals | None = None

    def start(self, arrivals: Arrivals) -> None:
        """Begin to let workers come; does not wait for them."""
        self._arrivals = arrivals
        for team in self._teams.values():
            team.start(arrivals)
        self._control.start(self)

    def release(self, arrival: Arrival, cause: str) -> None:
        """Let a worker go; a team comes again when all of it is there."""
        team = self._teams.get(arrival.name)
        if team is None:
            self._control.release(arrival, cause)
        else:
            team.release(cause)

    def awaited(self) -> Sequence[Awaited]:
        """Workers that are being started, or will be."""
        return self._control.awaited()

    def close(self, timeout: float) -> bool:
        """Tell all workers that the run is over, and end."""
        for team in self._teams.values():
            team.close()
        return self._control.close(timeout)

    @property
    def address(self) -> str | None:
        """Where others find the run."""
        return self._control.address

    # What the other control tells

    def came(self, arrival: Arrival) -> None:
        self._target(arrival).came(arrival)

    def lost(self, arrival: Arrival, cause: str) -> None:
        self._target(arrival).lost(arrival, cause)

    def status(self) -> Mapping[str, object]:
        return self._above.status()

    def warn(self, source: str, text: str) -> None:
        self._above.warn(source, text)

    def fatal(self, cause: str) -> None:
        self._above.fatal(cause)

    def _target(self, arrival: Arrival) -> Arrivals:
        team = self._team_of.get(arrival.name)
        return self._above if team is None else team.service.team

    @property
    def _above(self) -> Arrivals:
        assert self._arrivals is not None, "start() comes first"
        return self._arrivals


class _Team:
    """One learner of several processes, as the coordinator sees it.

    Attributes:
        service: What deals requests out to its members.
    """

    def __init__(self, name: str, members: Sequence[str], control: Control) -> None:
        self._name = name
        self.service = TeamService(members, control.release, name)
        self._arrivals: Arrivals | None = None
        self._wanted, self._closing = threading.Event(), False
        self._thread = threading.Thread(target=self._come, name=f"team-{name}", daemon=True)

    def start(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self.service.start()
        self._wanted.set()
        self._thread.start()

    def release(self, cause: str) -> None:
        self.service.coordinator_lost(cause)
        self._wanted.set()

    def close(self) -> None:
        self._closing = True
        self.service.close()
        self._wanted.set()

    def _come(self) -> None:
        """Come to the coordinator, each time when all members are there."""
        while self._wanted.wait() and not self._closing:
            self._wanted.clear()
            if self.service.team.wait(None) or self._closing:
                return
            assert self._arrivals is not None
            where = f"{len(self.service.team.names)} processes"
            self._arrivals.came(Arrival("learner", self._name, _TeamPeer(self.service), where))


class _TeamPeer:
    """A team as its session sees it."""

    def __init__(self, service: TeamService) -> None:
        self._service = service
        self._asking = threading.Lock()

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
