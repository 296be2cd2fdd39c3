"""Statistics of returns over few seeds and several environments.

They follow Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(2021): interquartile means instead of means or medians, and bootstrap intervals, which show how
little a few seeds say. With several environments ("tasks") the bootstrap is stratified: it draws
runs of each task among the runs of that task.

Scores of one algorithm are a list with an array for each task, whose last axis is over the runs.
Tasks may have different numbers of runs; each run has the same weight, except where a statistic is
a mean over tasks.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ding.utils.run_files import LAST

__all__ = [
    "averaged",
    "bootstrap_interval",
    "final_return",
    "interquartile_mean",
    "iqm_of_scores",
    "mean_of_scores",
    "median_of_scores",
    "optimality_gap",
    "performance_profile",
    "probability_of_improvement",
    "stratified_interval",
]

_POINTS = 101
_BOOTSTRAPS = 2000
_CONFIDENCE = 0.95

#: ``[..., runs]`` for each task.
Scores = Sequence[np.ndarray]


def interquartile_mean(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """The mean of the middle half along an axis; of fewer than four values the mean of all."""
    values = np.sort(values, axis=axis)
    cut = int(0.25 * values.shape[axis])
    middle = values.take(range(cut, values.shape[axis] - cut), axis=axis)
    return np.asarray(middle.mean(axis=axis))


def final_return(values: np.ndarray, converged: bool) -> float:
    """The return at the end of a run.

    Args:
        values: Mean returns of its evaluations, ``[evaluations]``, in their order.
        converged: Whether it ended because an evaluation reached its goal.

    Returns:
        The mean of the last five evaluations; of a run that has converged the last one, since it
        would have kept its return if it had continued.
    """
    return float(np.mean(values[-1 if converged else -LAST :]))


def bootstrap_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % percentile interval of the interquartile mean over runs.

    Args:
        values: ``[runs, points]``; a run is drawn with all of its points.

    Returns:
        Its ends, ``[points]`` each; the same for the same values.
    """
    chosen = np.random.default_rng(0).integers(len(values), size=(_BOOTSTRAPS, len(values)))
    return _ends(interquartile_mean(values[chosen], axis=1))


def averaged(
    curves: Sequence[np.ndarray], converged: Sequence[bool]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The interquartile mean of curves over a common axis, with its bootstrap interval.

    The axis ends where the first curve does; one that has converged keeps its last value until
    then, since it would not have become worse by being stopped.

    Args:
        curves: ``[points, 2]`` each, x and value, by x.
        converged: For each curve whether its run has converged.

    Returns:
        x, mean, and the ends of the interval, ``[101]`` each.
    """
    start = max(points[0, 0] for points in curves)
    ends = [points[-1, 0] for points, is_over in zip(curves, converged, strict=True) if not is_over]
    end = min(ends) if ends else max(points[-1, 0] for points in curves)
    x = np.linspace(start, max(start, end), _POINTS)
    values = np.stack([np.interp(x, points[:, 0], points[:, 1]) for points in curves])
    mean = interquartile_mean(values)
    low, high = bootstrap_interval(values) if len(curves) > 1 else (mean, mean)
    return x, mean, low, high


def iqm_of_scores(scores: Scores) -> np.ndarray:
    """Interquartile mean of all runs of all tasks together, ``[...]``."""
    return interquartile_mean(np.concatenate(scores, axis=-1), axis=-1)


def mean_of_scores(scores: Scores) -> np.ndarray:
    """Mean over tasks of the mean over runs, ``[...]``."""
    return np.asarray(np.mean([task.mean(axis=-1) for task in scores], axis=0))


def median_of_scores(scores: Scores) -> np.ndarray:
    """Median over tasks of the mean over runs, ``[...]``."""
    return np.asarray(np.median([task.mean(axis=-1) for task in scores], axis=0))


def optimality_gap(scores: Scores, goal: float = 1.0) -> np.ndarray:
    """How far scores are below a goal, on average over tasks; scores above it count as the goal.

    Returns:
        ``[...]``; smaller is better, 0 is the best.
    """
    gaps = [np.maximum(goal - task, 0).mean(axis=-1) for task in scores]
    return np.asarray(np.mean(gaps, axis=0))


def performance_profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """The share of runs with a score above each threshold, on average over tasks.

    Args:
        thresholds: ``[thresholds]``.

    Returns:
        ``[..., thresholds]``, between 0 and 1.
    """
    above = [(task[..., None] > thresholds).mean(axis=-2) for task in scores]
    return np.asarray(np.mean(above, axis=0))


def probability_of_improvement(first: Scores, second: Scores) -> np.ndarray:
    """How likely a run of one algorithm beats one of another, on average over the tasks of both.

    Within a task it is the Mann-Whitney statistic: the share of pairs of runs in which the first
    has the higher score; a tie counts as half.

    Args:
        first: Scores of the one.
        second: Of the other, in the same tasks.

    Returns:
        ``[...]``; 0.5 if neither is better.
    """
    shares = []
    for one, other in zip(first, second, strict=True):
        ahead = np.sign(one[..., :, None] - other[..., None, :])
        shares.append((1 + ahead.mean(axis=(-2, -1))) / 2)
    return np.asarray(np.mean(shares, axis=0))


def stratified_interval(
    statistic: Callable[..., np.ndarray], *algorithms: Scores
) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % percentile interval of a statistic by the stratified bootstrap.

    Args:
        statistic: Takes the scores of each algorithm, with one more axis in front.
        algorithms: Scores, ``[runs]`` for each task.

    Returns:
        Its ends; the same for the same scores.
    """
    random = np.random.default_rng(0)

    def drawn(runs: np.ndarray) -> np.ndarray:
        return runs[random.integers(len(runs), size=(_BOOTSTRAPS, len(runs)))]

    return _ends(statistic(*([drawn(task) for task in scores] for scores in algorithms)))


def _ends(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return low, high
