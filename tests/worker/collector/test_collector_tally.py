"""Counts of a collector's task."""

import time

from ding.worker.collector._collector_tally import CollectorTally


def test_a_clock_that_is_set_back_gives_no_negative_seconds(monkeypatch):
    tally = CollectorTally()
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now - 3600)
    tally.stop()
    info = tally.finish_info(evaluate=False, env_num=1, train_iter=0, done=True, predefined=1)
    assert 0 < info["duration"] < 100
