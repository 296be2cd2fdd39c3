"""Drawing indices, and the random generator that does it."""

import json

import numpy as np

from ding.utils.types import SavedState, State

#: Most batches, and numbers, that are drawn at once.
_MOST_AHEAD = 32
_MOST_NUMBERS = 1 << 14


class Draw:
    """Random indices from a separate generator.

    It is seeded from numpy's global generator, which `set_pkg_seed` seeds.
    """

    def __init__(self) -> None:
        # A generator per buffer: draws of other parts of the program do not shift its batches.
        self.rng = np.random.default_rng(np.random.randint(0, 2**31 - 1, size=4))
        self._steps = np.arange(0.0)
        self._last_seen = np.empty(0, np.int32)
        self._way, self._n, self._at = "", 0, 0
        self._ahead = np.empty((0, 0), np.int64)

    def distinct(self, n: int, size: int) -> np.ndarray:
        """`size` of the integers ``[0, n)``, no one twice, each set of them as likely.

        Returns:
            int64 [size]; not to be changed.
        """
        # Beyond that most sets would have a number twice (the birthday problem) and be drawn in
        # vain.
        if size * size > n:
            few = size * 4 <= n
            return self._first_seen(n, size) if few else self.rng.choice(n, size, replace=False)
        return self._next("distinct", n, size)

    def shares(self, n: int, size: int) -> np.ndarray:
        """One number of each of `size` equal parts of a circle of the integers ``[0, n)``.

        None occurs twice, and each is as likely. Which part begins where is drawn as well.

        Returns:
            int64 [size], ascending but for one place; not to be changed.
        """
        return self._next("shares", n, size)

    def _next(self, way: str, n: int, size: int) -> np.ndarray:
        """The next batch of several drawn at once: of more and more, while all is as before."""
        # Drawing without replacement was a third of the time of a sample; several batches at once
        # cost little more than one. A buffer that still grows has another range at each call, so
        # that only those that stay get more.
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
            # Most batches have no number twice. To leave the others out is several times faster
            # than numpy's drawing without replacement, and as uniform.
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
        """Numbers drawn one after the other, without those that came before."""
        if len(self._last_seen) < n:
            self._last_seen = np.empty(n, np.int32)
        drawn = np.empty(0, np.int64)
        while len(drawn) < size:
            # Some more than needed: of `size` drawn about size² / 2n occur twice.
            more = self.any(n, size - len(drawn) + size * size // (2 * n) + 8)
            drawn = np.concatenate([drawn, more]) if len(drawn) else more
            # Each number keeps its last place alone. Backwards that is its first one, so that what
            # is left, from the end, is a drawing without replacement.
            places = np.arange(len(drawn), dtype=np.int32)
            self._last_seen[drawn] = places
            drawn = drawn[self._last_seen.take(drawn) == places]
        return drawn[len(drawn) - size :]

    def any(self, n: int, size: int) -> np.ndarray:
        """`size` of the integers ``[0, n)``, the same one possibly again; int64 [size]."""
        return (self.rng.random(size) * n).astype(np.int64)

    def spread(self, size: int, total: float) -> np.ndarray:
        """One number from each of `size` equal parts of ``[0, total)``, ascending; float64."""
        points = self.rng.random(size)
        if len(self._steps) != size:
            self._steps = np.arange(size, dtype=np.float64)
        points += self._steps
        points *= total / max(size, 1)
        return points

    def state_dict(self) -> State:
        """Continues with the same draws; the generator as text, as its integers are large."""
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
