"""Chunks that a learner receives while it trains on earlier ones."""

import numpy as np
import pytest
from easydict import EasyDict

from ding.data.buffer.rate_limiter import SampleRatio
from ding.utils.shared_folder import SharedFolder
from ding.worker.coordinator.buffer_pace import SpaceQuota
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.run_events import CALLBACKS, events_of
from ding.worker.coordinator.worker_jobs import LearnerJob
from ding.worker.coordinator.worker_session import Wait, WorkerSession
from ding.worker.messages import Demand, DemandRequest, Resources, TrainAnswer
from ding.worker.seams import Arrival


def run_of(**buffers):
    """A coordinator with these buffers."""
    run = events_of(dict.fromkeys(CALLBACKS, lambda *args: False))
    run.learner_buffer = buffers.get
    return run


class Learner:
    """Takes in what it is named, and trains on what it may draw; waits take no time."""

    def __init__(self, events, ahead=6, buffer_id=None):
        self.events, self.requests = events, []
        self.ahead, self.buffer_id = ahead, buffer_id
        self.step, self.rows, self.starved = 0, 0, False
        self.session = WorkerSession(Arrival("learner", "l", None, "here"), 0.0)
        self.job = LearnerJob({"task_id": "t", "buffer_id": "b"}, self.session, events)

    def work(self):
        """Does a step of its job; returns whether the job is done."""
        steps, answer = self.job.work(), None
        while True:
            try:
                move = steps.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(move, Wait):
                self.session.now, answer = move.until, None
            else:
                answer = self.answer(move.request)

    def answer(self, request):
        if isinstance(request, DemandRequest):
            return Demand("t", 4, 0, self.ahead, buffer_id=self.buffer_id)
        self.requests.append(request)
        self.step += request.draws
        self.rows += sum(int(str(chunk.meta["sample_num"])) for chunk in request.chunks)
        received = tuple(chunk.data_id for chunk in request.chunks)
        return TrainAnswer(
            *("t", "b", self.step, False, request.draws, self.ahead),
            waiting=None if request.draws else "data",
            received=received,
            own_rows=self.rows,
            starved=self.starved,
        )


def foreign_session():
    session = WorkerSession(Arrival("learner", "f", None, "there"), 0.0)
    session.resources = Resources(ours=False)
    return session


@pytest.fixture
def make(tmp_path):
    folder, buffers = SharedFolder(str(tmp_path / "data")), []

    def make(name="b", ratio=None, **cfg):
        cfg = EasyDict(type="advanced", replay_buffer_size=64, **cfg)
        buffer = ChunkBuffer(cfg, folder, SpaceQuota(None), "exp", name, None, ratio)
        buffers.append(buffer)
        return buffer

    yield make
    for buffer in buffers:
        buffer.close(remove_files=False)


def push(buffer, number=0, n=4):
    buffer.push({"data_id": f"c{number}", "sample_num": n, "size": 1}, 0)


def names(request):
    return [chunk.data_id for chunk in request.chunks]


def test_it_is_named_chunks_and_permitted_batches_as_they_come(make):
    buffer = make(ratio=SampleRatio(2.0, tolerance=16.0, min_size=4))
    learner = Learner(run_of(b=buffer))
    for number in range(3):
        push(buffer, number)
        assert not learner.work()
    assert [names(request) for request in learner.requests] == [["c0"], ["c1"], ["c2"]]
    assert [request.draws for request in learner.requests] == [4, 2, 2]
    assert (learner.step, buffer.count()) == (8, 12)


def test_it_draws_from_the_buffer_that_it_names(make):
    tasks, wanted = make("b"), make("wanted")
    for number, buffer in enumerate((tasks, wanted)):
        push(buffer, number)
    learner = Learner(run_of(b=tasks, wanted=wanted), buffer_id="wanted")
    learner.work()
    assert names(learner.requests[0]) == ["c1"]


def test_it_is_asked_for_news_while_there_is_nothing_new_for_it(make):
    buffer = make(ratio=SampleRatio(1.0, tolerance=4.0, min_size=4))
    learner = Learner(run_of(b=buffer))
    push(buffer)
    learner.work()
    learner.work()
    assert learner.requests[-1].draws == 0
    assert learner.session.waits_for == "collectors"


def test_a_starved_learner_does_not_wait_for_collectors_that_wait_for_it(make):
    buffer = make(ratio=SampleRatio(8.0, tolerance=64.0, min_size=4))
    learner = Learner(run_of(b=buffer))
    push(buffer, n=20)
    assert not buffer.pace.has_room()
    learner.ahead = 1
    learner.starved = True
    learner.work()
    assert buffer.pace.has_room()


def test_new_environment_statistics_reach_the_learner_once(make):
    buffer = make()
    push(buffer)
    run = run_of(b=buffer)
    learner = Learner(run)
    learner.work()
    statistics = {"ObsNormWrapper": {"count": 1.0, "mean": np.ones(2), "m2": np.zeros(2)}}
    run.collected = lambda: (0, statistics)
    learner.work()
    learner.work()
    news = {"ObsNormWrapper": {"count": 1.0, "mean": [1.0, 1.0], "m2": [0.0, 0.0]}}
    assert [request.env_statistics for request in learner.requests] == [None, news, None]


def test_a_foreign_learner_draws_what_the_one_before_had_taken_in(make):
    buffer = make()
    run = run_of(b=buffer)
    run.deal_with_learner_get_data = lambda _, __, size, step: buffer.sample_rows(size, step)
    learner = Learner(run)
    push(buffer, n=8)
    learner.work()
    assert buffer.count() == 8
    job = LearnerJob({"task_id": "t", "buffer_id": "b"}, foreign_session(), run)
    steps = job.work()
    assert isinstance(next(steps).request, DemandRequest)
    request = steps.send(Demand("t", 4, 0)).request
    assert {row["data_id"] for row in request.rows} == {"c0"}
    assert buffer.count() == 8
