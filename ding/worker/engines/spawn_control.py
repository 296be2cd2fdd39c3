"""The control of an engine that starts its workers itself: over the verbs spawn, call, drop."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.utils.restart_limit import RestartLimit
from ding.worker.engines.carrier import Carrier, EndWorker, NotYetError, Stores, WorkerSpec
from ding.worker.engines.status_server import StatusServer
from ding.worker.engines.team_control import TeamControl
from ding.worker.messages import Kind, Request, ResourceRequest
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

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CarrierEngine(Stores):
    """A carrier as an `Engine`, for the coordinator's process."""

    control: Control

    @classmethod
    def of_run(
        cls, carrier: Carrier[Any], specs: Sequence[WorkerSpec], max_restart: int
    ) -> "CarrierEngine":
        """The engine of a run; see `SpawnControl`."""
        stores = Stores.of(carrier)
        control: Control = SpawnControl(carrier, specs, max_restart)
        teams: dict[str, list[str]] = {}
        for spec in specs:
            if spec.team is not None:
                teams.setdefault(spec.team, []).append(spec.name)
        if teams:
            control = TeamControl(control, teams)
        return cls(stores.samples, stores.weights, stores.artifacts, control)


class SpawnControl:
    """Starts the workers of a run, tells the coordinator of them, and starts dead ones again.

    A worker that cannot be built ends the run: it could not be built the next time either. So does
    the death of the last worker of a kind that may not be started again.

    Args:
        carrier: What starts them.
        specs: Which there are.
        max_restart: How often each may be started again.
    """

    def __init__(
        self, carrier: Carrier[Any], specs: Sequence[WorkerSpec], max_restart: int
    ) -> None:
        self._status_server: StatusServer | None = None
        self._lock = threading.Lock()
        self._left = Counter[Kind](spec.kind for spec in specs)
        self._keepers = {
            spec.name: _Keeper(carrier, spec, RestartLimit(max_restart), self._given_up)
            for spec in specs
        }

    def start(self, arrivals: Arrivals) -> None:
        """Start all workers; does not wait for them."""
        self._status_server = StatusServer(arrivals.status)
        self._status_server.start()
        for keeper in self._keepers.values():
            keeper.start(arrivals)

    def release(self, arrival: Arrival, cause: str) -> None:
        """End a worker; another one is started in its stead."""
        assert isinstance(arrival.peer, _Life)
        arrival.peer.end(cause)

    def awaited(self) -> Sequence[Awaited]:
        """Workers that are being started, or will be."""
        return [keeper.awaited for keeper in self._keepers.values() if not keeper.is_there]

    def close(self, timeout: float) -> bool:
        """End all workers; whether they did so in good order within so many seconds."""
        deadline = time.monotonic() + timeout
        for keeper in self._keepers.values():
            keeper.close(deadline)
        ended = [keeper.join(deadline) for keeper in self._keepers.values()]
        if self._status_server is not None:
            self._status_server.close()
        return all(ended)

    @property
    def address(self) -> str | None:
        """Where it tells the run's status; nobody can join there."""
        return None if self._status_server is None else self._status_server.my_address

    def _given_up(self, kind: Kind) -> bool:
        """A worker is not started again; whether there are others of its kind."""
        with self._lock:
            self._left[kind] -= 1
            return self._left[kind] > 0


