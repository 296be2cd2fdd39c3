"""What is counted and kept while policies act."""

import pytest
from hypothesis import given, settings, strategies as st

from ding.data import Columns
from ding.worker.collector.steps import Episode, SampleStock, Tally


def tally_of(*returns, **kwargs):
    tally = Tally(**kwargs)
    info = {"picture": 1, "result": "wins"}
    tally.end_episodes([Episode(0, [value], 5, [info]) for value in returns])
    return tally


def test_sums_and_the_newest_episodes():
    total = Tally(keep=2)
    for returns in ((1.0, 3.0), (8.0,)):
        call = tally_of(*returns)
        call.envsteps, call.samples, call.dropped, call.seconds = 5, 4, 1, 2.0
        total.add(call)
    assert (total.envsteps, total.samples, total.dropped, total.seconds) == (10, 8, 2, 4.0)
    assert total.episode_count == 3
    assert list(total.returns) == [3.0, 8.0]


def test_infos_may_hold_more_than_is_kept():
    kept, brief = (tally_of(1.0, infos=infos).episodes[0].infos for infos in (True, False))
    assert kept == [{"picture": 1, "result": "wins"}]
    assert brief == [{"result": "wins"}]


def test_the_state_goes_on():
    first, second = tally_of(1.0, 3.0), Tally()
    first.envsteps = 7
    second.load_state_dict(first.state_dict())
    assert (second.envsteps, second.episode_count, list(second.returns)) == (7, 2, [1.0, 3.0])


def samples(number, columnar):
    rows = [{"at": at} for at in range(number)]
    return Columns.from_rows(rows) if columnar else rows


@settings(deadline=None)
@given(
    number=st.integers(1, 40),
    columnar=st.booleans(),
    parts=st.lists(st.integers(1, 7), max_size=6),
)
def test_what_is_not_taken_stays_in_order(number, columnar, parts):
    stock, expected = SampleStock(), list(samples(number, False))
    stock.add(samples(number, columnar))
    for n in parts:
        taken = list(stock.take(n))
        assert taken == expected[:n]
        expected = expected[n:]
        assert len(stock) == len(expected)
    other = SampleStock()
    other.load_state_dict(stock.state_dict())
    assert len(other) == (len(expected) if columnar else 0)
    assert list(stock.take()) == expected


@pytest.mark.parametrize("columnar", [True, False])
def test_samples_are_appended(columnar):
    stock = SampleStock()
    stock.add(samples(3, columnar))
    stock.add(samples(2, columnar))
    assert [row["at"] for row in stock.take()] == [0, 1, 2, 0, 1]
    assert len(stock) == 0
