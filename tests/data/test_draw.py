"""Drawing indices."""

import numpy as np
import pytest

from ding.data.draw import draw, generator_state, new_generator, set_generator_state


@pytest.mark.parametrize(("n", "size"), [(1, 1), (10, 3), (10, 10), (5000, 64), (200000, 300)])
def test_without_replacement_all_differ(n, size):
    rng = np.random.default_rng(0)
    for _ in range(20):
        index = draw(rng, n, size, replace=False)
        assert index.dtype == np.int64
        assert len(set(index.tolist())) == size
        assert 0 <= index.min() <= index.max() < n


def test_every_subset_is_as_likely():
    rng = np.random.default_rng(0)
    pairs = [tuple(sorted(draw(rng, 4, 2, replace=False).tolist())) for _ in range(6000)]
    counts = np.unique(pairs, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert np.allclose(counts / 6000, 1 / 6, atol=0.02)


def test_state():
    rng = new_generator()
    state = generator_state(rng)
    first = rng.random(3)
    other = new_generator()
    set_generator_state(other, state)
    assert (other.random(3) == first).all()
