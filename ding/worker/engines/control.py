"""The control of a run: a table of its workers, who are started, fenced and started again here."""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

from ding.interaction.base.service import HttpService
from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.utils.errors import DataError
from ding.utils.processes import AfterDeath, Restarts
from ding.utils.sent_files import FileChange
from ding.worker.adapter.learner_team import TeamPeer
from ding.worker.engines.carrier import (
    EndWorker,
    NotYetError,
    ProcessEnd,
    Starter,
    WithFiles,
    Workers,
    WorkerSpec,
    built_elsewhere,
)
from ding.worker.engines.run_master import StatusServer
from ding.worker.engines.shared_folder import apply_changes, files_of_task
from ding.worker.messages import Kind, Request, ResourceRequest
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


class RunControl:
    """Has the workers of a run come, and come again, and reports them to the coordinator.

    Those of `specs` are started, and started again when they die. Where workers join by themselves
    (`Workers.workers_join`), others may come, too, and one that was lost is waited for.

    A worker that cannot be built ends the run: it could not be built the next time either. So does
    the death of the last worker of a kind that may not be started again. The processes of one
    learner come to the coordinator as one.

    Args:
        workers: What starts and reaches them.
        specs: Which there are to be.
        max_restart: How often each may be started again.
        starter: Starts their processes, if they join by themselves and this run starts them.
    """

    def __init__(
        self,
        workers: Workers[Any],
        specs: Sequence[WorkerSpec],
        max_restart: int = 0,
        starter: Starter | None = None,
    ) -> None:
        self._workers = workers
        if starter is not None:
            starter.on_exit = self._process_ended
        self._server: HttpService | None = None
        members: dict[str, list[str]] = {}
        for spec in specs:
            if spec.team is not None:
                members.setdefault(spec.team, []).append(spec.name)
        self._teams = {team: TeamPeer(team, names, self.release) for team, names in members.items()}
        # One process of a learner cannot be done without, whatever other learners there are.
        kinds = {spec.name: spec.kind if spec.team is None else spec.name for spec in specs}
        self._restarts = Restarts(kinds, max_restart)
        self._arrivals: Arrivals
        self._lock = threading.Lock()  # guards what follows
        self._closing = False
        self._keepers = {
            spec.name: _Keeper(workers, spec, self._restarts, starter) for spec in specs
        }

    def start(self, arrivals: Arrivals) -> None:
        """Start all workers; does not wait for them.

        Raises:
            PortTakenError: Another program listens on the port.
        """
        self._arrivals = arrivals
        self._server = self._workers.listener(self, arrivals) or StatusServer(arrivals.status)
        self._server.start()
        for team in self._teams.values():
            team.start(arrivals)
        with self._lock:  # others may have joined already
            keepers = [keeper for keeper in self._keepers.values() if not keeper.is_guest]
        for keeper in keepers:
            team_name = keeper.spec.team
            target = arrivals if team_name is None else self._teams[team_name].members
            keeper.start(arrivals, target, self._server.my_address)

    def names(self) -> list[str]:
        """Of all workers, also of those that have not come."""
        with self._lock:
            return list(self._keepers)

    def adopt(self, kind: Kind, name: str, handle: object) -> bool:
        """A worker has joined, perhaps again; whether it is wanted."""
        with self._lock:
            if self._closing:
                return False
            keeper = self._keepers.get(name)
            if keeper is None or not keeper.take(handle):
                spec = WorkerSpec(name, kind, built_elsewhere)
                keeper = _Keeper(self._workers, spec, self._restarts, guest=handle)
                self._keepers[name] = keeper
                keeper.start(self._arrivals, self._arrivals, "")
        return True

    def lost(self, name: str, handle: object, cause: str) -> None:
        """A worker that has joined cannot be reached any more; it may come again."""
        with self._lock:
            keeper = self._keepers.get(name)
        if keeper is not None:
            keeper.lose(handle, cause)

    def _process_ended(self, end: ProcessEnd) -> None:
        with self._lock:
            keeper = self._keepers.get(end.name)
        if keeper is not None:
            keeper.end(end)

    def release(self, arrival: Arrival, cause: str) -> None:
        """Let a worker go: it is started again, or may come again."""
        arrival.peer.end(cause)  # type: ignore[attr-defined]  # a `_Life` or a `TeamPeer`

    def awaited(self) -> Sequence[Awaited]:
        """Workers that are being started or connected to, or will be."""
        with self._lock:
            return [keeper.awaited for keeper in self._keepers.values() if not keeper.is_there]

    def close(self, timeout: float) -> bool:
        """End all workers; whether they did so in good order within ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        with self._lock:
            self._closing = True
            keepers = list(self._keepers.values())
        for team in self._teams.values():
            team.close()
        for keeper in keepers:
            keeper.close(deadline)
        ended = [keeper.join(deadline) for keeper in keepers]
        if self._server is not None:
            self._server.shutdown()
            ended.append(self._server.join(max(0.1, deadline - time.monotonic())))
        return all(ended)

    @property
    def address(self) -> str | None:
        """Where it reports the run's status, and workers join if they can."""
        return None if self._server is None else self._server.my_address


