import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ding.data import Columns
from ding.worker.collector.sample_stock import SampleStock


def samples(lengths, columnar):
    """Samples that name their trajectory and their position in it."""
    rows = [
        {"of": i, "at": at, "traj_flag": at == length - 1}
        for i, length in enumerate(lengths)
        for at in range(length)
    ]
    return Columns.from_rows(rows) if columnar and rows else rows


def stocked(lengths, columnar):
    stock = SampleStock()
    stock.add(samples(lengths, columnar), lengths)
    return stock


lengths_ = st.lists(st.integers(1, 9), min_size=1, max_size=8)


@pytest.mark.slow
@settings(deadline=None)
@given(lengths=lengths_, columnar=st.booleans(), turn=st.integers(0, 99), data=st.data())
def test_all_trajectories_lose_alike(lengths, columnar, turn, data):
    n = data.draw(st.integers(1, sum(lengths)))
    stock = stocked(lengths, columnar)
    taken = stock.take_fairly(n, turn)
    assert (len(taken), len(stock)) == (n, 0)
    rows = list(taken)
    kept = [sum(row["of"] == i for row in rows) for i in range(len(lengths))]
    cut = [count for count, length in zip(kept, lengths) if count < length]
    # Those that lost something have as many as each other, but for one; no other has more.
    assert not cut or max(kept) <= min(cut) + 1
    place = 0
    for i, count in enumerate(kept):
        own = rows[place : place + count]
        assert [(row["of"], row["at"]) for row in own] == [(i, at) for at in range(count)]
        assert [row["traj_flag"] for row in own] == [at == count - 1 for at in range(count)]
        place += count


@settings(deadline=None)
@given(lengths=lengths_, columnar=st.booleans(), parts=st.lists(st.integers(1, 7), max_size=6))
def test_what_is_not_taken_stays_in_order(lengths, columnar, parts):
    stock, expected = stocked(lengths, columnar), list(samples(lengths, False))
    for n in parts:
        taken = list(stock.take(n))
        assert taken == expected[:n]
        expected = expected[n:]
        assert len(stock) == len(expected) == sum(stock._lengths)
    other = SampleStock()
    other.load_state_dict(stock.state_dict())
    assert len(other) == (len(expected) if columnar else 0)
    assert list(stock.take()) == expected


@pytest.mark.parametrize("columnar", [True, False])
def test_each_trajectory_has_its_turn(columnar):
    counts = np.zeros(5, int)
    for turn in range(0, 30, 3):
        taken = stocked([4] * 5, columnar).take_fairly(3, turn)
        for row in taken:
            counts[row["of"]] += 1
    assert counts.tolist() == [6] * 5
