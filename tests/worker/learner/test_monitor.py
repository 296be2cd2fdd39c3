"""The monitor that records any number that it receives."""

import numpy as np
import torch

from ding.worker.learner.monitor import MonitorFeed


def feed_of(*rows, **kwargs):
    feed = MonitorFeed(["cur_lr"], **kwargs)
    for row in rows:
        feed.add(row)
    return feed


def test_every_number():
    row = {"loss": 1.0, "tensor": torch.tensor(2.0), "array": np.float32(3.0), "flag": True}
    feed = feed_of(
        {**row, "text": "x", "nothing": None, "vector": torch.ones(2)}, every_number=True
    )
    assert feed.names() == ["loss", "tensor", "array"]


def test_names_that_come_later_lose_nothing():
    feed = feed_of({"loss": 1.0}, {"loss": 3.0}, every_number=True)
    assert feed.monitor.avg["loss"]() == 2.0
    feed.add({"loss": 5.0, "actor_loss": 7.0})
    assert feed.names() == ["loss", "actor_loss"]
    assert feed.monitor.avg["loss"]() == 3.0
    assert feed.monitor.avg["actor_loss"]() == 7.0
    for _ in range(20):
        feed.add({"loss": 0.0})
        feed.monitor.avg["loss"]()
    assert feed.monitor.avg["loss"]() == 0.0


def test_a_monitor_that_is_kept_follows_later_iterations():
    feed = feed_of({"cur_lr": 1.0})
    kept = feed.monitor
    assert kept.cur_lr == kept.avg["cur_lr"]() == 1.0
    assert [value for _, value in kept.range_values["cur_lr"]()] == [1.0]
    feed.add({"cur_lr": 3.0})
    assert kept.avg["cur_lr"]() == 2.0
    assert kept.val["cur_lr"]() == 3.0
