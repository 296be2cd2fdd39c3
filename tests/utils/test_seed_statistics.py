"""Statistics over seeds, against cases that are worked out by hand."""

import numpy as np

from ding.utils.seed_statistics import (
    averaged,
    bootstrap_interval,
    final_return,
    interquartile_mean,
)


def test_interquartile_mean_leaves_out_the_outer_quarters():
    assert interquartile_mean(np.array([100.0, 1.0, 2.0, -50.0])) == 1.5
    assert interquartile_mean(np.array([1.0, 2.0, 6.0])) == 3
    assert interquartile_mean(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [2, 3]


def test_interval_holds_the_mean_and_shrinks_with_the_seeds():
    values = np.random.default_rng(1).normal(10, 2, size=(64, 3))
    widths = []
    for count in (4, 16, 64):
        low, high = bootstrap_interval(values[:count])
        assert (low <= interquartile_mean(values[:count])).all()
        assert (interquartile_mean(values[:count]) <= high).all()
        widths.append((high - low).mean())
    assert widths == sorted(widths, reverse=True)
    assert np.array_equal(bootstrap_interval(values[:4]), bootstrap_interval(values[:4]))


def test_final_return_is_the_mean_of_the_last_five_or_what_converged():
    values = np.array([9.0, 0.0, 0.0, 0.0, 0.0, 10.0])
    assert final_return(values, converged=False) == 2
    assert final_return(values, converged=True) == 10


def test_a_converged_curve_is_carried_on():
    short, long = np.array([[0, 0], [10, 10.0]]), np.array([[0, 0], [20, 20.0]])
    x, mean, _, _ = averaged([short, long], [True, False])
    assert (x[-1], mean[-1]) == (20, 15)
    x, mean, _, _ = averaged([short, long], [False, False])
    assert (x[-1], mean[-1]) == (10, 10)
