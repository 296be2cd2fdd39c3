"""The queue between the thread that gets batches and the one that trains."""

import threading
import time

import pytest

from ding.worker.learner.comm.batch_feed import BatchFeed
from tests.worker.learner.comm.rig import until


def take(feed, n):
    return [next(feed) for _ in range(n)]


def test_gives_batches_in_turn_and_counts_them():
    feed = BatchFeed(4)
    feed.put(3)
    assert take(feed, 2) == [1, 2]
    assert feed.finished == 1  # the second is being trained on
    feed.finish()
    assert feed.finished == 2


def test_wants_more_when_half_is_used_up():
    feed = BatchFeed(8)
    assert feed.demand(0) == 8
    feed.put(8)
    take(feed, 3)
    start = time.monotonic()
    assert feed.demand(0.05) == 3  # not worth a separate request, but time is up
    assert time.monotonic() - start >= 0.05
    take(feed, 1)
    assert feed.demand(10) == 4


class Clock:
    """Replaces ``time``; it advances only when a test advances it."""

    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("ding.worker.learner.comm.batch_feed.time", clock)
    return clock


def train(feed, clock, n, seconds):
    for _ in range(n):
        feed.put(1)
        next(feed)
        clock.now += seconds


def test_wants_more_of_what_is_quickly_trained_on(clock):
    feed = BatchFeed(8, most=32)
    assert feed.demand(0) == 8
    train(feed, clock, 100, seconds=0.005)
    assert feed.demand(0) == 19
    train(feed, clock, 100, seconds=0.001)
    assert feed.demand(0) == 32
    train(feed, clock, 100, seconds=1.0)
    assert feed.demand(0) == 8


def test_wants_more_of_what_comes_slowly(clock):
    feed = BatchFeed(8, most=100)
    train(feed, clock, 100, seconds=0.01)
    assert feed.demand(0) in (9, 10)
    for _ in range(20):
        feed.demand(0)
        clock.now += 0.2
        feed.put(1)
    assert 40 < 20 + feed.demand(0) <= 50


def test_wakes_who_waits_for_demand_and_for_batches():
    feed = BatchFeed(1)
    feed.put(1)
    got = []
    trainer = threading.Thread(target=lambda: got.extend(feed))
    trainer.start()
    try:
        for _ in range(3):
            assert feed.demand(10) == 1
            feed.put(1)
        until(lambda: feed.finished == 4 and feed.waiting)
        assert feed.wait_share > 0
    finally:
        feed.close()
        trainer.join(10)
    assert got == [1, 2, 3, 4]


def test_answers_when_training_begins_to_lack_data():
    feed = BatchFeed(2)
    feed.put(2)
    answers = []
    serving = threading.Thread(target=lambda: answers.append(feed.demand(60)))
    serving.start()
    deadline = time.monotonic() + 30
    while serving.is_alive() and time.monotonic() < deadline:
        with feed.waiting_within():
            serving.join(0.02)
    feed.close()
    serving.join(10)
    assert time.monotonic() < deadline
    assert answers == [0]


def test_reports_between_batches_whether_none_is_ready():
    idle = []
    feed = BatchFeed(4, between=idle.append)
    feed.put(2)
    take(feed, 2)
    feed.close()
    with pytest.raises(StopIteration):
        next(feed)
    assert idle == [False, False, True]


def test_closed_drops_what_is_ready():
    feed = BatchFeed(4)
    feed.put(1)
    feed.close()
    assert feed.demand(10) == 0
    assert list(feed) == []


def test_draining_gives_what_is_ready_and_wants_no_more():
    feed = BatchFeed(4)
    feed.put(2)
    feed.close(drain=True)
    assert feed.demand(10) == 0
    assert list(feed) == [1, 2]


def test_knows_how_long_a_step_takes():
    feed = BatchFeed(4)
    feed.put(1)
    assert feed.step_seconds == 0
    next(feed)
    time.sleep(0.02)
    assert feed.step_seconds >= 0.02
    feed.finish()
    assert feed.step_seconds == 0
