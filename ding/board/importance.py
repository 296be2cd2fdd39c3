"""How much each key of the configs of runs, such as trials of a sweep, matters for a result."""

import ast
from collections.abc import Mapping, Sequence

import numpy as np

#: Fewer runs say nothing.
LEAST_RUNS = 4
#: Keys that differ between any two runs, and mean nothing.
_NAMES = ("exp_name", "seed", "cfg_type")


def differing(configs: Sequence[Mapping[str, str]]) -> list[str]:
    """Keys whose values differ between configs, without those that only name a run."""
    keys = dict.fromkeys(key for config in configs for key in config)
    return [
        key
        for key in keys
        if key.rpartition(".")[2] not in _NAMES
        if len({config.get(key) for config in configs}) > 1
    ]


def importance(values: Sequence[str | None], results: Sequence[float]) -> float:
    """The share of the results' ranks, 0 to 1, that a key alone explains.

    For numbers it is that of the best parabola over the key's ranks, so that a key that is best in
    the middle counts, too; for other values that of their groups' means. It is the adjusted R²:
    about 0 for a key without effect, however few runs or many values there are. Keys that act only
    together show little.

    Args:
        values: Of the key in each config, as Python text; ``None`` where it is missing.
        results: Of the runs.
    """
    count = len(results)
    if count < LEAST_RUNS:
        return 0.0
    ranks = _ranks(np.asarray(results, dtype=float))
    total = float(np.sum((ranks - ranks.mean()) ** 2))
    numbers = [_number(value) for value in values]
    known = [number for number in numbers if number is not None]
    distinct = len(set(values))
    if len(known) == count and distinct > 2:
        x = _ranks(np.asarray(known))
        fitted = np.polyval(np.polyfit(x - x.mean(), ranks, 2), x - x.mean())
        used = 3
    else:
        groups = np.unique([str(value) for value in values], return_inverse=True)[1]
        fitted = (np.bincount(groups, ranks) / np.bincount(groups))[groups]
        used = distinct
    if total == 0 or count <= used:
        return 0.0
    left = float(np.sum((ranks - fitted) ** 2)) / (count - used)
    return max(0.0, 1.0 - left / (total / (count - 1)))


def _number(value: str | None) -> float | None:
    try:
        found = ast.literal_eval(value or "")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if is_number and abs(found) < 1e300 else None


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0 on; equal values share the mean of theirs."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts + 1) / 2)[groups]
