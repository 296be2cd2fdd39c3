"""The rate limiter against numbers worked out by hand, and the ratios of configs."""

import random

import pytest

from ding.data.buffer.rate_limiter import RateLimiter, SampleRatio, sample_ratio
from ding.utils.errors import ConfigError


def make(ratio: float = 4.0, tolerance: float = 40.0, min_size: int = 10) -> RateLimiter:
    return RateLimiter(SampleRatio(ratio, tolerance, min_size))


def test_a_sequence_by_hand():
    limiter = make()
    # (call, amount) and then: balance, room, whether 32 may be drawn.
    expected = [
        # The first ten are needed, and ten more bring the balance to the tolerance.
        (None, 0, 0, 10, False),
        (limiter.insert, 9, 0, 10, False),
        (limiter.insert, 1, 0, 10, True),
        (limiter.insert, 8, 32, 2, True),
        (limiter.insert, 2, 40, 0, True),
        (limiter.sample, 32, 8, 8, True),
        (limiter.sample, 32, -24, 16, False),
        (limiter.insert, 3, -12, 13, False),
        (limiter.insert, 1, -8, 12, True),
        (limiter.sample, 32, -40, 20, False),
    ]
    for call, amount, balance, room, may_draw in expected:
        if call is not None:
            call(amount)
        assert (limiter.balance, limiter.room, limiter.can_sample(32)) == (balance, room, may_draw)
    assert limiter.reached == pytest.approx(96 / 24)


def test_more_than_there_was_room_for_is_counted():
    limiter = make()
    limiter.insert(100)  # a collector had collected it already
    assert limiter.balance == 360
    assert limiter.room == 0
    limiter.sample(320)
    assert limiter.room == 0
    limiter.sample(4)
    assert limiter.room == 1


def test_each_sample_may_be_drawn_less_than_once():
    limiter = make(ratio=0.5, tolerance=8.0, min_size=4)
    limiter.insert(4)
    assert limiter.room == 16
    limiter.sample(8)
    assert not limiter.can_sample(1)
    limiter.insert(2)
    assert limiter.can_sample(1)
    assert not limiter.can_sample(2)


def test_what_left_unused_is_not_to_be_made_up_for():
    limiter = make()
    limiter.insert(20)
    assert limiter.room == 0
    limiter.starve()  # too old, all of it
    assert limiter.balance == 0
    assert limiter.room == 10
    limiter.sample(40)
    limiter.starve()  # what was drawn ahead still is
    assert limiter.balance == -40


@pytest.mark.parametrize("ratio", [0.1, 1.0, 6.0, 48.0])
@pytest.mark.parametrize("batch", [1, 32, 500])
@pytest.mark.parametrize("spare", [1.0, 1.5, 10.0])
def test_one_side_can_always_go_on(ratio: float, batch: int, spare: float):
    draw, limiter = random.Random(0), make(ratio, spare * ratio, min_size=batch)
    for _ in range(2000):
        may = [
            kind for kind in "is" if (limiter.room if kind == "i" else limiter.can_sample(batch))
        ]
        assert may
        if draw.choice(may) == "s":
            limiter.sample(batch)
        else:
            limiter.insert(draw.randint(1, limiter.room))
    tolerance = spare * ratio
    assert limiter.balance <= tolerance
    assert limiter.balance >= -max(tolerance, batch)


def test_its_state_goes_on():
    first, second = make(), make()
    first.insert(25)
    first.sample(64)
    first.starve()
    second.load_state_dict(first.state_dict())
    assert (second.balance, second.room, second.reached) == (
        first.balance,
        first.room,
        first.reached,
    )


def test_after_a_change_of_the_ratio_it_goes_on_from_its_balance():
    first, second = make(ratio=4.0), make(ratio=1.0)
    first.insert(1000)
    first.sample(3950)
    assert first.balance == 10
    second.load_state_dict(first.state_dict())
    assert second.balance == 10  # and not -2960, for which the learner would have to wait
    assert second.room == 30


