"""The core alone: a fake clock, and workers that are lost, late or faulty."""

import contextlib
import dataclasses
import itertools
import logging
import random
from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st

from ding.utils import durations
from ding.utils.callbacks import Callbacks
from ding.worker.coordinator.buffer_pace import SpaceQuota
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.core import Core
from ding.worker.coordinator.run_events import CALLBACKS, RunEvents, events_of
from ding.worker.coordinator.run_files import RunFiles
from ding.worker.coordinator.run_status import RunView
from ding.worker.coordinator.turn import Turn
from ding.worker.coordinator.worker_session import Ask, Leave, Wait
from ding.worker.messages import (
    ChunkReport,
    CloseTask,
    CollectProgress,
    Demand,
    DemandRequest,
    ResourceRequest,
    Resources,
    SamplesAnswer,
    SamplesRequest,
    StartTask,
    TaskReport,
    TrainAnswer,
    TrainRequest,
)
from ding.worker.seams import (
    Arrival,
    Engine,
    NonsenseAnswer,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)
from tests.worker.coordinator.fake_workers import ScriptedCommander, make_config
from tests.worker.coordinator.test_chunk_buffer import Nowhere

KINDS = ("collector", "learner")


class Buffer:
    """Permits as many batches as chunks were pushed."""

    def __init__(self):
        self.chunks = 0
        self.pace = SimpleNamespace(
            grant=lambda worker, written, need: 1000, has_room=lambda: True, paces=lambda _: False
        )

    def begin(self):
        """A learner begins."""

    def take_chunks(self):
        return ()

    def permit(self, batch_size, wanted):
        drawn, self.chunks = min(self.chunks, wanted), max(self.chunks - wanted, 0)
        return drawn

    def holds_learner(self, batch_size):
        return False


class Driver:
    """Drives a core with a fake clock."""

    def __init__(self, events, turn):
        self.core, self.turn = Core(events), turn
        self.moves, self.now = {}, 0.0

    def come(self, kind, name):
        """A worker joins, or joins again."""
        with self.turn:
            worker = self.core.came(Arrival(kind, name, None, "here"), self.now)
        self.step(worker)
        return worker

    def step(self, worker, given=None):
        """Do what is next for a worker, and for those who are woken by that."""
        with self.turn:
            move = self.moves[worker] = self.core.next(worker, given, self.now)
            if isinstance(move, Leave):
                del self.moves[worker]
                self.core.left(worker)
        self.wake()

    def wake(self):
        while self.core.woken:
            worker = self.core.woken.pop()
            if isinstance(self.moves.get(worker), Wait):
                self.step(worker)

    def pass_time(self, seconds):
        """Advances the clock, and wakes workers whose time has come."""
        end = self.now + seconds
        while due := [
            worker
            for worker, move in self.moves.items()
            if isinstance(move, Wait) and move.until <= end
        ]:
            first = min(due, key=lambda worker: self.moves[worker].until)
            self.now = max(self.now, self.moves[first].until)
            self.step(first)
        self.now = end

    def lose(self, worker, cause):
        with self.turn:
            self.core.lost(worker, cause)
        self.wake()

    def lose_all(self):
        """All workers are lost, and so are the answers that are still open."""
        for worker in list(self.moves):
            self.lose(worker, "the end")
            if self.asked(worker) is not None:
                self.step(worker, WorkerLost("the end"))
        self.pass_time(30.0)
        assert self.moves == {}
        assert self.core.workers == {}
        assert self.core.present("collector") == self.core.present("learner") == 0

    def asked(self, worker):
        """The request that a worker has not answered."""
        move = self.moves.get(worker)
        return move.request if isinstance(move, Ask) else None


class Run(Driver):
    """A run that records the reports on tasks.

    Attributes:
        open: Tasks that were sent and have not ended.
        ended: How tasks ended, by their ids.
    """

    def __init__(self):
        self.buffer = Buffer()
        self.open, self.ended, self.failures, self.extra = {}, {}, [], 0
        self.done = set()
        self.events = events_of(dict.fromkeys(CALLBACKS, lambda *args: None))
        changes = dict(
            learner_buffer=lambda _: self.buffer,
            deal_with_collector_send_data=self.take_chunk,
            deal_with_collector_judge_finish=lambda task_id, _: task_id in self.done,
            deal_with_learner_judge_finish=lambda task_id, _: task_id in self.done,
            deal_with_collector_finish_task=lambda task_id, _: self.end(task_id, "done"),
            deal_with_learner_finish_task=lambda task_id, _: self.end(task_id, "done"),
            task_failed=lambda failure: self.end(failure.task_id, failure.cause),
            failed_worker=self.failures.append,
            fatal=self.fatal,
        )
        vars(self.events).update(changes)
        self.tasks = 0
        super().__init__(self.events, contextlib.nullcontext())

    def take_chunk(self, task_id, buffer_id, data_id, meta):
        self.buffer.chunks += 1

    def end(self, task_id, how):
        assert task_id not in self.ended, "a task ends once"
        self.ended[task_id] = how
        del self.open[task_id]

    def fatal(self, cause):
        raise AssertionError(cause)

    def send(self, kind):
        """Send a new task; returns whether a worker took it."""
        task_id = f"{kind}_{self.tasks}"
        if not self.core.send(kind, {"task_id": task_id, "buffer_id": "b"}):
            return False
        self.tasks += 1
        self.open[task_id] = kind
        self.wake()
        return True


