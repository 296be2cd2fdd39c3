"""Statistics over seeds, against cases that are worked out by hand."""

import numpy as np
import pytest

from ding.utils.seed_statistics import (
    averaged,
    bootstrap_interval,
    final_return,
    interquartile_mean,
    iqm_of_scores,
    mean_of_scores,
    median_of_scores,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    stratified_interval,
)

#: Two tasks, of four runs and of two.
SCORES = [np.array([0.0, 0.5, 1.0, 1.5]), np.array([0.2, 0.4])]


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


def test_aggregates_over_tasks():
    # Sorted: 0 .2 .4 .5 1 1.5; a quarter of six runs is one at either end.
    assert iqm_of_scores(SCORES) == pytest.approx((0.2 + 0.4 + 0.5 + 1) / 4)
    assert mean_of_scores(SCORES) == pytest.approx((0.75 + 0.3) / 2)
    assert median_of_scores([*SCORES, np.array([7.0])]) == pytest.approx(0.75)


def test_optimality_gap_counts_scores_above_the_goal_as_the_goal():
    # Task means of what lacks to 1: (1 + .5 + 0 + 0) / 4 and (.8 + .6) / 2.
    assert optimality_gap(SCORES) == pytest.approx((0.375 + 0.7) / 2)
    assert optimality_gap([np.array([3.0])], goal=4) == 1


def test_performance_profile_is_the_share_above_each_threshold():
    profile = performance_profile(SCORES, np.array([-1, 0, 0.3, 1.5]))
    assert profile.tolist() == [1, (3 / 4 + 1) / 2, (3 / 4 + 1 / 2) / 2, 0]


def test_probability_of_improvement_counts_pairs_and_half_of_ties():
    first, second = [np.array([1.0, 2.0])], [np.array([1.0, 0.0])]
    assert probability_of_improvement(first, second) == 3.5 / 4
    assert probability_of_improvement(second, first) == 0.5 / 4
    assert probability_of_improvement(SCORES, SCORES) == 0.5
    # The mean over tasks, each with its pairs.
    two = probability_of_improvement([*first, np.zeros(3)], [*second, np.ones(1)])
    assert two == 3.5 / 8


def test_bootstrap_is_stratified():
    """Runs are drawn within their tasks: constant tasks leave nothing to chance, though they
    differ from each other."""
    low, high = stratified_interval(mean_of_scores, [np.zeros(5), np.full(3, 10.0)])
    assert (low, high) == (5, 5)
    low, high = stratified_interval(iqm_of_scores, SCORES)
    assert low < iqm_of_scores(SCORES) < high
    profile = stratified_interval(lambda one: performance_profile(one, np.zeros(4)), SCORES)
    assert [end.shape for end in profile] == [(4,), (4,)]


def test_interval_of_two_algorithms_draws_the_runs_of_both():
    random = np.random.default_rng(3)
    first, second = ([random.normal(mean, 1, 10)] for mean in (0.3, 0))
    low, high = stratified_interval(probability_of_improvement, first, second)
    assert low < probability_of_improvement(first, second) < high
    # A coin that falls heads in half of four runs: drawn means lie between 0 and 1.
    ends = stratified_interval(mean_of_scores, [np.array([0.0, 0.0, 1.0, 1.0])])
    assert ends == (0, 1)
