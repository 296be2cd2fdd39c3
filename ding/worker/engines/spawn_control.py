"""The control of an engine that starts its workers itself: over the verbs spawn, call, drop."""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.utils.errors import DataError
from ding.utils.processes import AfterDeath, Restarts
from ding.utils.sent_files import FileChange
from ding.worker.adapter.team_service import TeamPeer
from ding.worker.engines.carrier import Carrier, EndWorker, NotYetError, WithFiles, WorkerSpec
from ding.worker.engines.run_master import StatusServer
from ding.worker.engines.shared_folder import apply_changes, files_of_task
from ding.worker.messages import Request, ResourceRequest
from ding.worker.seams import (
    Arrival,
    Arrivals,
    Awaited,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)

Answer = TypeVar("Answer")

_logger = logging.getLogger(__name__)


class SpawnControl:
    """Starts the workers of a run, tells the coordinator of them, and starts dead ones again.

    A worker that cannot be built ends the run: it could not be built the next time either. So does
    the death of the last worker of a kind that may not be started again. The processes of one
    learner come to the coordinator as one.

    Args:
        carrier: What starts them.
        specs: Which there are.
        max_restart: How often each may be started again.
    """

    def __init__(
        self, carrier: Carrier[Any], specs: Sequence[WorkerSpec], max_restart: int
    ) -> None:
        self._status_server: StatusServer | None = None
        members: dict[str, list[str]] = {}
        for spec in specs:
            if spec.team is not None:
                members.setdefault(spec.team, []).append(spec.name)
        self._teams = {team: TeamPeer(team, names, self.release) for team, names in members.items()}
        # One process of a learner cannot be done without, whatever other learners there are.
        kinds = {spec.name: spec.kind if spec.team is None else spec.name for spec in specs}
        restarts = Restarts(kinds, max_restart)
        self._keepers = [_Keeper(carrier, spec, restarts) for spec in specs]

    def start(self, arrivals: Arrivals) -> None:
        """Start all workers; does not wait for them."""
        self._status_server = StatusServer(arrivals.status)
        self._status_server.start()
        for team in self._teams.values():
            team.start(arrivals)
        for keeper in self._keepers:
            team_name = keeper.spec.team
            target = arrivals if team_name is None else self._teams[team_name].members
            keeper.start(arrivals, target)

    def release(self, arrival: Arrival, cause: str) -> None:
        """End a worker; another one is started in its stead."""
        arrival.peer.end(cause)  # type: ignore[attr-defined]  # a `_Life` or a `TeamPeer`

    def awaited(self) -> Sequence[Awaited]:
        """Workers that are being started, or will be."""
        return [keeper.awaited for keeper in self._keepers if not keeper.is_there]

    def close(self, timeout: float) -> bool:
        """End all workers; whether they did so in good order within so many seconds."""
        deadline = time.monotonic() + timeout
        for team in self._teams.values():
            team.close()
        for keeper in self._keepers:
            keeper.close(deadline)
        ended = [keeper.join(deadline) for keeper in self._keepers]
        if self._status_server is not None:
            self._status_server.close()
        return all(ended)

    @property
    def address(self) -> str | None:
        """Where it tells the run's status; nobody can join there."""
        return None if self._status_server is None else self._status_server.my_address