def answer_to(request, task_id):
    """What a good worker answers."""
    if isinstance(request, ResourceRequest):
        return Resources()
    if isinstance(request, CloseTask):
        return TaskReport(task_id, {})
    if isinstance(request, SamplesRequest):
        chunk = ChunkReport("x", task_id, "b", 10, {"sample_num": 1})
        return SamplesAnswer((chunk,), CollectProgress(task_id))
    if isinstance(request, DemandRequest):
        return Demand(task_id, 4, 0, 2)
    if isinstance(request, TrainRequest):
        return TrainAnswer(task_id, "b", 1, False, request.draws, 2)
    assert isinstance(request, StartTask)
    return None


def work(run, worker, steps):
    """A reliable worker takes ``steps`` turns: it answers a request, or waits for one."""
    for _ in range(steps):
        request = run.asked(worker)
        if request is None:
            run.pass_time(0.1)
        else:
            run.step(worker, answer_to(request, worker.task_id))


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_goes_through_a_task_and_takes_the_next(kind):
    run = Run()
    worker = run.come(kind, "w")
    work(run, worker, 1)
    assert run.core.free(kind) == run.core.present(kind) == 1
    run.buffer.chunks = 100
    for number in range(3):
        assert run.send(kind)
        assert not run.core.free(kind)
        asked = [run.asked(worker)]
        while len(run.ended) == number:
            if len(asked) == 6:
                run.done.add(f"{kind}_{number}")
            work(run, worker, 1)
            asked.append(run.asked(worker))
        assert isinstance(asked[0], StartTask)
        assert isinstance(asked[-2], CloseTask)
    assert set(run.ended.values()) == {"done"}


def test_a_learner_that_waits_for_samples_is_woken_by_them():
    run = Run()
    learner, collector = run.come("learner", "l"), run.come("collector", "c")
    for worker in (learner, collector):
        work(run, worker, 1)
        run.send(worker.kind)
        run.step(worker, None)
    run.step(learner, answer_to(run.asked(learner), learner.task_id))
    assert isinstance(run.moves[learner], Wait)
    assert learner.waits_for == "data"
    run.step(collector, answer_to(run.asked(collector), collector.task_id))
    assert run.asked(learner).draws == 1
    assert run.now == 0.0


def test_a_loss_is_explained_by_who_knows_better():
    run = Run()
    worker = run.come("collector", "c")
    work(run, worker, 1)
    run.send("collector")
    run.step(worker, WorkerLost("no answer"))
    assert run.open
    run.lose(worker, "it was killed by signal 9")
    assert run.ended == {"collector_0": "it was killed by signal 9"}
    assert not run.core.workers


def test_a_worker_that_failed_rests_longer_each_time():
    run = Run()
    worker = run.come("collector", "c")
    work(run, worker, 1)
    spans = []
    for _ in range(4):
        assert run.send("collector")
        run.step(worker, WorkerFailed("no", by_worker=True))
        began = run.now
        while worker.state == "resting":
            run.pass_time(0.1)
        spans.append(run.now - began)
    first, _ = durations.WORKER_RESTS
    assert spans == pytest.approx([first * 2**i for i in range(4)], abs=0.11)


def test_a_busy_worker_has_time_to_end_what_it_did():
    run = Run()
    worker = run.come("learner", "l")
    while worker in run.moves:
        if run.asked(worker) is None:
            run.pass_time(0.1)
        else:
            run.step(worker, WorkerBusy("it trains"))
    assert durations.WORKER_END <= run.now <= durations.WORKER_END + 0.3
    assert run.failures == []


