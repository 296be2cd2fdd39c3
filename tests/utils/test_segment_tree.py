import operator

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ding.utils import MinSegmentTree, SegmentTree, SumSegmentTree
from ding.utils.errors import DataError

CAPACITIES = [1, 7, 32, 33, 1000, 4096, 4097, 140_000]


def filled(tree, seed=0):
    values = np.random.default_rng(seed).random(tree.capacity)
    tree.set_many(np.arange(tree.capacity), values)
    return values


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_reduce_matches_a_plain_sum_and_minimum(capacity):
    sums, minima = SumSegmentTree(capacity), MinSegmentTree(capacity)
    values = filled(sums)
    filled(minima)
    assert sums.total == pytest.approx(values.sum())
    assert minima.min == values.min()
    rng = np.random.default_rng(1)
    for _ in range(50):
        start, end = np.sort(rng.integers(0, capacity + 1, 2))
        if start == end:
            continue
        assert sums.reduce(start, end) == pytest.approx(values[start:end].sum())
        assert minima.reduce(start, end) == values[start:end].min()


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_prefix_sums_find_the_slot_they_fall_into(capacity):
    tree = SumSegmentTree(capacity)
    values = filled(tree)
    running = values.cumsum()
    rng = np.random.default_rng(2)
    wanted = rng.integers(0, capacity, 200)
    middle = running[wanted] - values[wanted] / 2
    assert np.array_equal(tree.find_prefixsum_many(middle), wanted)
    assert tree.find_prefixsum_idx(float(middle[0])) == wanted[0]


def test_small_tree_by_hand():
    tree = SumSegmentTree(4)
    tree[0], tree[2], tree[3] = 1.0, 2.0, 3.0
    assert [tree[i] for i in range(4)] == [1.0, 0.0, 2.0, 3.0]
    assert tree[-1] == 3.0
    assert tree.reduce() == tree.total == 6.0
    assert tree.reduce(0, -1) == 3.0
    found = [tree.find_prefixsum_idx(p) for p in (0.0, 0.99, 1.0, 2.99, 3.0, 5.99)]
    assert found == [0, 0, 2, 2, 3, 3]
    assert len(tree) == 4


def test_at_and_past_the_total_the_last_value_above_zero_is_found():
    tree = SumSegmentTree(100_000)
    tree.set_many(np.arange(10), np.ones(10))
    assert tree.find_prefixsum_many(np.array([10.0, 11.0])).tolist() == [9, 9]
    with pytest.raises(DataError, match="prefixsum must be in"):
        tree.find_prefixsum_idx(11.0, trust_caller=False)
    with pytest.raises(DataError, match="prefixsum must be in"):
        tree.find_prefixsum_idx(-1.0, trust_caller=False)


def test_last_of_a_repeated_index_wins_and_sums_do_not_drift():
    tree = SumSegmentTree(50_000)
    tree.set_many(np.array([5, 5, 40_000, 5]), np.array([1.0, 2.0, 4.0, 3.0]))
    assert tree.get_many(np.array([5, 40_000])).tolist() == [3.0, 4.0]
    rng = np.random.default_rng(0)
    for _ in range(200):
        tree.set_many(rng.integers(0, 50_000, 64), rng.random(64) * 1e12)
    tree.set_many(np.arange(50_000), 0.5)
    assert tree.total == 25_000.0


