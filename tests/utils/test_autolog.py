import threading
import time
from functools import partial

import numpy as np
import pytest
import torch

from ding.utils.autolog import (
    LoggedModel,
    LoggedValue,
    NaturalTime,
    RangedData,
    TickTime,
    TimeMode,
    TimeProxy,
    TimeRangedData,
)


class Monitor(LoggedModel):
    reward = LoggedValue(float)
    name = LoggedValue(str)
    anything = LoggedValue()

    def __init__(self, time_, expire):
        super().__init__(time_, expire)

        def average(property_name):
            values = [value for (_begin, _end), value in self.range_values[property_name]()]
            return sum(values) / len(values) if values else 0

        self.register_attribute_value("avg", "reward", partial(average, "reward"))
        self.register_attribute_value("current", "name", lambda: self.name)


def test_a_statistic_covers_the_range():
    monitor = Monitor(TickTime(), expire=3)
    assert monitor.avg["reward"]() == 0
    for value in range(10):
        monitor.reward = value
        assert monitor.reward == value
        monitor.time.step()
    # At tick 10 the values of ticks 7, 8 and 9 are in force during the last 3 ticks; that of tick 6
    # was until they began.
    assert monitor.avg["reward"]() == 7.5
    assert monitor.range_values["reward"](TimeMode.ABSOLUTE) == [
        ((7, 7), 6.0),
        ((7, 8), 7.0),
        ((8, 9), 8.0),
        ((9, 10), 9.0),
    ]


def test_a_value_that_came_just_now_counts():
    monitor = Monitor(TickTime(), expire=3)
    monitor.reward = 2.0
    assert monitor.avg["reward"]() == 2


def test_the_last_value_stays_in_force():
    monitor = Monitor(TickTime(5), expire=3)
    monitor.reward = 2.0
    monitor.time.step(100)
    assert monitor.range_values["reward"]() == [((97, 100), 2.0)]
    assert monitor.range_values["reward"](TimeMode.ABSOLUTE) == [((102, 105), 2.0)]
    assert monitor.range_values["reward"](TimeMode.RELATIVE_CURRENT_TIME) == [((-3, 0), 2.0)]


def test_freezing_holds_the_time():
    monitor = Monitor(TickTime(), expire=5)
    monitor.reward = 1.0
    monitor.freeze()
    monitor.time.step(2)
    assert monitor.fixed_time() == 0
    assert monitor.current_time() == 2
    assert monitor.range_values["reward"]() == [((0, 0), 1.0)]
    monitor.unfreeze()
    assert monitor.fixed_time() == 2


def test_what_is_registered_can_be_asked_for():
    monitor = Monitor(TickTime(), expire=5)
    assert monitor.get_property_attribute("reward") == ["avg"]
    assert monitor.get_property_attribute("anything") == []
    assert monitor.expire == 5
    monitor.name = "x"
    assert monitor.current["name"]() == "x"
    with pytest.raises(AttributeError, match="'sum'; registered are: avg, current"):
        _ = monitor.sum
    with pytest.raises(KeyError, match="declares: reward, name, anything"):
        monitor.register_attribute_value("avg", "rewards", None)
    with pytest.raises(KeyError, match="declares"):
        monitor.get_property_attribute("rewards")


def test_types_are_checked():
    monitor = Monitor(TickTime(), expire=5)
    for value in (1, np.float32(1), np.array(1), torch.tensor(1.0), True):
        monitor.reward = value
        assert type(monitor.reward) is float
    with pytest.raises(TypeError, match=r"reward got 'high' \(str\), expected float"):
        monitor.reward = "high"
    monitor.anything = object()


def test_models_of_one_class_are_independent_and_inherit():
    sub = type("Sub", (Monitor,), {"loss": LoggedValue(float)})
    first, second = sub(TickTime(), 5), sub(TickTime(), 5)
    first.loss = 1.0
    assert first.get_property_attribute("reward") == ["avg"]
    with pytest.raises(ValueError, match="no current value"):
        _ = second.loss


def test_ranged_data_keeps_the_range():
    clock = TickTime()
    data = TimeRangedData(clock, expire=2)
    assert data.history() == []
    with pytest.raises(ValueError, match="none has been added"):
        data.current()
    data.extend([1, 2])
    clock.step()
    data.append(3)
    assert data.current() == 3
    assert data.history() == [(0, 1), (0, 2), (1, 3)]
    clock.step(2)
    assert data.history() == [(0, 2), (1, 3)]
    clock.step()
    assert data.history() == [(1, 3)]
    assert data.time is clock
    assert data.expire == 2


def test_ranged_data_does_not_grow():
    clock = TickTime()
    data = TimeRangedData(clock, expire=10)
    for value in range(1000):
        data.append(value)
        clock.step()
    assert len(data.history()) == 11


def test_pickled_values_are_copies():
    class ByHand(RangedData):
        def _get_time(self):
            return 0

    item = [1]
    data = ByHand(1.0, use_pickle=True)
    data.append(item)
    item.append(2)
    assert data.current() == [1]
    assert data.history() == [(0, [1])]


@pytest.mark.parametrize(("expire", "error"), [(0, ValueError), (-1, ValueError), ("1", TypeError)])
def test_a_range_has_a_length(expire, error):
    with pytest.raises(error, match="expire"):
        TimeRangedData(TickTime(), expire)


def test_many_threads_lose_nothing():
    data = TimeRangedData(TickTime(), expire=1)

    def add():
        for value in range(1000):
            data.append(value)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(data.history()) == 4000


def test_tick_time():
    clock = TickTime(3)
    assert clock.step() == 4
    assert clock.step(2) == 6
    assert clock.time() == 6
    with pytest.raises(ValueError, match="backwards"):
        clock.step(0)
    with pytest.raises(TypeError, match="whole number"):
        clock.step(0.5)


def test_natural_time_never_runs_backwards(monkeypatch):
    clock = NaturalTime()
    assert clock.time() > 1e9
    for jump in (5.0, 1e12):
        before = clock.time()
        monkeypatch.setattr(time, "time", lambda jump=jump: jump)
        assert before <= clock.time() < before + 100


def test_time_proxy():
    clock = TickTime()
    proxy = TimeProxy(clock, frozen=True)
    clock.step()
    assert proxy.is_frozen
    assert proxy.time() == 0
    assert proxy.current_time() == 1
    proxy.freeze()
    assert proxy.time() == 0
    proxy.unfreeze()
    assert not proxy.is_frozen
    assert proxy.time() == 1
    proxy.freeze()
    clock.step()
    assert proxy.time() == 1