class _Keeper:
    """Looks after one worker, in a thread: starts it, waits for its end, starts it again.

    Args:
        workers: What starts and reaches it.
        spec: What it is made of.
        restarts: What follows its death.
        starter: Starts its process, if that is not the workers' own matter.
        guest: Its handle if it has come without being expected. It is kept until it is lost.

    Attributes:
        is_there: Whether it has come, or was given up.
        is_guest: Whether it has come without being expected.
    """

    def __init__(
        self,
        workers: Workers[Any],
        spec: WorkerSpec,
        restarts: Restarts,
        starter: Starter | None = None,
        guest: object | None = None,
    ) -> None:
        if not (workers.in_one_process or workers.workers_join):
            spec = dataclasses.replace(spec, folder=workers.exp_name)
        self.spec = spec
        self.awaited = Awaited(spec.kind, spec.name, workers.place(spec))
        self.is_guest = self.is_there = guest is not None
        self._is_first = True
        self._workers, self._restarts, self._starter = workers, restarts, starter
        self._arrivals: Arrivals
        self._target: Arrivals
        self._address = ""
        self._closing = threading.Event()
        self._deadline = 0.0  # of the end of the run
        self._in_order = True
        self._life = self._new_life()
        self._changed = threading.Condition()  # guards what follows, and is notified of lives' ends
        self._joined: object | None = guest  # and has no life yet
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=f"keep-{spec.name}", daemon=True)

    def start(self, arrivals: Arrivals, target: Arrivals, address: str) -> None:
        """Begin.

        Args:
            arrivals: Told what the operator should know.
            target: Told when the worker comes, and when it is lost.
            address: Where it joins, if it does.
        """
        self._arrivals, self._target, self._address = arrivals, target, address
        self._thread.start()

    def take(self, handle: object) -> bool:
        """The worker has joined; whether it is looked after from here."""
        with self._changed:
            if self._is_over or self.is_guest:
                return False
            self._joined = handle
            self._changed.notify_all()
        return True

    def lose(self, handle: object, cause: str) -> None:
        """The worker of a handle cannot be reached any more."""
        with self._changed:
            if self._joined is handle:
                self._joined = None
        if self._life.handle is handle:
            self._life.lose(cause)

    def end(self, end: ProcessEnd) -> None:
        """The worker's process has ended."""
        self._life.die(end.how, end.way)
        with self._changed:
            self._changed.notify_all()

    def close(self, deadline: float) -> None:
        """End the worker for good; does not wait."""
        self._deadline = deadline
        self._closing.set()
        self._life.finish()
        with self._changed:
            self._changed.notify_all()
        if not self.is_there:  # no thread waits for it
            self._life.drop()

    def join(self, deadline: float) -> bool:
        """Whether all is over, in good order, by the monotonic time ``deadline``."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        return self._in_order and not self._thread.is_alive()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        name, pause, losses = self.spec.name, 0.0, 0
        first, longest = durations.CONNECT_PAUSES
        try:
            while not self._closing.wait(pause):
                life = self._life = self._new_life()
                if self._closing.is_set():  # since before there was this life to be ended
                    return
                self._live(life)
                if self._closing.is_set() or self.is_guest:
                    return
                if life.after is None:  # it was lost, and may come again
                    losses = 0 if life.has_answered else losses + 1
                    pause = min(first * 2**losses, longest) if losses else 0.0
                elif life.after.pause is None:
                    self._give_up(life.after)
                    return
                else:
                    pause = life.after.pause
        except TaskFail as error:  # it cannot be built, and another try would not change that
            if not self._closing.is_set():
                self._arrivals.fatal(f"{name}: {error.message}")
        except BaseException as error:  # the edge of the thread: reported onward
            _logger.exception("the thread that looks after %s has failed", name)
            self._arrivals.fatal(f"{name}: {_words(error)}")
        finally:
            with self._changed:
                self._is_over = True

    def _new_life(self) -> "_Life":
        return _Life(self.spec.name, self._workers, self._restarts, self._warn)

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
            if self._workers.workers_join and self._starter is not None:
                life.dead.wait(durations.CAUSE_WAIT)  # of which it is lost, perhaps
            if self._closing.is_set():
                self._part(life)
            else:
                self.is_there = self.is_guest  # those are not awaited
                if life.is_news:
                    self._target.lost(arrival, life.cause)
        except (OSError, EOFError, WorkerLost) as error:
            cause = life.die(_words(error))
            is_given_up = life.after is not None and life.after.pause is None
            if not (self._closing.is_set() or is_given_up):  # else the cause is already reported
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
        arrival = Arrival(spec.kind, spec.name, life, *self._workers.address(handle))
        if self._closing.is_set():  # nobody else has seen this handle
            raise WorkerLost("the run is over")
        if self._workers.workers_join:  # it has been reached; it may still work
            return arrival
        try:
            life.ask(ResourceRequest(), durations.SPAWN_START)
        except WorkerLost:
            raise
        except WorkerFailed as error:
            raise TaskFail(message=error.cause) from error
        # Where it lives may be known only now.
        return Arrival(spec.kind, spec.name, life, *self._workers.address(handle))

    def _spawn(self, life: "_Life") -> object:
        """Start the worker, or find it; waits as long as it cannot be started yet.

        Raises:
            OSError: It cannot be started, or the run is over.
        """
        begun, is_news = time.monotonic(), True
        is_first, self._is_first = self._is_first, False
        found = self._workers.find(self.spec, life.die) if is_first else None
        if self._starter is not None:
            self._starter.ensure(self.spec.name, self._address)
        while found is None:
            with self._changed:
                found, self._joined = self._joined, None
            if found is not None:
                break
            life.check()
            try:
                return self._workers.spawn(self.spec, life.die) or self._await_join(life)
            except NotYetError as error:
                if is_news and time.monotonic() - begun > durations.SPAWN_PATIENCE:
                    self._arrivals.warn(self.spec.name, str(error))
                    is_news = False
                if self._closing.wait(durations.SPAWN_PAUSE):
                    raise
        return found

    def _await_join(self, life: "_Life") -> object:
        """Wait until the worker joins, for the first time or again.

        Raises:
            TaskFail: It cannot be built.
            WorkerLost: It has ended, or did not join in time, and is killed.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._joined is not None or life.ended.is_set(), durations.SPAWN_START
            )
            handle, self._joined = self._joined, None
        if handle is not None:
            return handle
        life.check()
        if self._starter is not None:
            self._starter.kill(self.spec.name)
        raise WorkerLost(life.die(f"has not joined for {durations.SPAWN_START:g} s"))

    def _part(self, life: "_Life") -> None:
        """Tell the worker that the run is over."""
        try:
            left = max(0.1, self._deadline - time.monotonic())
            life.write(self._workers.call(life.handle, EndWorker(), left).files)
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
        dead: Set when it has died, perhaps after it was lost.
        has_answered: Whether it has answered a request.
        is_news: Whether its session may not know of its end.
    """

    def __init__(
        self,
        name: str,
        workers: Workers[Any],
        restarts: Restarts,
        warn: Callable[[str], object],
    ) -> None:
        self.handle: object = None
        self._warn = warn
        self.cause = ""
        self.after: AfterDeath | None = None
        self.ended, self.dead = threading.Event(), threading.Event()
        self.has_answered = self.is_news = self._is_unbuilt = self._is_over = False
        self._name, self._workers, self._restarts = name, workers, restarts
        self._began = time.monotonic()
        self._asking, self._dropping = threading.Lock(), threading.Lock()
        self._lock = threading.Lock()

    def end(self, cause: str) -> str:
        """It has to end, or did not answer; returns the cause that was the first to be told."""
        if not self._workers.workers_join:
            return self.die(cause)
        with self._lock:  # it may come again
            self.cause = self.cause or cause
        self.ended.set()
        return self.cause

    def lose(self, cause: str) -> None:
        """It cannot be reached, which its session does not know yet."""
        self.is_news = True
        self.end(cause)

    def die(self, cause: str, way: Literal["died", "left", "unbuilt"] = "died") -> str:
        """It has died; returns the cause that was the first to be told."""
        with self._lock:
            if self.after is None and not self._is_over:
                self.is_news, self._is_unbuilt = True, way == "unbuilt"
                self.cause, life = cause or "it has ended", time.monotonic() - self._began
                if way == "died":
                    self.after = self._restarts.after_death(self._name, self.cause, life)
                else:
                    self.after = self._restarts.without(self._name, self.cause)
                if self.after.pause is not None:
                    self.cause = self.after.text
        self.ended.set()
        self.dead.set()
        return self.cause

    def check(self) -> None:
        """Raise if it has ended.

        Raises:
            TaskFail: It cannot be built.
            WorkerLost: It has died, or the run is over.
        """
        if self._is_unbuilt:
            raise TaskFail(message=self.cause)
        if self.cause:
            raise WorkerLost(self.cause)

    def finish(self) -> None:
        """It ends with the run."""
        with self._lock:
            self.cause, self._is_over = self.cause or "the run is over", True
        self.ended.set()
        self.dead.set()

    def drop(self) -> None:
        """End what the carrier has started, if it has; again does nothing."""
        with self._dropping:  # a carrier need not expect two at once
            handle, self.handle = self.handle, None
            if handle is not None:
                self._workers.drop(handle)

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
        workers = self._workers
        if workers.in_one_process or workers.workers_join:
            answer = workers.call(self.handle, request, timeout)
        else:
            files = files_of_task(workers.exp_name, request)
            answered = workers.call(self.handle, WithFiles(request, files), timeout)
            self.write(answered.files)
            answer = answered.answer
        self.has_answered = True
        return answer

    def write(self, changes: Iterable[FileChange]) -> None:
        """Write what the worker has written; a file that cannot be written is a warning."""
        try:
            apply_changes(self._workers.exp_name, changes)
        except (OSError, DataError) as error:
            self._warn(f"what it has written is lost: {_words(error)}")


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
