"""Decides what each worker of a run does next: a state machine without threads, locks or clocks."""

import logging
from collections.abc import Mapping

from ding.utils import durations
from ding.utils.errors import ConfigError
from ding.worker.messages import CloseTask, Kind, ResourceRequest, Resources, Task
from ding.worker.seams import (
    Arrival,
    NonsenseAnswer,
    TaskFailure,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)

from .run_events import RunEvents
from .run_facts import error_line
from .worker_jobs import CollectorJob, Job, LearnerJob
from .worker_session import FOREVER, Leave, Move, Steps, Wait, WorkerSession

_logger = logging.getLogger(__name__)

_JOBS: Mapping[Kind, type[Job]] = {"collector": CollectorJob, "learner": LearnerJob}


class SideFailed(WorkerFailed):
    """The coordinator itself failed while it processed a worker's task."""


class Core:
    """Leads workers through their tasks.

    Its driver, a thread per worker or a test, executes the result of `next`, and calls it again
    with the answer, the loss, or nothing when the time is reached. Only one driver may call at a
    time. The run is notified of collectors beyond the ``configured`` number.

    Attributes:
        workers: The current session of each worker, by name.
        woken: Sessions for which a decision is due before the time that they wait for.
        is_closing: Whether the run is over.
        gather: Seconds for which a collector's news waits for more; it grows with the number of
            collectors, so that the total rate of requests does not.
    """

    def __init__(self, events: RunEvents, configured: int = 0) -> None:
        self.events, self._configured, self._extra = events, configured, 0
        self.workers: dict[str, WorkerSession] = {}
        self.woken: set[WorkerSession] = set()
        self.is_closing = False
        # In the order in which they became idle.
        self._idle: dict[Kind, dict[WorkerSession, None]] = {"collector": {}, "learner": {}}
        self._present: dict[Kind, set[WorkerSession]] = {"collector": set(), "learner": set()}
        self.gather = durations.MESSAGE_GATHER
        self._watchers: dict[str, set[WorkerSession]] = {}

    def came(self, arrival: Arrival, now: float) -> WorkerSession | None:
        """Add a worker that has joined, instead of one of the same name. ``None``: run is over."""
        if self.is_closing:
            return None
        old = self.workers.get(arrival.name)
        session = self.workers[arrival.name] = WorkerSession(arrival, now)
        session.steps = self._live(session)
        if old is not None:
            # Before the old session ends: a name must never have two sessions that take tasks.
            self._forget(old)
            self.end(old, "it joined again")
        return session

    def next(self, worker: WorkerSession, given: object | WorkerFailed | None, now: float) -> Move:
        """The next move of a worker; ``given`` is the answer to the request that was returned last,
        or the failure."""
        worker.now, worker.gather = now, self.gather
        try:
            if isinstance(given, WorkerFailed):
                move: Move = worker.steps.throw(given)
            else:
                move = worker.steps.send(given)
        except StopIteration as end:
            move = Leave(end.value)
        except BaseException as err:  # no other code handles this worker
            _logger.exception("the session of %s failed", worker.name)
            self.events.fatal(f"the session of {worker.name} failed: {error_line(err)}")
            move = Leave("its session failed")
        if isinstance(move, Leave):
            worker.become("gone")
            if worker.ended is not None:
                move = Leave(None)
        for topic in worker.changed:  # wake the sessions that wait for it
            for watcher in self._watchers.pop(topic, ()):
                if watcher.topic == topic:
                    watcher.topic = None
                    self.woken.add(watcher)
        worker.changed.clear()
        if worker.topic is not None:
            self._watchers.setdefault(worker.topic, set()).add(worker)
        return move

    def left(self, worker: WorkerSession) -> None:
        """A worker was released after its session."""
        if self.workers.get(worker.name) is worker:
            del self.workers[worker.name]
            self._forget(worker)
        self.events.workers_changed()

    def _forget(self, worker: WorkerSession) -> None:
        """Remove a session, which is no longer the current one of its name."""
        # A task assigned to it now would wait for the time limit of unclaimed tasks.
        self._idle[worker.kind].pop(worker, None)
        self._present[worker.kind].discard(worker)
        self._count_collectors()
        self.events.worker_left(worker.name)

    def lost(self, worker: WorkerSession, cause: str) -> None:
        """A worker was lost; its open request fails."""
        worker.lost = worker.lost or cause
        self.woken.add(worker)

    def end(self, worker: WorkerSession, cause: str) -> None:
        """End a session without releasing its worker."""
        worker.ended = worker.ended or cause
        self.woken.add(worker)

    def schedule(self, now: float) -> None:
        """Assign all tasks that can be assigned now."""
        # Learners first: without a learner, samples have no buffer.
        for kind in ("learner", "collector"):
            while self._assign_one(kind, now):
                pass
            self.events.expire_tasks(kind, now)

    def _assign_one(self, kind: Kind, now: float) -> bool:
        """Assign one task; returns whether a worker got one."""
        # Ask the commander if a worker is idle, or if there is none at all: the task then exceeds
        # its time limit, which is reported.
        is_wanted = bool(self.free(kind)) or not self.present(kind)
        task = self.events.next_task(kind, is_wanted, now)
        if task is None or not self.send(kind, task):
            return False
        # In the same turn, before the worker's thread can begin it.
        self.events.task_moved(str(task["task_id"]), "assigned")
        return True

    def free(self, kind: Kind) -> int:
        """Number of idle workers of that kind."""
        return len(self._idle[kind])

    def present(self, kind: Kind) -> int:
        """Number of workers of that kind."""
        return len(self._present[kind])

    def send(self, kind: Kind, task: Task) -> bool:
        """Assign the task to an idle worker of that kind; returns whether there is one."""
        idle = self._idle[kind]
        while idle:
            worker = next(iter(idle))
            del idle[worker]
            # It may have been lost since it became idle, without its own thread noticing yet.
            if worker.gone is None:
                worker.next_task, worker.is_close_asked = task, False
                worker.state = "starting"
                self.woken.add(worker)
                return True
        return False

    def close_tasks(self) -> None:
        """Ask all open tasks to end at their next step."""
        for worker in self.workers.values():
            worker.is_close_asked = True
            self.woken.add(worker)

    def _count_collectors(self) -> None:
        """Notify the run of collectors beyond the configured number that joined or left."""
        present = self.present("collector")
        span = max(durations.MESSAGE_GATHER, durations.MESSAGE_GATHER_EACH * present)
        self.gather = min(span, durations.MESSAGE_GATHER_MOST)
        beyond = max(0, present - self._configured)
        more, self._extra = beyond - self._extra, beyond
        report = self.events.deal_with_increase_collector
        if more < 0:
            report = self.events.deal_with_decrease_collector
        for _ in range(0 if self.is_closing else abs(more)):
            report()

    def _live(self, worker: WorkerSession) -> Steps[str | None]:
        """Assign tasks to a worker until its session ends; returns the cause for releasing it."""
        try:
            worker.resources = yield from self._ask_resources(worker)
        except WorkerFailed as err:
            # If it is still busy with an abandoned request, that was already reported.
            if worker.ended is None and not isinstance(err, WorkerBusy):
                self.events.failed_worker(TaskFailure(worker.name, err.cause, lost=True))
            return err.cause
        if self.workers.get(worker.name) is worker:
            self._present[worker.kind].add(worker)
            _logger.info("%s at %s is connected", worker.name, worker.arrival.where)
            self._count_collectors()
        while True:
            worker.become("idle")
            worker.waits_for = "task"
            if worker.gone is None and self.workers.get(worker.name) is worker:
                self._idle[worker.kind][worker] = None
                self.events.workers_changed()
            while not (worker.next_task or worker.gone):
                yield Wait(FOREVER)
            task, worker.next_task, worker.waits_for = worker.next_task, None, None
            if task is None:
                if worker.ended is None:
                    cause = worker.lost or "lost"
                    self.events.failed_worker(TaskFailure(worker.name, cause, lost=True))
                return worker.lost
            cause_of_loss = yield from self._do(worker, task)
            if cause_of_loss is not None:
                return cause_of_loss
            if worker.failures:  # give other workers a chance
                worker.become("resting")
                first, longest = durations.WORKER_RESTS
                # A worker that cannot do any task (no GPU, a broken host) would otherwise fail one
                # after another, and use up the run's retries.
                rest = min(first * 2 ** (worker.failures - 1), longest)
                yield from worker.pause(rest, until_close=False)

    def _ask_resources(self, worker: WorkerSession) -> Steps[Resources]:
        """A worker's resources, after it has ended its earlier work."""
        deadline = worker.now + durations.WORKER_END
        while True:
            try:
                return (yield from worker.ask(ResourceRequest()))
            except WorkerBusy:
                is_late = worker.now > deadline
                if is_late or (yield from worker.pause(durations.CONNECT_PAUSES[0])):
                    raise

    def _do(self, worker: WorkerSession, task: Task) -> Steps[str | None]:
        """Execute a task; returns why the worker is lost, if it is."""
        job = _JOBS[worker.kind](task, worker, self.events)
        try:
            yield from self._go_through(worker, job)
        except WorkerFailed as err:
            return (yield from self._fail(worker, err))
        except ConfigError as err:  # an error on this side: another worker cannot help
            self.events.fatal(str(err))
            return (yield from self._fail(worker, SideFailed(str(err))))
        except MemoryError:
            raise  # concerns this whole process, not the task
        except Exception as err:  # of a callback, or a bug: the task must not be forgotten
            _logger.exception("task %s at %s failed", job.task_id, worker.name)
            return (yield from self._fail(worker, SideFailed(error_line(err))))
        else:
            worker.failures = 0
            return None
        finally:
            # In any case: rows that stay pinned would keep their chunks in the store forever.
            job.abandon()
            worker.task_id, worker.info, worker.is_eval = None, {}, False

    def _go_through(self, worker: WorkerSession, job: Job) -> Steps[None]:
        worker.become("starting")
        yield from job.start()
        worker.become("running")
        self.events.task_moved(job.task_id, "running", worker.name)
        is_done = False
        while not (is_done or worker.is_close_asked or worker.gone is not None):
            is_done = yield from job.work()
        worker.become("closing")
        self.events.task_moved(job.task_id, "closing")
        job.finish((yield from job.close()))

    def _fail(self, worker: WorkerSession, err: WorkerFailed) -> Steps[str | None]:
        is_lost = isinstance(err, WorkerLost)
        if isinstance(err, NonsenseAnswer | SideFailed):  # the worker does not know of the failure
            # It would continue the task, and reject the next one as busy.
            is_lost = not (yield from self._close_quietly(worker))
        ids = worker.name, err.cause, worker.task_id
        self.events.task_failed(TaskFailure(*ids, is_lost, err.by_worker))
        if is_lost:
            return err.cause
        worker.failures += 1
        return None

    def _close_quietly(self, worker: WorkerSession) -> Steps[bool]:
        """Close a task that failed on this side; returns whether the worker has ended it."""
        try:
            yield from worker.ask(CloseTask(worker.kind))
        except WorkerLost:
            return False
        except WorkerFailed:
            pass
        return True
