"""Whom to meet: prioritised fictitious self-play (Vinyals et al., 2019)."""

from collections.abc import Callable, Mapping

import numpy as np

_WEIGHTINGS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "squared": lambda win_rates: (1 - win_rates) ** 2,
    "linear": lambda win_rates: 1 - win_rates,
    "linear_capped": lambda win_rates: np.minimum(0.5, 1 - win_rates),
    "variance": lambda win_rates: win_rates * (1 - win_rates),
}


def pfsp(win_rates: np.ndarray, weighting: str) -> np.ndarray:
    """How likely to meet each opponent.

    Args:
        win_rates: Against each, float [N] in ``[0, 1]``.
        weighting: ``'squared'``, ``'linear'`` and ``'linear_capped'`` prefer the hard ones,
            ``'variance'`` those of one's own strength.

    Returns:
        float64 [N], its sum is 1; uniform where no opponent has any weight.
    """
    if weighting not in _WEIGHTINGS:
        raise ValueError(f"weighting is one of {', '.join(_WEIGHTINGS)}, got {weighting!r}")
    win_rates = np.asarray(win_rates, dtype=np.float64)
    if win_rates.ndim != 1 or not len(win_rates) or not np.all((win_rates >= 0) & (win_rates <= 1)):
        raise ValueError(f"win_rates is a list of numbers in [0, 1], not empty; got {win_rates}")
    weights = _WEIGHTINGS[weighting](win_rates)
    total = weights.sum()
    if total < 1e-10:
        return np.full(len(win_rates), 1 / len(win_rates))
    return weights / total
