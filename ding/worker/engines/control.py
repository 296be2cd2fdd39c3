"""The control of a run: a table of its workers, which it starts, releases and restarts."""

import dataclasses
import logging
import re
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar

from ding.interaction.base.service import HttpService
from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.utils.errors import DataError
from ding.utils.processes import AfterDeath, Restarts
from ding.utils.sent_files import FileChange
from ding.worker.adapter.learner_team import LearnerTeam
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
    """Starts and restarts the workers of a run, and reports them to the coordinator.

    Workers in `specs` are started, and restarted when they die. If workers join by themselves
    (`Workers.workers_join`), others may join as well, and a lost worker may join again.

    A worker that cannot be built ends the run, since a retry would not help. So does the death of
    the last worker of a kind that may not be restarted. The coordinator treats the processes of one
    learner as one worker.

    Args:
        workers: Starts and reaches the workers.
        specs: Specifications of the workers to start.
        max_restart: Maximum number of restarts of each worker.
        starter: Starts the workers' processes, if they join by themselves and this run starts them.
    """

    def __init__(
        self,
        workers: Workers[Any],
        specs: Sequence[WorkerSpec],
        max_restart: int = 0,
        starter: Starter | None = None,
    ) -> None:
        self.workers, self.starter = workers, starter
        if starter is not None:
            starter.on_exit = self._process_ended
        self._server: HttpService | None = None
        members: dict[str, list[str]] = {}
        for spec in specs:
            if spec.team is not None:
                members.setdefault(spec.team, []).append(spec.name)
        self._teams = {
            team: LearnerTeam(names, self.release, team) for team, names in members.items()
        }
        # Each process of a learner is indispensable, even if there are other learners.
        kinds = {spec.name: spec.kind if spec.team is None else spec.name for spec in specs}
        self.restarts = Restarts(kinds, max_restart)
        self.arrivals: Arrivals
        self.closing = threading.Event()
        self._lock = threading.Lock()  # guards changes of the attributes below
        self._lives: dict[str, _Life] = {}
        for spec in specs:
            if not (workers.in_one_process or workers.workers_join):
                spec = dataclasses.replace(spec, folder=workers.exp_name)
            self._lives[spec.name] = _Life(self, spec, is_first=True)

    def start(self, arrivals: Arrivals) -> None:
        """Start all workers; does not wait for them.

        Raises:
            PortTakenError: Another program uses the port.
        """
        self.arrivals = arrivals
        # First: workers that are started next join at its port.
        self._server = self.workers.listener(self, arrivals) or StatusServer(arrivals.status)
        self._server.start()
        for team in self._teams.values():
            team.announce(arrivals)
        with self._lock:  # other workers may have joined already
            expected = [life for life in self._lives.values() if not life.is_guest]
        for life in expected:
            self.look_after(life)

    def names(self) -> list[str]:
        """The names of all workers, including those that have not joined yet."""
        with self._lock:
            return list(self._lives)

    def objection(self, name: str) -> str | None:
        """Why no worker of a name may join: it has no rank where learners train together."""
        ranks = [one for team in self._teams.values() for one in team.names]
        if not ranks or name in ranks or not re.fullmatch(r"learner\d+", name):
            return None
        return f"the learners of this run are {', '.join(ranks)}; it has no {name}"

    def adopt(self, kind: Kind, name: str, handle: object) -> bool:
        """A worker has joined, possibly again; returns whether it is accepted."""
        with self._lock:
            # A worker that joined now would not be notified of the end, and wait for a coordinator.
            if self.closing.is_set():
                return False
            life = self._lives.get(name)
            if life is None or not life.take(handle):
                # Not in the table, or given up: a guest, which is not restarted.
                spec = WorkerSpec(name, kind, built_elsewhere)
                life = self._lives[name] = _Life(self, spec, joined=handle, is_guest=True)
                self.look_after(life)
        return True

    def lost(self, name: str, handle: object, cause: str) -> None:
        """A worker that has joined cannot be reached any more; it may join again."""
        if (life := self._lives.get(name)) is not None:
            life.lose(handle, cause)

    def _process_ended(self, end: ProcessEnd) -> None:
        if (life := self._lives.get(end.name)) is not None:
            life.die(end.how, end.way)

    def release(self, arrival: Arrival, cause: str) -> None:
        """Release a worker: it is restarted, or may join again."""
        arrival.peer.end(cause)  # type: ignore[attr-defined]  # a `_Life` or a `LearnerTeam`

    def awaited(self) -> Sequence[Awaited]:
        """Workers that are being started or connected to, or will be."""
        with self._lock:
            missing = [life.spec for life in self._lives.values() if not life.is_there]
        return [Awaited(spec.kind, spec.name, self.workers.place(spec)) for spec in missing]

    def close(self, timeout: float) -> bool:
        """End all workers; returns whether all ended normally within ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        self.closing.set()
        with self._lock:
            lives = list(self._lives.values())
        for team in self._teams.values():
            team.close()
        for life in lives:
            # Ask all before waiting for any: the total time is that of the slowest.
            life.finish(deadline)
        ended = [life.join(deadline) for life in lives]
        if self._server is not None:
            self._server.shutdown()
            ended.append(self._server.join(max(0.1, deadline - time.monotonic())))
        return all(ended)

    @property
    def address(self) -> str:
        """Address of the run's status after `start`, at which workers may join."""
        assert self._server is not None
        return self._server.my_address

    # ------------------------------------------------------------------ for `_Life`

    def arrivals_of(self, spec: WorkerSpec) -> Arrivals:
        """The receiver of reports on a worker: the coordinator, or the worker's team."""
        return self.arrivals if spec.team is None else self._teams[spec.team]

    def follow(self, life: "_Life", losses: int) -> "_Life | None":
        """Create the next life of a worker; ``None`` if the run is over."""
        with self._lock:
            if self.closing.is_set():
                return None
            new = _Life(self, life.spec, life.take_joined(), losses=losses)
            new.thread = life.thread
            self._lives[life.spec.name] = new
        return new

    def look_after(self, life: "_Life") -> None:
        """Handle a worker's start, or its end and restart, in a thread; does not wait."""
        name = f"keep-{life.spec.name}"
        life.thread = threading.Thread(target=self._keep, args=(life,), name=name, daemon=True)
        life.thread.start()

    def _keep(self, life: "_Life") -> None:
        name, current = life.spec.name, life
        try:
            while not current.come():
                following = current.leave()
                if following is None:
                    return
                current = following
        except TaskFail as error:  # it cannot be built, and a retry would not help
            if not self.closing.is_set():
                self.arrivals.fatal(f"{name}: {error.message}")
        except BaseException as error:  # the edge of the thread: reported to the coordinator
            _logger.exception("the thread that looks after %s has failed", name)
            self.arrivals.fatal(f"{name}: {_words(error)}")