class _Keeper:
    """Looks after one worker, in a thread: starts it, waits for its end, starts it again.

    Attributes:
        is_there: Whether it has come, or was given up.
    """

    def __init__(self, carrier: Carrier[Any], spec: WorkerSpec, restarts: Restarts) -> None:
        if not carrier.in_one_process:
            spec = dataclasses.replace(spec, folder=carrier.exp_name)
        self.spec = spec
        self.awaited = Awaited(spec.kind, spec.name, type(carrier).__name__)
        self.is_there = False
        self._is_first = True
        self._carrier, self._restarts = carrier, restarts
        self._arrivals: Arrivals
        self._target: Arrivals
        self._closing = threading.Event()
        self._deadline = 0.0  # of the end of the run
        self._in_order = True
        self._life = _Life(spec.name, carrier, restarts, self._warn)
        self._thread = threading.Thread(target=self._run, name=f"keep-{spec.name}", daemon=True)

    def start(self, arrivals: Arrivals, target: Arrivals) -> None:
        """Begin.

        Args:
            arrivals: Told what the operator should know.
            target: Told when the worker comes, and when it is lost.
        """
        self._arrivals, self._target = arrivals, target
        self._thread.start()

    def close(self, deadline: float) -> None:
        """End the worker for good; does not wait."""
        self._deadline = deadline
        self._closing.set()
        self._life.finish()
        if not self.is_there:  # nobody waits for it any more
            self._life.drop()

    def join(self, deadline: float) -> bool:
        """Whether all is over, in good order, by the monotonic time ``deadline``."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        return self._in_order and not self._thread.is_alive()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        name, pause = self.spec.name, 0.0
        try:
            while not self._closing.wait(pause):
                life = self._life = _Life(name, self._carrier, self._restarts, self._warn)
                if self._closing.is_set():  # since before there was this life to be ended
                    return
                self._live(life)
                if self._closing.is_set():
                    return
                assert life.after is not None  # it has died
                if life.after.pause is None:
                    self._give_up(life.after)
                    return
                pause = life.after.pause
        except TaskFail as error:  # it cannot be built, and another try would not change that
            if not self._closing.is_set():
                self._arrivals.fatal(f"{name}: {error.message}")
        except BaseException as error:  # the edge of the thread: reported onward
            _logger.exception("nobody looks after %s any more", name)
            self._arrivals.fatal(f"{name}: {_words(error)}")

    def _live(self, life: "_Life") -> None:
        """From a start to an end.

        Raises:
            TaskFail: It cannot be built.
        """
        try:
            arrival = self._arrive(life)
            if self._closing.is_set():
                return
            self.is_there = True
            self._target.came(arrival)
            life.ended.wait()
            if self._closing.is_set():
                self._part(life)
            else:
                self.is_there = False
                self._target.lost(arrival, life.cause)
        except (OSError, EOFError, WorkerLost) as error:
            cause = life.end(_words(error))
            if not self._closing.is_set():  # else it was dropped while it came
                self._arrivals.warn(self.spec.name, cause)
        finally:
            life.drop()

    def _arrive(self, life: "_Life") -> Arrival:
        """Start the worker, and wait until it answers.

        Raises:
            TaskFail: It cannot be built.
            WorkerLost: It has ended instead.
            OSError: It cannot be started, or the run is over.
        """
        spec = self.spec
        handle = life.handle = self._spawn(life)
        if self._closing.is_set():  # nobody else has seen this handle
            raise WorkerLost("the run is over")
        try:
            life.ask(ResourceRequest(), durations.SPAWN_START)
        except WorkerLost:
            raise
        except WorkerFailed as error:
            raise TaskFail(message=error.cause) from error
        return Arrival(spec.kind, spec.name, life, *self._carrier.address(handle))

    def _spawn(self, life: "_Life") -> object:
        """Start the worker, or find it; waits as long as it cannot be started yet.

        Raises:
            OSError: It cannot be started, or the run is over.
        """
        begun, is_news = time.monotonic(), True
        is_first, self._is_first = self._is_first, False
        found = self._carrier.find(self.spec, life.end) if is_first else None
        if found is not None:
            return found
        while True:
            try:
                return self._carrier.spawn(self.spec, life.end)
            except NotYetError as error:
                if is_news and time.monotonic() - begun > durations.SPAWN_PATIENCE:
                    self._arrivals.warn(self.spec.name, str(error))
                    is_news = False
                if self._closing.wait(durations.SPAWN_PAUSE):
                    raise

    def _part(self, life: "_Life") -> None:
        """Tell the worker that the run is over."""
        try:
            left = max(0.1, self._deadline - time.monotonic())
            life.write(self._carrier.call(life.handle, EndWorker(), left).files)
        except Exception as error:  # whatever it is: the worker is dropped now
            self._in_order = False
            _logger.debug("%s did not end: %s", self.spec.name, _words(error))

    def _warn(self, text: str) -> None:
        self._arrivals.warn(self.spec.name, text)

    def _give_up(self, after: AfterDeath) -> None:
        self.is_there = True
        if after.is_end:
            self._arrivals.fatal(f"{self.spec.name} {after.text}")
        else:
            self._arrivals.warn(self.spec.name, after.text)


class _Life:
    """One worker from its start to its end, as its session sees it.

    Attributes:
        handle: Its carrier's, when it was started.
        cause: Why it has ended, and whether it is started again; empty before that.
        after: What follows its death; ``None`` if it has not died.
        ended: Set at its end.
    """

    def __init__(
        self,
        name: str,
        carrier: Carrier[Any],
        restarts: Restarts,
        warn: Callable[[str], object],
    ) -> None:
        self.handle: object = None
        self._warn = warn
        self.cause = ""
        self.after: AfterDeath | None = None
        self.ended = threading.Event()
        self._name, self._carrier, self._restarts = name, carrier, restarts
        self._began = time.monotonic()
        self._asking, self._dropping = threading.Lock(), threading.Lock()
        self._lock = threading.Lock()

    def end(self, cause: str) -> str:
        """It has died, or has to; returns the cause that was the first to be told."""
        with self._lock:
            if not self.cause:
                cause, life = cause or "it has ended", time.monotonic() - self._began
                self.after = self._restarts.after_death(self._name, cause, life)
                self.cause = cause if self.after.pause is None else self.after.text
        self.ended.set()
        return self.cause

    def finish(self) -> None:
        """It ends with the run."""
        with self._lock:
            self.cause = self.cause or "the run is over"
        self.ended.set()

    def drop(self) -> None:
        """End what the carrier has started, if it has; again does nothing."""
        with self._dropping:  # a carrier need not expect two at once
            handle, self.handle = self.handle, None
            if handle is not None:
                self._carrier.drop(handle)

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """Put a request and wait for the answer; see `ding.worker.seams.Peer`."""
        if not self._asking.acquire(blocking=False):
            raise WorkerBusy("it still works on an earlier request")
        try:
            return self._ask(request, timeout)
        finally:
            self._asking.release()

    def _ask(self, request: Request[Answer], timeout: float) -> Answer:
        if self.cause:
            raise WorkerLost(self.cause)
        try:
            return self._call(request, timeout)
        except TaskFail as error:
            cause = error.message or "it failed"
            raise WorkerFailed(cause, error.result, by_worker=True) from error
        except WorkerLost as error:
            cause = error.cause
        except WorkerFailed:
            raise
        except TimeoutError:
            cause = f"no answer to {type(request).__name__} for {timeout:g} s"
        except Exception as error:  # whatever a carrier raises when a worker is gone
            _logger.debug("%s at %s", type(request).__name__, self._name, exc_info=True)
            cause = _words(error)
        raise WorkerLost(self.end(cause))

    def _call(self, request: Request[Answer], timeout: float) -> Answer:
        if self._carrier.in_one_process:
            return self._carrier.call(self.handle, request, timeout)
        files = files_of_task(self._carrier.exp_name, request)
        answered = self._carrier.call(self.handle, WithFiles(request, files), timeout)
        self.write(answered.files)
        return answered.answer

    def write(self, changes: Iterable[FileChange]) -> None:
        """Write what the worker has written; a file that cannot be written is a warning."""
        try:
            apply_changes(self._carrier.exp_name, changes)
        except (OSError, DataError) as error:
            self._warn(f"what it has written is lost: {_words(error)}")


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