NONSENSE = (None, 7, "text", Resources(), TaskReport("other", {}), SamplesAnswer((), None))
LOSSES = (
    WorkerLost("gone"),
    WorkerFailed("failed", by_worker=True),
    NonsenseAnswer("what?"),
    WorkerBusy("busy"),
)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32), st.integers(20, 200))
def test_whatever_workers_do_no_task_is_forgotten_and_none_ends_twice(seed, steps):
    chance, run = random.Random(seed), Run()
    names = {f"{kind}{i}": kind for kind in KINDS for i in range(3)}
    for _ in range(steps):
        workers = sorted(run.moves, key=lambda worker: worker.name)
        asked = [worker for worker in workers if run.asked(worker) is not None]
        act = chance.choice(("come", "send", "time", "lose", "end", *("answer",) * 8))
        if act == "come":
            name = chance.choice(sorted(names))
            run.come(names[name], name)
        elif act == "send":
            run.send(chance.choice(KINDS))
        elif act == "time":
            run.pass_time(chance.choice((0.01, 0.3, 20.0)))
        elif act == "lose" and workers:
            run.lose(chance.choice(workers), "killed")
        elif act == "end" and run.open:
            run.done.add(chance.choice(sorted(run.open)))
        elif asked:
            worker = chance.choice(asked)
            task_id = chance.choice((worker.task_id, worker.task_id, "of before"))
            good = answer_to(run.asked(worker), task_id)
            given = chance.choice((good, good, good, *NONSENSE, *LOSSES))
            run.step(worker, given)
        for kind in KINDS:
            assert run.core.free(kind) <= run.core.present(kind) <= 3
        assert set(run.open) == {w.task_id for w in run.moves if w.task_id is not None}
    run.lose_all()
    assert run.open == {}


class WholeRun(Driver):
    """The deciding parts of a run: scheduler, tasks, retries, buffers and a commander."""

    def __init__(self):
        config = make_config({}, commander={"collectors": 2, "learners": 1})
        commander = ScriptedCommander(config.main)
        view, turn = RunView(None, logging.getLogger("test")), Turn()
        space, store = SpaceQuota(10**6), Nowhere()
        self.run = RunEvents(
            *("exp", commander, view, Callbacks(), None),
            turn=turn,
            files=RunFiles(Engine(None, store, store, None), view.log),
            make_buffer=partial(ChunkBuffer, store=store, space=space, exp_name="exp", turn=turn),
            max_task_retry=10**9,
            task_limits=dict.fromkeys(KINDS, 30.0),
        )
        self.run.facts.clock = lambda: self.now
        super().__init__(self.run, turn)
        self.causes = itertools.count()
        self.names = itertools.count()

    def schedule(self):
        with self.turn:
            self.core.schedule(self.now)
        self.wake()

    def answer(self, worker, chance):
        """Possible answers of a worker, also of a faulty one."""
        request = self.asked(worker)
        good = answer_to(request, worker.task_id)
        if isinstance(request, SamplesRequest):
            chunk = ChunkReport(f"c{next(self.names)}", worker.task_id, None, 8, {"sample_num": 4})
            done = chance.random() < 0.1
            good = SamplesAnswer((chunk,), CollectProgress(worker.task_id, done))
        if isinstance(request, TrainRequest):
            names = tuple(chunk.data_id for chunk in request.chunks)
            good = dataclasses.replace(good, received=names, own_rows=4 * len(names))
            if chance.random() < 0.05:
                good = dataclasses.replace(good, learner_done=True, info={"learner_done": True})
        failed = WorkerFailed(f"cause {next(self.causes)}", by_worker=True)
        lost = WorkerLost(f"cause {next(self.causes)}")
        bad = NonsenseAnswer(f"cause {next(self.causes)}")
        return chance.choice((*[good] * 12, failed, lost, bad))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.integers(20, 200))
def test_every_task_of_the_commander_comes_back_to_it_once(seed, steps):
    chance, whole = random.Random(seed), WholeRun()
    run = whole.run
    commander = run.commander
    names = {"l0": "learner", "l1": "learner", "c0": "collector", "c1": "collector"}
    for name, kind in names.items():
        whole.come(kind, name)
    for _ in range(steps):
        whole.schedule()
        asked = [worker for worker in whole.moves if whole.asked(worker) is not None]
        act = chance.choice(("come", "time", "lose", *("answer",) * 12))
        if act == "come":
            name = chance.choice(sorted(names))
            whole.come(names[name], name)
        elif act == "time":
            whole.pass_time(chance.choice((0.01, 0.6, 20.0)))
        elif act == "lose" and whole.moves:
            cause = f"cause {next(whole.causes)}"
            whole.lose(chance.choice(sorted(whole.moves, key=lambda w: w.name)), cause)
        elif asked:
            worker = chance.choice(sorted(asked, key=lambda worker: worker.name))
            whole.step(worker, whole.answer(worker, chance))
        assert run.verdict is None
        known = {**commander.open["collector"], **commander.open["learner"]}
        assert known.keys() == {state.task_id for state in run.table.live()}
        working = [worker.task_id for worker in whole.moves if worker.task_id is not None]
        assert len(working) == len(set(working))
        assert set(working) <= known.keys()
    whole.lose_all()
    assert {state.stage for state in run.table.live()} <= {"queued"}
    assert run.verdict is None
    counts = run.table.counts()
    finished = sum(map(len, commander.finished.values()))
    assert counts["done"] == finished
    assert counts["failed"] + counts["timed_out"] == len(commander.failed)