class _Life:
    """A worker from one start to its end, as its session sees it; a restart is another object.

    A thread handles its start, and another one its end; there is none in between.

    Args:
        control: Its control.
        spec: The worker's specification.
        joined: Its handle, if it has joined already.
        is_guest: Whether it joined without being expected: it is then not restarted.
        is_first: Whether an earlier coordinator may have started it.
        losses: How often it was lost before it had answered a request.

    Attributes:
        is_there: Whether it is connected, or was given up.
        thread: Handles its start or end; ``None`` in between.
    """

    def __init__(
        self,
        control: RunControl,
        spec: WorkerSpec,
        joined: object | None = None,
        is_guest: bool = False,
        is_first: bool = False,
        losses: int = 0,
    ) -> None:
        self.spec = spec
        self.is_guest = self.is_there = is_guest
        self.thread: threading.Thread | None = None
        self._control, self._workers = control, control.workers
        self._starter = None if is_guest else control.starter
        self._is_first, self._losses = is_first, losses
        self._began, self._deadline = time.monotonic(), 0.0
        self._arrival: Arrival | None = None
        self._has_answered, self._in_order = False, True
        self._asking = threading.Lock()
        self._changed = threading.Condition()  # guards the attributes below
        self._joined, self._handle = joined, None
        self._cause = ""  # why it has ended, and whether it is restarted
        self._after: AfterDeath | None = None  # what follows its death
        self._is_dead = self._is_unbuilt = self._is_news = self._is_last = False

    # ------------------------------------------------------------------ events

    def take(self, handle: object) -> bool:
        """The worker has joined; returns whether it belongs to this life, not the next one."""
        with self._changed:
            if self._is_last or self.is_guest:
                return False
            self._joined = handle
            self._changed.notify_all()
        return True

    def take_joined(self) -> Any:
        """The handle of a worker that has joined since, if any."""
        with self._changed:
            handle, self._joined = self._joined, None
            return handle

    def end(self, cause: str) -> str:
        """End a worker that must end, or did not answer; returns the cause reported first."""
        if not self._workers.workers_join:
            return self.die(cause)
        with self._changed:  # it may join again
            return self._end(cause)

    def lose(self, handle: object, cause: str) -> None:
        """The worker cannot be reached, and its session does not know yet."""
        with self._changed:
            if self._joined is handle:
                self._joined = None
            if self._handle is handle:
                self._is_news = True
            if self._handle is handle or self.is_guest:
                self._end(cause)

    def die(self, cause: str, way: Literal["died", "left", "unbuilt"] = "died") -> str:
        """The worker has died; returns the cause reported first."""
        restarts, name = self._control.restarts, self.spec.name
        with self._changed:
            # Once per life: a death uses up one restart, whichever thread reports it.
            if not (self._is_dead or self.is_guest):  # guests are not restarted
                self._is_dead = self._is_news = True
                self._is_unbuilt = way == "unbuilt"
                self._cause, life = cause or "it has ended", time.monotonic() - self._began
                if way == "died":
                    self._after = restarts.after_death(name, self._cause, life)
                else:
                    self._after = restarts.without(name, self._cause)
                if self._after.pause is not None:
                    self._cause = self._after.text
            return self._end(self._cause)

    def finish(self, deadline: float) -> None:
        """End the worker with the run, by the monotonic time ``deadline``; does not wait."""
        self._deadline = deadline
        with self._changed:
            self._is_dead = True
            self._end("the run is over")
        if not self.is_there:  # its thread may be waiting for an answer
            self._drop()

    def _end(self, cause: str) -> str:
        self._cause = self._cause or cause or "it has ended"
        self._changed.notify_all()
        # A thread that handles the worker notices the cause; a second one would start the worker
        # twice.
        if self._arrival is not None and self.thread is None:
            self._control.look_after(self)
        return self._cause

    def join(self, deadline: float) -> bool:
        """Whether the worker ended normally by the monotonic time ``deadline``."""
        thread = self.thread
        if thread is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
        return self._in_order and not (thread is not None and thread.is_alive())

    # ------------------------------------------------------------------ start

    def come(self) -> bool:
        """Start the worker unless it is connected; returns whether it is connected now.

        Raises:
            TaskFail: The worker cannot be built.
        """
        try:
            if self._arrival is None:
                arrival = self._arrive()
                self._arrival, self.is_there = arrival, True
                self._control.arrivals_of(self.spec).came(arrival)
        except (OSError, EOFError, WorkerLost) as error:
            cause = self.die(_words(error))
            is_given_up = self._after is not None and self._after.pause is None
            if not (self._control.closing.is_set() or is_given_up):  # else it was reported already
                self._control.arrivals.warn(self.spec.name, cause)
        except BaseException:
            self._drop()
            raise
        # A cause that arrived during the start is handled here or by `_end`, never by neither.
        with self._changed:
            if not self._cause:
                self.thread = None
            return not self._cause

    def _arrive(self) -> Arrival:
        """Start the worker, and wait until it answers."""
        handle = self._spawn()
        with self._changed:
            self._handle = handle
        if self._control.closing.is_set():  # no other thread has this handle
            raise WorkerLost("the run is over")
        if not self._workers.workers_join:  # else it was reached, and may be working
            try:
                self.ask(ResourceRequest(), durations.SPAWN_START)
            except WorkerLost:
                raise
            except WorkerFailed as error:
                raise TaskFail(message=error.cause) from error
        # Its location may only be known now.
        where, pid = self._workers.address(handle)
        return Arrival(self.spec.kind, self.spec.name, self, where, pid)

    def _spawn(self) -> Any:
        """Start or find the worker; waits as long as it cannot be started yet."""
        control, spec, begun, is_news = self._control, self.spec, time.monotonic(), True
        # Only the first life of a name can belong to an earlier coordinator.
        found = self._workers.find(spec, self.die) if self._is_first else None
        if self._starter is not None:
            self._starter.ensure(spec.name, control.address)
        while found is None and (found := self.take_joined()) is None:
            self._check()
            try:
                return self._workers.spawn(spec, self.die) or self._await_join()
            except NotYetError as error:
                if is_news and time.monotonic() - begun > durations.SPAWN_PATIENCE:
                    control.arrivals.warn(spec.name, str(error))
                    is_news = False
                if control.closing.wait(durations.SPAWN_PAUSE):
                    raise
        return found

    def _await_join(self) -> Any:
        """Wait until the worker joins; if this run has started it, kill it if it does not."""
        limit = None if self._starter is None else durations.SPAWN_START
        with self._changed:
            self._changed.wait_for(lambda: self._joined is not None or self._cause, limit)
            handle = self.take_joined()
        if handle is None:
            self._check()
            if self._starter is not None:
                self._starter.kill(self.spec.name)
            raise WorkerLost(self.die(f"has not joined for {durations.SPAWN_START:g} s"))
        return handle

    def _check(self) -> None:
        """Raise `TaskFail` if the worker cannot be built, `WorkerLost` if it has ended."""
        if self._is_unbuilt:
            raise TaskFail(message=self._cause)
        if self._cause:
            raise WorkerLost(self._cause)

    # ------------------------------------------------------------------ end

    def leave(self) -> "_Life | None":
        """Clean up after the worker's end; returns its next life, when it is time for it."""
        control = self._control
        try:
            if self._arrival is not None:
                self._report_end(self._arrival)
        finally:
            self._drop()
        after, losses = self._after, 0
        if after is None:  # it was lost, and may join again
            losses = 0 if self._has_answered else self._losses + 1
            first, longest = durations.CONNECT_PAUSES
            pause: float | None = min(first * 2**losses, longest) if losses else 0.0
        else:
            pause = after.pause
        if not (self.is_guest or pause is None or control.closing.wait(pause)):
            return control.follow(self, losses)
        self._is_last = True
        if after is not None and pause is None and not control.closing.is_set():
            self.is_there = True
            if after.is_end:
                control.arrivals.fatal(f"{self.spec.name} {after.text}")
            else:
                control.arrivals.warn(self.spec.name, after.text)
        return None

    def _report_end(self, arrival: Arrival) -> None:
        if self._workers.workers_join and self._starter is not None:
            with self._changed:  # it may have been lost because it died
                self._changed.wait_for(lambda: self._is_dead, durations.CAUSE_WAIT)
        if not self._control.closing.is_set():
            self.is_there = self.is_guest  # guests are not awaited
            if self._is_news:
                self._control.arrivals_of(self.spec).lost(arrival, self._cause)
            return
        try:  # notify it of the run's end
            left = max(0.1, self._deadline - time.monotonic())
            self._write(self._workers.call(self._handle, EndWorker(), left).files)
        except Exception as error:  # in any case, the worker is dropped now
            self._in_order = False
            _logger.debug("%s did not end: %s", self.spec.name, _words(error))

    def _drop(self) -> None:
        """Drop the worker at its carrier, if it was started; twice does nothing."""
        with self._changed:  # carriers need not support concurrent calls of `drop`
            handle, self._handle = self._handle, None
        if handle is not None:
            self._workers.drop(handle)

    # ------------------------------------------------------------------ requests

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """Send a request and wait for the answer; see `ding.worker.seams.Peer`."""
        # An abandoned request still waits for its answer in another thread.
        if not self._asking.acquire(blocking=False):
            raise WorkerBusy("it still works on an earlier request")
        try:
            if self._cause:
                raise WorkerLost(self._cause)
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
        except Exception as error:  # carriers may raise anything when a worker is lost
            _logger.debug("%s at %s", type(request).__name__, self.spec.name, exc_info=True)
            cause = _words(error)
        finally:
            self._asking.release()
        self._is_news = True  # the caller knows of the loss, other parts do not yet
        # The cause that `end` returns: the first one says more than a broken call that follows it.
        raise WorkerLost(self.end(cause))

    def _call(self, request: Request[Answer], timeout: float) -> Answer:
        workers = self._workers
        if workers.in_one_process or workers.workers_join:
            answer = workers.call(self._handle, request, timeout)
        else:
            files = files_of_task(workers.exp_name, request)
            answered = workers.call(self._handle, WithFiles(request, files), timeout)
            self._write(answered.files)
            answer = answered.answer
        self._has_answered = True
        return answer

    def _write(self, changes: Iterable[FileChange]) -> None:
        """Write a worker's files; a failed write is a warning."""
        try:
            apply_changes(self._workers.exp_name, changes)
        except (OSError, DataError) as error:
            lost = f"what it has written is lost: {_words(error)}"
            self._control.arrivals.warn(self.spec.name, lost)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
