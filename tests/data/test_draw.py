"""Drawing indices."""

import numpy as np
import pytest

from ding.data.draw import Draw


@pytest.mark.parametrize(
    ("n", "size"),
    [(1, 1), (10, 3), (10, 10), (3000, 500), (5000, 64), (200000, 300), (200000, 512)],
)
def test_distinct(n, size):
    draw = Draw()
    seen = set()
    for _ in range(100):
        index = draw.distinct(n, size)
        assert index.dtype == np.int64
        assert len(set(index.tolist())) == size
        assert 0 <= index.min() <= index.max() < n
        seen.add(tuple(index.tolist()))
    assert len(seen) > 1 or n == 1


def test_every_set_is_as_likely():
    draw = Draw()
    pairs = [tuple(sorted(draw.distinct(4, 2).tolist())) for _ in range(6000)]
    counts = np.unique(pairs, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert np.allclose(counts / 6000, 1 / 6, atol=0.03)


def test_every_set_of_a_large_share_is_as_likely():
    draw = Draw()
    counts = np.bincount(np.concatenate([draw.distinct(40, 10) for _ in range(8000)]), minlength=40)
    assert np.allclose(counts / 8000, 10 / 40, atol=0.03)
    firsts = np.bincount([draw.distinct(40, 10)[0] for _ in range(8000)], minlength=40)
    assert np.allclose(firsts / 8000, 1 / 40, atol=0.01)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (10, 7), (10, 10), (5000, 64), (200000, 512)])
def test_shares(n, size):
    draw = Draw()
    for _ in range(100):
        index = draw.shares(n, size)
        assert index.dtype == np.int64
        assert 0 <= index.min() <= index.max() < n
        # Spread over the circle: from one to the next no more than two parts, in all once around.
        steps = (np.roll(index, -1) - index) % n if size > 1 else np.array([n])
        assert steps.min() > 0
        assert steps.max() <= 2 * -(-n // size)
        assert steps.sum() == n


def test_each_number_is_as_likely_in_shares():
    draw = Draw()
    counts = np.bincount(np.concatenate([draw.shares(10, 7) for _ in range(8000)]), minlength=10)
    assert np.allclose(counts / 8000, 7 / 10, atol=0.03)


def test_a_range_that_changes():
    draw = Draw()
    for n in [*range(100, 140), *[140] * 40, *range(140, 100, -1)]:
        assert draw.distinct(n, 10).max() < n
        assert draw.shares(n, 10).max() < n


def test_state():
    draw, other = Draw(), Draw()
    for _ in range(7):
        draw.shares(5000, 8)
    other.load_state_dict(draw.state_dict())
    for _ in range(100):
        assert (draw.shares(5000, 8) == other.shares(5000, 8)).all()
        assert (draw.distinct(5000, 8) == other.distinct(5000, 8)).all()
    assert (draw.spread(3, 1.0) == other.spread(3, 1.0)).all()
    assert (draw.any(9, 5) == other.any(9, 5)).all()
