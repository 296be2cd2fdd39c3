import pytest
from hypothesis import given, settings, strategies as st

from ding.data import Columns
from ding.worker.collector.sample_stock import SampleStock


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