class _Keeper:
    """Looks after one worker, in a thread: starts it, waits for its end, starts it again."""

    def __init__(
        self,
        carrier: Carrier[Any],
        spec: WorkerSpec,
        restarts: RestartLimit,
        given_up: Callable[[Kind], bool],
    ) -> None:
        self._carrier, self._spec = carrier, spec
        self._restarts, self._given_up = restarts, given_up
        self._arrivals: Arrivals | None = None
        self._closing = threading.Event()
        self._deadline = 0.0  # of the end of the run
        self._in_order = True
        self._life = self._new_life()
        self._arriving: object = None
        self._dropping = threading.Lock()
        self.awaited = Awaited(spec.kind, spec.name, type(carrier).__name__)
        self.is_there = False  # or given up
        self._thread = threading.Thread(target=self._run, name=f"keep-{spec.name}", daemon=True)

    def start(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._thread.start()

    def close(self, deadline: float) -> None:
        """End the worker for good; does not wait."""
        self._deadline = deadline
        self._closing.set()
        self._life.finish()
        arriving = self._arriving
        if arriving is not None:  # nobody waits for it any more
            self._drop(arriving)

    def _drop(self, handle: object) -> None:
        with self._dropping:  # a carrier need not expect two at once
            self._carrier.drop(handle)

    def join(self, deadline: float) -> bool:
        """Whether all is over, in good order, by the monotonic time ``deadline``."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        return self._in_order and not self._thread.is_alive()

    def _new_life(self) -> "_Life":
        return _Life(self._spec.name, self._carrier, self._restarts)

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        assert self._arrivals is not None
        arrivals, name, pause = self._arrivals, self._spec.name, 0.0
        try:
            while not self._closing.wait(pause):
                life = self._life = self._new_life()
                if self._closing.is_set():  # since before there was this life to be ended
                    return
                self._live(life, arrivals)
                if self._closing.is_set():
                    return
                if life.pause is None:
                    self._give_up(life.cause, arrivals)
                    return
                pause = life.pause
        except TaskFail as error:  # it cannot be built, and another try would not change that
            if not self._closing.is_set():
                arrivals.fatal(f"{name}: {error.message}")
        except Exception as error:  # the edge of the thread: reported onward
            _logger.exception("nobody looks after %s any more", name)
            arrivals.fatal(f"{name}: {_words(error)}")

    def _live(self, life: "_Life", arrivals: Arrivals) -> None:
        """From a start to an end.

        Raises:
            TaskFail: It cannot be built.
        """
        spec = self._spec
        try:
            handle = self._spawn(life, arrivals)
        except (OSError, EOFError) as error:
            cause = life.end(_words(error))
            if not self._closing.is_set():  # else it was dropped while it came
                arrivals.warn(spec.name, cause)
            return
        self._arriving = handle
        try:
            arrival = None if self._closing.is_set() else self._arrive(handle, life)
            self._arriving = None
            if self._closing.is_set():
                return
            if arrival is None:
                arrivals.warn(spec.name, life.cause or "it has ended")
                return
            self.is_there = True
            arrivals.came(arrival)
            life.wait()
            if self._closing.is_set():
                self._part(handle)
            else:
                self.is_there = False
                arrivals.lost(arrival, life.cause or "it has ended")
        finally:
            self._arriving = None
            self._drop(handle)

    def _spawn(self, life: "_Life", arrivals: Arrivals) -> object:
        """Start the worker; waits as long as it cannot be started yet.

        Raises:
            OSError: It cannot be started, or the run is over.
        """
        begun, is_news = time.monotonic(), True
        while True:
            try:
                return self._carrier.spawn(self._spec, life.end)
            except NotYetError as error:
                if is_news and time.monotonic() - begun > durations.SPAWN_PATIENCE:
                    arrivals.warn(self._spec.name, str(error))
                    is_news = False
                if self._closing.wait(durations.SPAWN_PAUSE):
                    raise

    def _arrive(self, handle: object, life: "_Life") -> Arrival | None:
        """Wait until the worker answers; ``None`` if it has ended instead.

        Raises:
            TaskFail: It cannot be built.
        """
        spec, life.handle = self._spec, handle
        try:
            life.ask(ResourceRequest(), durations.SPAWN_START)
        except WorkerLost:
            return None
        except WorkerFailed as error:
            raise TaskFail(message=error.cause) from error
        return Arrival(spec.kind, spec.name, life, *self._carrier.address(handle))

    def _part(self, handle: object) -> None:
        """Tell the worker that the run is over."""
        try:
            self._carrier.call(handle, EndWorker(), max(0.1, self._deadline - time.monotonic()))
        except Exception as error:  # whatever it is: the worker is dropped now
            self._in_order = False
            _logger.debug("%s did not end: %s", self._spec.name, _words(error))

    def _give_up(self, cause: str | None, arrivals: Arrivals) -> None:
        self.is_there = True
        words = f"died {self._restarts.count + 1} times, at last: {cause}"
        if self._given_up(self._spec.kind):
            arrivals.warn(self._spec.name, f"{words}; going on without it")
        else:
            arrivals.fatal(f"{self._spec.name} {words}")


class _Life:
    """One worker from its start to its end, as its session sees it.

    Attributes:
        handle: Its carrier's, when it was started.
        cause: Why it has ended, and what follows.
        pause: Seconds until the next start; ``None``: there is none.
    """

    def __init__(self, name: str, carrier: Carrier[Any], restarts: RestartLimit) -> None:
        self.handle: object = None
        self.cause: str | None = None
        self.pause: float | None = None
        self._name, self._carrier, self._restarts = name, carrier, restarts
        self._began = time.monotonic()
        self._asking = threading.Lock()
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def end(self, cause: str) -> str:
        """It has died, or has to; returns the cause that was the first to be told."""
        with self._lock:
            if self.cause is None:
                self.pause = self._restarts.after_death(time.monotonic() - self._began)
                self.cause = cause
                if self.pause is not None:
                    times = f"{self._restarts.count} of {self._restarts.most}"
                    self.cause += f"; starting it again ({times})"
        self._ended.set()
        return self.cause

    def finish(self) -> None:
        """It ends with the run."""
        with self._lock:
            self.cause = self.cause or "the run is over"
        self._ended.set()

    def wait(self) -> None:
        """Wait until it has ended."""
        self._ended.wait()

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """Put a request and wait for the answer; see `ding.worker.seams.Peer`."""
        if not self._asking.acquire(blocking=False):
            raise WorkerBusy("it still works on an earlier request")
        try:
            return self._ask(request, timeout)
        finally:
            self._asking.release()

    def _ask(self, request: Request[Answer], timeout: float) -> Answer:
        if self.cause is not None:
            raise WorkerLost(self.cause)
        try:
            return self._carrier.call(self.handle, request, timeout)
        except TaskFail as error:
            raise WorkerFailed(
                error.message or "it failed", error.result, by_worker=True
            ) from error
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


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
