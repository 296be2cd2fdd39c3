"""Drawing indices, and the random generators that do it."""

import json
from typing import Any

import numpy as np


def new_generator() -> np.random.Generator:
    """A generator of one's own, seeded from numpy's global one (which `set_pkg_seed` seeds)."""
    return np.random.default_rng(np.random.randint(0, 2**31 - 1, size=4))


def generator_state(rng: np.random.Generator) -> str:
    """The generator's state as text: its integers are too large for most file formats."""
    return json.dumps(rng.bit_generator.state)


def set_generator_state(rng: np.random.Generator, state: str) -> None:
    """Put back what :func:`generator_state` gave."""
    rng.bit_generator.state = json.loads(state)


def draw(rng: np.random.Generator, n: int, size: int, replace: bool) -> np.ndarray:
    """`size` of the integers ``[0, n)``, uniformly; int64 [size].

    Without replacement `size` must be at most `n`.
    """
    if replace or size <= 1:
        return (rng.random(size) * n).astype(np.int64)
    if size * size <= n:
        # Draw with replacement until all differ (most often at once): several times faster than
        # numpy's sampling without replacement, and as uniform.
        while True:
            index = (rng.random(size) * n).astype(np.int64)
            if _all_differ(index):
                return index
    return rng.choice(n, size, replace=False)


def _all_differ(index: np.ndarray) -> bool:
    if len(index) <= 64:
        return len(set(index.tolist())) == len(index)
    ordered = np.sort(index)
    return bool((ordered[1:] != ordered[:-1]).all())


def spread(rng: np.random.Generator, size: int, total: Any) -> np.ndarray:
    """One number from each of `size` equal parts of ``[0, total)``, ascending; float64 [size]."""
    points = rng.random(size)
    points += np.arange(size)
    points *= total / size
    return points
