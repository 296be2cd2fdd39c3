"""What a learner is sent while it trains on what it was sent before."""

import numpy as np
import pytest
from easydict import EasyDict

from ding.utils.shared_folder import SharedFolder
from ding.worker.coordinator.callback_events import CALLBACKS, events_of
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.space_quota import SpaceQuota
from ding.worker.coordinator.worker_jobs import LearnerJob
from ding.worker.messages import Demand, DemandRequest, Resources, TrainAnswer


def run_of(buffer):
    """A coordinator with one buffer."""
    run = events_of(dict.fromkeys(CALLBACKS, lambda *args: False))
    run.learner_buffer = lambda buffer_id: buffer
    return run


class Learner:
    """Trains on as many of the batches that wait as it is told to between two requests.

    ``between`` is called before it looks for more.
    """

    name = "l"
    resources = Resources()
    reported_bytes = 0

    def __init__(self, events, between=print, learners=1, per_request=2, ahead=6):
        self.events, self.between, self.requests = events, between, []
        self.step, self.learners, self.per_request, self.ahead = 0, learners, per_request, ahead
        self.waiting, self.ages = [], []

    def pause(self, seconds):
        self.between()
        return False

    def ask(self, request):
        if isinstance(request, DemandRequest):
            return Demand("t", 4, 0, self.ahead, self.learners)
        self.requests.append(request)
        self.waiting += [batch.wire for batch in request.batches]
        trained = 0
        for _ in range(self.per_request):
            if len(self.waiting) >= self.learners:
                for wire in self.waiting[: self.learners]:
                    self.ages += [self.step - self.born(name) for name in wire["chunks"]]
                del self.waiting[: self.learners]
                trained += self.learners
                self.step += 1
        wanted = self.ahead - len(self.waiting)
        return TrainAnswer(
            *("t", "b", self.step, False, trained, wanted, None, None, None, None),
            *((), (), {}, {"learner_step": self.step}),
        )

    @staticmethod
    def born(name):
        return int(name.rpartition("_")[2])


@pytest.mark.parametrize("learners", [1, 2])
@pytest.mark.parametrize("max_staleness", [1, 3, 20])
def test_no_row_is_too_old_when_its_turn_comes(tmp_path, learners, max_staleness):
    cfg = EasyDict(type="advanced", replay_buffer_size=64, max_staleness=max_staleness)
    buffer = ChunkBuffer(cfg, SharedFolder(str(tmp_path)), SpaceQuota(None), str(tmp_path / "exp"))
    learner = Learner(run_of(buffer), lambda: collect(), learners, ahead=6 * learners)

    def collect():
        born = learner.step
        meta = {"data_id": f"c{buffer.push_count}_{born}", "sample_num": 4, "size": 1}
        buffer.push({**meta, "collect_iter": born}, 0)

    job = LearnerJob({"task_id": "t", "buffer_id": "b"}, learner)
    for _ in range(60):
        collect()
        assert not job.work()
    assert learner.step > 40
    assert max(learner.ages) <= max_staleness
    buffer.close(remove_files=False)


def test_batches_go_back_to_the_buffer_that_the_learner_draws_from(tmp_path):
    cfg = EasyDict(type="advanced", replay_buffer_size=4)
    folder, space = SharedFolder(str(tmp_path / "data")), SpaceQuota(None)
    tasks, wanted = (ChunkBuffer(cfg, folder, space, "exp", name) for name in ("b", "wanted"))
    run = run_of(None)
    run.learner_buffer = {"b": tasks, "wanted": wanted}.get
    for buffer in (tasks, wanted):
        buffer.push({"data_id": "c0_0", "sample_num": 4, "size": 1}, 0)
    learner = Learner(run, per_request=0)
    learner.ask = lambda request, ask=learner.ask: (
        Demand("t", 4, 0, 1, buffer_id="wanted")
        if isinstance(request, DemandRequest)
        else ask(request)
    )
    others = tasks.sample(4, 0)
    job = LearnerJob({"task_id": "t", "buffer_id": "b"}, learner)
    assert not job.work()
    for buffer in (tasks, wanted):
        buffer.push({"data_id": "c1_1", "sample_num": 4, "size": 1}, 0)
    assert (tasks.files, wanted.files) == (2, 2)
    job.abandon()
    assert (tasks.files, wanted.files) == (2, 1)
    tasks.release(others)
    assert tasks.files == 1


def test_rows_of_a_chunk_are_as_old_as_they_are(tmp_path):
    cfg = EasyDict(type="advanced", replay_buffer_size=64, max_staleness=2)
    buffer = ChunkBuffer(cfg, SharedFolder(str(tmp_path)), SpaceQuota(None), str(tmp_path / "exp"))
    iters = [0, 0, 3, 4, 7, 7]
    buffer.push({"data_id": "c", "sample_num": 6, "size": 1, "collect_iter": iters}, 0)
    drawn = buffer.sample(3, 6)
    assert sorted(np.array(iters)[drawn["row"]]) == [4, 7, 7]
    assert buffer.count() == 3
    buffer.close(remove_files=False)


def test_it_is_told_what_environments_normalise_by_when_that_is_news(tmp_path):
    cfg = EasyDict(type="advanced", replay_buffer_size=64)
    buffer = ChunkBuffer(cfg, SharedFolder(str(tmp_path)), SpaceQuota(None), str(tmp_path / "exp"))
    buffer.push({"data_id": "c0_0", "sample_num": 4, "size": 1}, 0)
    run = run_of(buffer)
    learner = Learner(run)
    job = LearnerJob({"task_id": "t", "buffer_id": "b"}, learner)
    job.work()
    statistics = {"ObsNormWrapper": {"count": 1.0, "mean": np.ones(2), "m2": np.zeros(2)}}
    run.env_statistics = lambda: statistics
    job.work()
    job.work()
    news = {"ObsNormWrapper": {"count": 1.0, "mean": [1.0, 1.0], "m2": [0.0, 0.0]}}
    assert [request.env_statistics for request in learner.requests] == [None, news, None]