@settings(max_examples=60, deadline=None)
@given(
    capacity=st.integers(1, 300),
    steps=st.lists(
        st.lists(st.tuples(st.integers(0, 299), st.integers(0, 1000)), min_size=1, max_size=20),
        max_size=6,
    ),
    data=st.data(),
)
def test_any_updates_leave_what_a_plain_list_would_hold(capacity, steps, data):
    tree, least, plain = SumSegmentTree(capacity), MinSegmentTree(capacity), [0.0] * capacity
    least.set_many(np.arange(capacity), 0.0)
    for step in steps:
        pairs = [(i % capacity, float(v)) for i, v in step]
        indices, values = (np.array(x) for x in zip(*pairs))
        tree.set_many(indices, values)
        least.set_many(indices, values)
        for i, v in pairs:
            plain[i] = v
    assert tree[:].tolist() == plain
    assert tree.total == sum(plain)
    assert least.min == min(plain)
    if tree.total == 0:
        with pytest.raises(DataError, match="above zero"):
            tree.find_prefixsum_many(np.zeros(3))
        return
    prefix = data.draw(st.floats(0, sum(plain), exclude_max=True))
    naive = int(np.searchsorted(np.cumsum(plain), prefix, side="right"))
    assert tree.find_prefixsum_idx(prefix) == naive


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1e-300, 1e-12, 0.1, 1 / 3, 1.0, 1e9, 1e18]), min_size=1).filter(
        any
    ),
    st.integers(0, 2**32),
)
def test_a_zero_is_never_found_whatever_the_scales(values, seed):
    rng = np.random.default_rng(seed)
    tree = SumSegmentTree(140_000)
    tree.set_many(rng.choice(140_000, len(values), replace=False), np.array(values))
    found = tree.find_prefixsum_many(np.append(rng.random(64) * tree.total, [0.0, tree.total]))
    assert (tree.get_many(found) > 0).all()


@pytest.mark.parametrize("value", [float("nan"), -0.5])
@pytest.mark.parametrize("kind", [SumSegmentTree, MinSegmentTree])
def test_values_that_would_corrupt_are_refused_and_nothing_changes(kind, value):
    tree = kind(100)
    before = tree[:]
    with pytest.raises(DataError, match=r"at position 1 of 2"):
        tree.set_many(np.array([1, 2]), np.array([1.0, value]))
    with pytest.raises(DataError):
        tree[3] = value
    assert np.array_equal(tree[:], before)


def test_infinite_sum_wrong_length_and_wrong_index_are_refused():
    tree = SumSegmentTree(10)
    with pytest.raises(DataError):
        tree[0] = np.inf
    with pytest.raises(DataError, match=r"3 values .* for 2 indices"):
        tree.set_many(np.array([1, 2]), np.ones(3))
    for bad in ([10], [-1]):
        with pytest.raises(IndexError):
            tree.set_many(np.array(bad), np.ones(1))
    with pytest.raises(IndexError, match="integers"):
        tree.set_many(np.array([1.0]), np.ones(1))
    with pytest.raises(IndexError):
        tree[10]
    with pytest.raises(IndexError):
        tree.reduce(4, 4)
    tree.set_many(np.array([], dtype=np.int64), np.array([]))
    with pytest.raises(ValueError, match="positive integer"):
        SumSegmentTree(0)


def test_other_operations():
    tree = SegmentTree(5, max)
    tree[:] = [3.0, -1.0, 4.0, 1.0, -5.0]
    assert tree.reduce() == 4.0
    assert tree.reduce(3) == 1.0
    product = SegmentTree(3, operator.mul)
    product[0], product[1] = 3.0, 5.0
    assert product.reduce() == 15.0
    with pytest.raises(ValueError, match="operation must be"):
        SegmentTree(3, operator.sub)
    with pytest.raises(DataError):
        tree[0] = float("nan")


def test_what_is_known_of_trees_follows_every_change():
    rng = np.random.default_rng(0)
    values = np.zeros(200_000)
    total, least = SumSegmentTree(len(values)), MinSegmentTree(len(values))
    for turn in range(60):
        indices = rng.integers(0, len(values) if turn < 30 else 50, 64)
        numbers = rng.random(64) + 0.1
        values[indices] = numbers
        total.set_many(indices, numbers)
        least.set_many(indices, numbers)
        if turn % 3:
            assert least.min == values[values > 0].min()
            assert np.isclose(total.total, values.sum())
            assert np.isclose(total.reduce(10, 5000), values[10:5000].sum())
            found = total.find_prefixsum_many(rng.random(64) * total.total)
            assert (values[found] > 0).all()
