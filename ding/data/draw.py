"""Random indices for sampling, with their own random generator."""

import json

import numpy as np

from ding.utils.types import SavedState, State

#: Maximum number of batches, and of indices, that are drawn in advance.
_MOST_AHEAD = 32
_MOST_NUMBERS = 1 << 14


class Draw:
    """Random indices from a separate generator.

    The generator is seeded from numpy's global generator, which `set_pkg_seed` seeds.
    """

    def __init__(self) -> None:
        # One generator per buffer: random numbers drawn elsewhere do not change its batches.
        self.rng = np.random.default_rng(np.random.randint(0, 2**31 - 1, size=4))
        self._steps = np.arange(0.0)
        self._last_seen = np.empty(0, np.int32)
        self._way, self._n, self._at = "", 0, 0
        self._ahead = np.empty((0, 0), np.int64)

    def distinct(self, n: int, size: int) -> np.ndarray:
        """`size` integers of ``[0, n)`` without replacement, uniform over all sets.

        Returns:
            int64 [size]; read-only.
        """
        # For larger batches, rejection sampling would discard most sets: they contain a number
        # twice (the birthday problem).
        if size * size > n:
            few = size * 4 <= n
            return self._first_seen(n, size) if few else self.rng.choice(n, size, replace=False)
        return self._next("distinct", n, size)

    def shares(self, n: int, size: int) -> np.ndarray:
        """Stratified sample: one integer from each of `size` equal parts of the circle ``[0, n)``.

        No integer occurs twice, and all are equally likely. The circle is rotated at random.

        Returns:
            int64 [size], ascending except at one place; read-only.
        """
        return self._next("shares", n, size)

    def _next(self, way: str, n: int, size: int) -> np.ndarray:
        """The next batch. While the arguments stay the same, more and more are drawn in advance."""
        # Drawing without replacement took a third of a sample's time; several batches at once cost
        # little more than one. The range of a growing buffer changes with each call, so batches are
        # drawn in advance only for an unchanged range.
        same = n == self._n and size == self._ahead.shape[1] and way == self._way
        if not same or self._at == len(self._ahead):
            most = min(_MOST_AHEAD, _MOST_NUMBERS // max(size, 1) + 1)
            batches = min(2 * len(self._ahead) + 1, most) if same else 1
            draw = self._draw_sets if way == "distinct" else self._draw_shares
            self._ahead = draw(n, size, batches)
            self._way, self._n, self._at = way, n, 0
        self._at += 1
        return self._ahead[self._at - 1]

    def _draw_sets(self, n: int, size: int, batches: int) -> np.ndarray:
        while True:
            index = (self.rng.random((batches, size)) * n).astype(np.int64)
            # Rejection sampling: most batches contain no number twice. It is several times faster
            # than numpy's sampling without replacement, and equally uniform.
            ordered = np.sort(index, axis=1)
            index = index[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)]
            if len(index):
                return index

    def _draw_shares(self, n: int, size: int, batches: int) -> np.ndarray:
        edges = np.arange(size + 1) * n // size
        chance = self.rng.random((batches, size + 1))
        index = (chance[:, :-1] * (edges[1:] - edges[:-1])).astype(np.int64)
        index += edges[:-1]
        index += (chance[:, -1:] * n).astype(np.int64)
        return np.subtract(index, n, out=index, where=index >= n)

    def _first_seen(self, n: int, size: int) -> np.ndarray:
        """Sample with replacement, and keep only the first occurrence of each number."""
        if len(self._last_seen) < n:
            self._last_seen = np.empty(n, np.int32)
        drawn = np.empty(0, np.int64)
        while len(drawn) < size:
            # Some more than needed: of `size` numbers about size² / 2n are duplicates.
            more = self.any(n, size - len(drawn) + size * size // (2 * n) + 8)
            drawn = np.concatenate([drawn, more]) if len(drawn) else more
            # Keep only the last occurrence of each number. Read backwards it is the first one, so
            # that the rest, from the end, is a sample without replacement.
            places = np.arange(len(drawn), dtype=np.int32)
            self._last_seen[drawn] = places
            drawn = drawn[self._last_seen.take(drawn) == places]
        return drawn[len(drawn) - size :]

    def any(self, n: int, size: int) -> np.ndarray:
        """`size` integers of ``[0, n)`` with replacement; int64 [size]."""
        return (self.rng.random(size) * n).astype(np.int64)

    def spread(self, size: int, total: float) -> np.ndarray:
        """Stratified sample of ``[0, total)``: one number per equal part, ascending; float64."""
        points = self.rng.random(size)
        if len(self._steps) != size:
            self._steps = np.arange(size, dtype=np.float64)
        points += self._steps
        points *= total / max(size, 1)
        return points

    def state_dict(self) -> State:
        """The generator, as text because its integers are large, and batches drawn in advance."""
        return {
            "generator": json.dumps(self.rng.bit_generator.state),
            "way": self._way,
            "n": self._n,
            "ahead": self._ahead.copy(),
            "at": self._at,
        }

    def load_state_dict(self, state: SavedState) -> None:
        self.rng.bit_generator.state = json.loads(state["generator"])
        self._way = state["way"]
        self._n, self._at = int(state["n"]), int(state["at"])
        self._ahead = np.array(state["ahead"], np.int64)
