"""Statistics of returns over few seeds.

They follow Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(2021): interquartile means instead of means or medians, and bootstrap intervals, which show the
uncertainty of results from few seeds.
"""

from collections.abc import Sequence

import numpy as np

from ding.utils.run_files import LAST

__all__ = ["averaged", "bootstrap_interval", "final_return", "interquartile_mean"]

_POINTS = 101
_BOOTSTRAPS = 2000
_CONFIDENCE = 0.95


def interquartile_mean(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """The mean of the middle half along an axis; for fewer than four values, the mean of all."""
    values = np.sort(values, axis=axis)
    cut = int(0.25 * values.shape[axis])
    middle = values.take(range(cut, values.shape[axis] - cut), axis=axis)
    return np.asarray(middle.mean(axis=axis))


def final_return(values: Sequence[float] | np.ndarray, converged: bool) -> float:
    """The return at the end of a run.

    Args:
        values: Mean returns of its evaluations, ``[evaluations]``, in order.
        converged: Whether the run ended because an evaluation reached its goal.

    Returns:
        The mean of the last five evaluations; for a run that has converged, the last one, because
        the run is assumed to keep its return.
    """
    return float(np.mean(values[-1 if converged else -LAST :]))


def bootstrap_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % percentile interval of the interquartile mean over runs.

    Args:
        values: ``[runs, points]``; whole runs are resampled.

    Returns:
        The ends of the interval, ``[points]`` each; deterministic.
    """
    chosen = np.random.default_rng(0).integers(len(values), size=(_BOOTSTRAPS, len(values)))
    return _ends(interquartile_mean(values[chosen], axis=1))


def averaged(
    curves: Sequence[np.ndarray], converged: Sequence[bool]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The interquartile mean of curves over a common axis, with its bootstrap interval.

    The axis ends where the first curve of a run that has not converged ends. A converged run is
    assumed to keep its last value until then.

    Args:
        curves: ``[points, 2]`` each, x and value, sorted by x.
        converged: Whether the run of each curve has converged.

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


def _ends(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return low, high
