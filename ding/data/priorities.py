"""Proportional prioritisation (Schaul et al., 2016, https://arxiv.org/abs/1511.05952)."""

import numpy as np

from ding.data.draw import Draw
from ding.data.ring import Ring
from ding.utils.errors import DataError
from ding.utils.segment_tree import MinSegmentTree, SumSegmentTree
from ding.utils.types import SavedState, State, Tree

#: Minimum priority, so that every item can be drawn.
_LEAST = 1e-5


class Priorities:
    """Priorities of the rows of a ring; draws slots in proportion to them.

    As long as all priorities are equal there are no trees, and `Draw.shares` selects the slots.

    Args:
        ring: The ring whose rows have the priorities.
        alpha: Exponent of priorities: 0 samples uniformly, 1 in proportion.
    """

    def __init__(self, ring: Ring, alpha: float) -> None:
        self._ring = ring
        self._alpha = alpha
        self.clear()

    @property
    def alpha(self) -> float:
        """Exponent of priorities; a change applies to all stored rows."""
        return self._alpha

    @alpha.setter
    def alpha(self, alpha: float) -> None:
        self._alpha = alpha
        if self._sum is not None:
            self._plant()

    def clear(self) -> None:
        self.values = np.ones(self._ring.capacity)
        self.highest = 1.0
        self._sum: SumSegmentTree | None = None
        self._min: MinSegmentTree | None = None

    # ------------------------------------------------------------------ changes

    def begin(self, slots: np.ndarray | range) -> None:
        """Give rows that were written to these slots the highest priority so far."""
        if self._sum is not None:
            slots = np.asarray(slots, np.int64)
            self.values[slots] = self.highest
            self._put(slots, self.values[slots])

    def drop(self, slots: np.ndarray) -> None:
        """Remove slots that are now empty."""
        if self._sum is not None and self._min is not None:
            self._sum.set_many(slots, 0.0)
            # The smallest priority determines the largest weight; it must be that of a stored row.
            self._min.set_many(slots, np.inf)

    def update(self, slots: np.ndarray, values: np.ndarray) -> None:
        """Set priorities of rows; for a slot that occurs twice the last value counts."""
        if not len(slots):
            return
        self.values[slots] = values
        self.highest = max(self.highest, float(values[values.argmax()]))
        if self._sum is None:
            self._plant()
        else:
            self._put(slots, values)

    def _plant(self) -> None:
        capacity = self._ring.capacity
        self._sum, self._min = SumSegmentTree(capacity), MinSegmentTree(capacity)
        slots = self._ring.slots()
        self._put(slots, self.values[slots])

    def _put(self, slots: np.ndarray, values: np.ndarray) -> None:
        assert self._sum is not None
        assert self._min is not None
        # `checked_priorities` has checked the values: a second check took as long as drawing.
        masses = self._masses(values)
        self._sum.set_trusted(slots, masses)
        self._min.set_trusted(slots, masses)

    def _masses(self, values: np.ndarray) -> np.ndarray:
        return np.maximum(values, _LEAST) ** self._alpha

    # ------------------------------------------------------------------ draws

    @property
    def all_equal(self) -> bool:
        """Whether all priorities are equal.

        If so, `draw` returns no slot twice, unless `size` exceeds the number of rows.
        """
        return self._sum is None

    def draw(self, source: Draw, size: int, among: np.ndarray | None = None) -> np.ndarray:
        """Draw slots that hold rows, int64 [size], stratified by priority.

        Args:
            source: Source of random numbers.
            size: Number of slots; there must be at least one row.
            among: Draw only from these slots.
        """
        if self._sum is None:
            return self._draw_uniform(source, size, among)
        if among is None:
            return self._sum.find_prefixsum_many(source.spread(size, self._sum.total))
        running = self._masses(self.values[among]).cumsum()
        at = running.searchsorted(source.spread(size, running[-1]), side="right")
        # Rounding may make the last point equal to the total, which is past the last slot.
        return among[np.minimum(at, len(among) - 1)]

    def weights(
        self, slots: np.ndarray, beta: float, among: np.ndarray | None = None
    ) -> np.ndarray:
        """Importance weights of drawn slots, divided by the largest possible weight; float32.

        Args:
            beta: Exponent of the correction: 0 for none, 1 for a full one.
            among: The slots that were drawn from, if not all.
        """
        if self._sum is None or self._min is None:
            return np.ones(len(slots), np.float32)
        weights = self._sum.get_trusted(slots)
        # (N P(i))**-beta divided by its maximum (section 3.4): N and the sum of priorities cancel
        # out, which leaves (p_i / p_min)**-beta.
        weights /= self._min.min if among is None else self._masses(self.values[among]).min()
        return (weights**-beta).astype(np.float32)

    def _draw_uniform(self, source: Draw, size: int, among: np.ndarray | None) -> np.ndarray:
        n = self._ring.count if among is None else len(among)
        # Stratified as with unequal priorities. `shares` need not search for duplicates, which
        # halves the time for a batch of 512.
        at = source.shares(n, size) if 0 < size <= n else source.any(n, size)
        return self._ring.nth(at).copy() if among is None else among[at]

    def of(self, slots: np.ndarray) -> np.ndarray:
        """Priorities of rows, float32."""
        if self._sum is None:
            return np.ones(len(slots), np.float32)
        return self.values.take(slots).astype(np.float32)

    # ------------------------------------------------------------------ state

    def state_dict(self) -> State:
        """Priorities of all rows, the oldest first."""
        return {
            "values": self.values[self._ring.by_age()],
            "highest": self.highest,
            "equal": self._sum is None,
        }

    def load_state_dict(self, state: SavedState, slots: np.ndarray) -> None:
        """Restore the priorities of the state's last rows, which are in these slots."""
        self.clear()
        self.values[slots] = state["values"][len(state["values"]) - len(slots) :]
        self.highest = float(state["highest"])
        if not state["equal"]:
            self._plant()


def checked_priorities(values: Tree, n: int) -> np.ndarray:
    """Priorities as float64 [n].

    Raises:
        DataError: A priority is NaN, infinite or negative, or their number is wrong.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        array = np.asarray(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise DataError(f"priorities must be {n} numbers, got {values!r}: {error}") from error
    if len(array) != n:
        raise DataError(f"{len(array)} priorities came for {n} items: one each is needed")
    # For few numbers these are several times faster than `min` and `max`; both return NaN first.
    if n and not (array[array.argmin()] >= 0 and array[array.argmax()] < np.inf):
        bad = int(np.flatnonzero(~((array >= 0) & (array < np.inf)))[0])
        raise DataError(
            f"priority {bad} of {n} is {array[bad]}: priorities must be finite and not negative; "
            f"look for NaN or infinity in the loss or the rewards"
        )
    return array
