"""What a learner is sent while it trains on what it was sent before."""

import numpy as np
import pytest
from easydict import EasyDict

from ding.utils.shared_folder import SharedFolder
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.worker_jobs import LearnerJob


class Link:
    """The coordinator, of which there is a buffer."""

    def __init__(self, buffer):
        self.buffer = buffer
        self.statistics = {}

    def learner_buffer(self, buffer_id):
        return self.buffer

    def envstep(self):
        return 0

    def env_statistics(self):
        return self.statistics

    def send_info(self, *args):
        pass

    def learner_done(self, task_id, info):
        return bool(info.get("learner_done"))


class Learner:
    """Trains on as many of the batches that wait as it is told to between two requests."""

    def __init__(self, learners=1, per_request=2, ahead=6):
        self.step, self.learners, self.per_request, self.ahead = 0, learners, per_request, ahead
        self.waiting, self.ages = [], []

    def __call__(self, request, step):
        ids = {"task_id": "t", "buffer_id": "b"}
        if request["name"] == "learner_get_data_task":
            demand = {"batch_size": 4, "cur_learner_iter": 0, "batch_num": self.ahead, "ours": 1}
            return {**ids, **demand, "learners": self.learners}
        self.waiting += request["data"]["batches"]
        trained = 0
        for _ in range(self.per_request):
            if len(self.waiting) >= self.learners:
                for wire in self.waiting[: self.learners]:
                    self.ages += [self.step - self.born(name) for name in wire["chunks"]]
                del self.waiting[: self.learners]
                trained += self.learners
                self.step += 1
        wanted = self.ahead - len(self.waiting)
        info = {"learner_step": self.step, "trained": trained, "batch_num": wanted}
        return {**ids, "info": info}

    @staticmethod
    def born(name):
        return int(name.rpartition("_")[2])


@pytest.mark.parametrize("learners", [1, 2])
@pytest.mark.parametrize("max_staleness", [1, 3, 20])
def test_no_row_is_too_old_when_its_turn_comes(tmp_path, learners, max_staleness):
    cfg = EasyDict(type="advanced", replay_buffer_size=64, max_staleness=max_staleness)
    buffer = ChunkBuffer(cfg, SharedFolder(str(tmp_path)), None, str(tmp_path / "exp"))
    learner = Learner(learners, ahead=6 * learners)

    def collect(seconds):
        born = learner.step
        meta = {"data_id": f"c{buffer.push_count}_{born}", "sample_num": 4, "size": 1}
        buffer.push({**meta, "collect_iter": born}, 0)
        return False

    job = LearnerJob(
        {"task_id": "t", "buffer_id": "b"},
        *("l", {"ours": 1}, learner, Link(buffer), collect, {}),
    )
    for _ in range(60):
        collect(0)
        assert not job.work()
    assert learner.step > 40
    assert max(learner.ages) <= max_staleness
    buffer.close(remove_files=False)


def test_rows_of_a_chunk_are_as_old_as_they_are(tmp_path):
    cfg = EasyDict(type="advanced", replay_buffer_size=64, max_staleness=2)
    buffer = ChunkBuffer(cfg, SharedFolder(str(tmp_path)), None, str(tmp_path / "exp"))
    iters = [0, 0, 3, 4, 7, 7]
    buffer.push({"data_id": "c", "sample_num": 6, "size": 1, "collect_iter": iters}, 0)
    drawn = buffer.sample(3, 6)
    assert sorted(np.array(iters)[drawn["row"]]) == [4, 7, 7]
    assert buffer.count() == 3
    buffer.close(remove_files=False)


def test_it_is_told_what_environments_normalise_by_when_that_is_news(tmp_path):
    cfg = EasyDict(type="advanced", replay_buffer_size=64)
    buffer = ChunkBuffer(cfg, SharedFolder(str(tmp_path)), None, str(tmp_path / "exp"))
    buffer.push({"data_id": "c0_0", "sample_num": 4, "size": 1}, 0)
    learner, link, told = Learner(), Link(buffer), []

    def ask(request, step):
        told.append(request.get("data", {}).get("env_statistics"))
        return learner(request, step)

    job = LearnerJob(
        {"task_id": "t", "buffer_id": "b"}, *("l", {"ours": 1}, ask, link, lambda s: False, {})
    )
    job.work()
    link.statistics = {"ObsNormWrapper": {"count": 1.0, "mean": np.ones(2), "m2": np.zeros(2)}}
    job.work()
    job.work()
    news = {"ObsNormWrapper": {"count": 1.0, "mean": [1.0, 1.0], "m2": [0.0, 0.0]}}
    assert told == [None, None, news, None]