@pytest.mark.parametrize(
    ("ratio", "tolerance", "text"),
    [(0.0, 1.0, "positive"), (-1.0, 1.0, "positive"), (4.0, 3.0, "at least")],
)
def test_impossible_ratios(ratio: float, tolerance: float, text: str):
    with pytest.raises(ConfigError, match=text):
        make(ratio, tolerance)


# ---------------------------------------------------------------------- of a config


def policy(n_sample: int | None = 16, batch: int | None = 32, **learn: int) -> dict:
    collector = {"collector_num": 2}
    return {
        "learn": {"batch_size": batch, **learn},
        "collect": {"n_sample": n_sample, "collector": collector},
    }


def test_it_is_that_of_serial_mode():
    ratio = sample_ratio(policy(update_per_collect=3))
    assert ratio is not None
    assert ratio.samples_per_insert == 6
    assert ratio.tolerance == 32 * 32
    assert ratio.min_size == 32
    assert ratio.origin == "update_per_collect 3 * batch_size 32 / n_sample 16"


def test_one_update_after_each_collection_is_the_default():
    ratio = sample_ratio(policy(n_sample=64))
    assert ratio is not None
    assert ratio.samples_per_insert == 0.5


def test_all_collectors_may_bring_what_they_collect_at_a_time():
    ratio = sample_ratio(policy(n_sample=1000, update_per_collect=50))
    assert ratio is not None
    assert ratio.samples_per_insert == 1.6
    assert ratio.tolerance == 2 * 2 * 1000 * 1.6


def test_no_sample_is_waited_for_that_may_not_be_drawn_any_more():
    cfg = policy(update_per_collect=3) | {"other": {"replay_buffer": {"max_use": 2}}}
    ratio = sample_ratio(cfg)
    assert ratio is not None
    assert ratio.samples_per_insert == 2
    assert ratio.origin.startswith("max_use; else update_per_collect")
    cfg["other"]["replay_buffer"]["max_use"] = float("inf")
    assert sample_ratio(cfg) == sample_ratio(policy(update_per_collect=3))


@pytest.mark.parametrize(
    ("limit", "n_sample", "expected"),
    [
        ({"max": float("inf"), "min": 0}, 16, 6),
        ({"max": float("inf"), "min": 0.5}, 16, 2),  # at least one pushed for two drawn
        ({"max": 0.1, "min": 0}, 16, 10),  # at most one pushed for ten drawn
        ({"max": 1, "min": 0.1}, 16, 6),
        ({"max": float("inf"), "min": 0.25}, None, 4),
        ({"max": 0.5, "min": 0}, None, 2),
    ],
)
def test_the_documented_throughput_limits_bound_it(limit, n_sample, expected):
    cfg = policy(n_sample=n_sample, update_per_collect=3)
    cfg["other"] = {"replay_buffer": {"thruput_controller": {"push_sample_rate_limit": limit}}}
    ratio = sample_ratio(cfg)
    assert ratio is not None
    assert ratio.samples_per_insert == pytest.approx(expected)
    configured = sample_ratio(cfg, 3)
    assert configured is not None
    assert configured.samples_per_insert == 3


def test_a_ratio_of_ones_own():
    ratio = sample_ratio(policy(update_per_collect=3), 2, 100)
    assert ratio is not None
    assert (ratio.samples_per_insert, ratio.tolerance) == (2.0, 100.0)


@pytest.mark.parametrize("cfg", [policy(n_sample=None), policy(batch=None), {}])
def test_without_numbers_there_is_nothing_to_keep_to(cfg: dict):
    assert sample_ratio(cfg) is None


def test_it_can_be_turned_off():
    assert sample_ratio(policy(), None) is None


@pytest.mark.parametrize("given", [0, -1, "off", True, float("inf"), float("nan")])
def test_other_values_are_named(given: object):
    with pytest.raises(ConfigError, match=r"samples_per_insert is .*'auto' or None"):
        sample_ratio(policy(), given)
    with pytest.raises(ConfigError, match="samples_per_insert_tolerance is"):
        sample_ratio(policy(), 1, given)
