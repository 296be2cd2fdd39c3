"""The replay buffer of a learner that keeps its samples itself."""

import threading

import numpy as np
import pytest
import torch

from ding.data import Columns
from ding.utils.errors import ChunkError
from ding.worker.learner.comm.learn_report import LearnReport
from ding.worker.learner.comm.own_buffer import OwnBuffer
from ding.worker.messages import ChunkReport, TrainAnswer


class Store(dict):
    def __call__(self, name):
        if name not in self:
            raise ChunkError(name, "it is not there")
        return self[name]


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def own(tmp_path):
    cfg = {"type": "advanced", "replay_buffer_size": 100, "alpha": 1.0, "beta": 1.0}
    buffer = OwnBuffer(cfg, str(tmp_path), "buffer", None)
    yield buffer
    buffer.close()


def chunk(store, number: int, n: int = 4, **meta) -> ChunkReport:
    name = f"c{number}"
    store[name] = Columns({"obs": torch.full((n, 2), float(number)), "reward": torch.ones(n)})
    return ChunkReport(name, None, None, 0, {"sample_num": n, **meta})


def test_it_draws_what_it_has_taken_in(own, store):
    own.name_chunks([chunk(store, 0), chunk(store, 1)], envstep=8)
    assert own.rows == 0
    own.take_in(store, LearnReport())
    assert own.rows == 8
    assert own.take_received() == ("c0", "c1")
    assert own.take_received() == ()
    batch, _ = own.sample(8, 0)
    assert set(np.asarray(batch.columns["obs"])[:, 0].tolist()) == {0.0, 1.0}


def test_a_chunk_that_comes_twice_is_taken_in_once(own, store):
    first = chunk(store, 0)
    own.name_chunks([first], 4)
    own.take_in(store, LearnReport())
    own.name_chunks([first], 4)
    own.take_in(store, LearnReport())
    assert own.rows == 4
    assert own.take_received() == ("c0", "c0")


def test_chunks_that_cannot_be_used_are_reported(own, store):
    report = LearnReport()
    short = chunk(store, 1, n=3)
    short.meta["sample_num"] = 4
    own.name_chunks([ChunkReport("gone", None, None, 0, {"sample_num": 1}), short], 4)
    own.take_in(store, report)
    bad = report.complete(TrainAnswer("task", "buffer")).bad_chunks
    assert [name for name, _ in bad] == ["gone", "c1"]
    assert "it is not there" in bad[0][1]
    assert "expected 4" in bad[1][1]
    assert own.rows == 0


def test_priorities_of_the_collector_and_of_learning_count(own, store):
    own.name_chunks([chunk(store, 0, n=2, priority=[1.0, 0.0001])], 2)
    own.take_in(store, LearnReport())
    batch, _ = own.sample(2, 0)
    ids, weights = batch.columns["replay_unique_id"], batch.columns["IS"]
    assert len(np.asarray(weights)) == 2
    own.update(
        {
            "replay_unique_id": ids,
            "replay_buffer_idx": batch.columns["replay_buffer_idx"],
            "priority": [5.0, 5.0],
        }
    )
    again, _ = own.sample(2, 0)
    assert np.asarray(again.columns["priority"]).max() == pytest.approx(5.0)


def test_who_waits_for_more_goes_on_when_it_comes(own, store):
    batch, seen = own.sample(4, 0)
    assert batch is None
    done = threading.Event()
    waiter = threading.Thread(target=lambda: (own.wait_for_more(seen), done.set()))
    waiter.start()
    own.name_chunks([chunk(store, 0)], 4)
    own.take_in(store, LearnReport())
    assert done.wait(5)
    waiter.join(5)
    assert own.sample(4, 0)[0] is not None
