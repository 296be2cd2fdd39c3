import pytest

from ding.worker.collector.collect_stats import CollectStats
from ding.worker.collector.rollout import FinishedEpisode


def add(stats, *returns):
    stats.add(5, 5, [FinishedEpisode(0, [value], 5, [{}]) for value in returns], 0.0)


def test_recent_return_is_the_mean_of_the_last_hundred_episodes():
    stats = CollectStats()
    assert stats.recent_return is None
    add(stats, *range(250))
    assert stats.recent_return == pytest.approx(sum(range(150, 250)) / 100)


def test_log_rows_do_not_end_what_is_recent():
    stats = CollectStats()
    add(stats, 1.0, 3.0)
    assert stats.log_row()["reward_mean"] == 2.0
    assert stats.log_row() is None
    assert stats.recent_return == 2.0
    add(stats, 8.0)
    assert stats.recent_return == 4.0


def test_recent_return_outlasts_a_resume():
    stats, resumed = CollectStats(), CollectStats()
    add(stats, 1.0, 3.0)
    resumed.load_state_dict(stats.state_dict())
    add(resumed, 8.0)
    assert resumed.recent_return == 4.0
