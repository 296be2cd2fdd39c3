"""Proportional prioritisation (Schaul et al., 2016, https://arxiv.org/abs/1511.05952)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.data.draw import Draw
from ding.utils.errors import DataError
from ding.utils.segment_tree import MinSegmentTree, SumSegmentTree

#: Nothing in the buffer is so unimportant that it is never seen again.
_LEAST = 1e-5


class Slots:
    """Which slots of a ring hold items.

    Args:
        capacity: Number of slots.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.clear()

    def clear(self) -> None:
        self.occupied = np.zeros(self.capacity, bool)
        self.count = 0
        #: Whether others are there than the newest `count`.
        self.has_gaps = False
        self._prefix_only = True
        self._slots: np.ndarray | None = None

    def occupy(self, start: int, n: int) -> None:
        """Fill n slots from `start` on, around the end."""
        if self.count == self.capacity:
            return
        end = start + n
        for first, stop in ((start, min(end, self.capacity)), (0, end - self.capacity)):
            fresh = stop - first - int(np.count_nonzero(self.occupied[first:stop]))
            if first < stop and fresh:
                self._prefix_only = self._prefix_only and first <= self.count
                self.occupied[first:stop] = True
                self.count += fresh
                self._slots = None
        if self.count == self.capacity:
            self._prefix_only, self.has_gaps = True, False

    def vacate(self, slots: np.ndarray, oldest: bool = False) -> None:
        """Empty occupied slots (each named once); `oldest` if they are those."""
        if not len(slots):
            return
        self.occupied[slots] = False
        self.count -= len(slots)
        self._prefix_only, self._slots = self.count == 0, None
        self.has_gaps = self.count > 0 and (self.has_gaps or not oldest)

    def slots(self) -> np.ndarray:
        """Occupied slots, ascending."""
        if self._slots is None:
            self._slots = np.flatnonzero(self.occupied)
        return self._slots

    def state_dict(self) -> dict[str, Any]:
        return {"occupied": self.occupied.copy()}

    def load_state_dict(self, state: Mapping[str, Any], order: np.ndarray, head: int) -> None:
        """Put back a state, slot ``order[i]`` of it at slot i; the next item goes to `head`."""
        self.clear()
        n = len(order)
        self.occupied[:n] = state["occupied"][order]
        self.count = int(np.count_nonzero(self.occupied))
        self._prefix_only = bool(self.occupied[: self.count].all())
        newest = (head - 1 - np.arange(self.count)) % self.capacity
        self.has_gaps = not self.occupied[newest].all()


class Priorities(Slots):
    """Priorities of slots, of which some are occupied; draws slots in proportion to them.

    As long as all priorities are equal no tree is kept: shares of slots are then drawn from.

    Args:
        capacity: Number of slots.
        alpha: How far priorities count: 0 not at all, 1 in proportion.
    """

    def __init__(self, capacity: int, alpha: float) -> None:
        self._alpha = alpha
        super().__init__(capacity)

    @property
    def alpha(self) -> float:
        """See the class; a change counts for all priorities at once."""
        return self._alpha

    @alpha.setter
    def alpha(self, alpha: float) -> None:
        self._alpha = alpha
        if self._sum is not None:
            self._plant()

    def clear(self) -> None:
        super().clear()
        self.values = np.ones(self.capacity)
        self.highest = 1.0
        self._sum: SumSegmentTree | None = None
        self._min: MinSegmentTree | None = None

    # ------------------------------------------------------------------ changes

    def occupy(self, start: int, n: int) -> None:
        """Fill n slots from `start` on, around the end, at the highest priority so far."""
        super().occupy(start, n)
        if self._sum is not None:
            slots = np.arange(start, start + n) % self.capacity
            self.values[slots] = self.highest
            self._put(slots, self.values[slots])

    def vacate(self, slots: np.ndarray, oldest: bool = False) -> None:
        super().vacate(slots, oldest)
        if self._sum is not None and self._min is not None:
            self._sum.set_many(slots, 0.0)
            self._min.set_many(slots, np.inf)

    def update(self, slots: np.ndarray, values: np.ndarray) -> None:
        """Give occupied slots other priorities; of a slot named twice the last one counts."""
        if not len(slots):
            return
        self.values[slots] = values
        self.highest = max(self.highest, float(values[values.argmax()]))
        if self._sum is None:
            self._plant()
        else:
            self._put(slots, values)

    def _plant(self) -> None:
        self._sum, self._min = SumSegmentTree(self.capacity), MinSegmentTree(self.capacity)
        slots = self.slots()
        self._put(slots, self.values[slots])

    def _put(self, slots: np.ndarray, values: np.ndarray) -> None:
        assert self._sum is not None
        assert self._min is not None
        masses = self._masses(values)
        self._sum.set_trusted(slots, masses)
        self._min.set_trusted(slots, masses)

    def _masses(self, values: np.ndarray) -> np.ndarray:
        return np.maximum(values, _LEAST) ** self._alpha

    # ------------------------------------------------------------------ draws

    @property
    def all_equal(self) -> bool:
        """Whether all priorities are the same.

        Then `draw` gives no slot twice, unless it is asked for more than there are.
        """
        return self._sum is None

    def draw(self, source: Draw, size: int, among: np.ndarray | None = None) -> np.ndarray:
        """Occupied slots, int64 [size].

        Each comes from its own share of the total priority, so that they are well spread.

        Args:
            source: Where the random numbers come from.
            size: How many; at least one slot must be occupied.
            among: Draw only among these occupied slots.
        """
        if self._sum is None:
            return self._draw_uniform(source, size, among)
        if among is None:
            return self._sum.find_prefixsum_many(source.spread(size, self._sum.total))
        running = self._masses(self.values[among]).cumsum()
        at = running.searchsorted(source.spread(size, running[-1]), side="right")
        return among[np.minimum(at, len(among) - 1)]

    def weights(
        self, slots: np.ndarray, beta: float, among: np.ndarray | None = None
    ) -> np.ndarray:
        """Importance weights of drawn slots relative to the largest there could be; float32.

        Args:
            beta: How far the weights correct for the priorities.
            among: What was drawn from, if not all.
        """
        if self._sum is None or self._min is None:
            return np.ones(len(slots), np.float32)
        weights = self._sum.get_trusted(slots)
        weights /= self._min.min if among is None else self._masses(self.values[among]).min()
        return (weights**-beta).astype(np.float32)

    def _draw_uniform(self, source: Draw, size: int, among: np.ndarray | None) -> np.ndarray:
        n = self.count if among is None else len(among)
        at = source.shares(n, size) if 0 < size <= n else source.any(n, size)
        if among is not None:
            return among[at]
        return at.copy() if self._prefix_only else self.slots()[at]

    def of(self, slots: np.ndarray) -> np.ndarray:
        """Priorities of occupied slots, float32."""
        if self._sum is None:
            return np.ones(len(slots), np.float32)
        return self.values.take(slots).astype(np.float32)

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "values": self.values.copy(),
            "highest": self.highest,
            "equal": self._sum is None,
        }

    def load_state_dict(self, state: Mapping[str, Any], order: np.ndarray, head: int) -> None:
        super().load_state_dict(state, order, head)
        self.values[: len(order)] = state["values"][order]
        self.highest = float(state["highest"])
        if not state["equal"]:
            self._plant()


def checked_priorities(values: Any, n: int) -> np.ndarray:
    """Priorities as float64 [n].

    Raises:
        DataError: NaN, infinite or negative ones, or a wrong number of them; names the first.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        array = np.asarray(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise DataError(f"priorities must be {n} numbers, got {values!r}: {error}") from error
    if len(array) != n:
        raise DataError(f"{len(array)} priorities came for {n} items: one each is needed")
    # Of few numbers these find the extremes several times faster than a reduction, and NaN first.
    if n and not (array[array.argmin()] >= 0 and array[array.argmax()] < np.inf):
        bad = int(np.flatnonzero(~((array >= 0) & (array < np.inf)))[0])
        raise DataError(
            f"priority {bad} of {n} is {array[bad]}: priorities must be finite and not negative; "
            f"look for NaN or infinity in the loss or the rewards"
        )
    return array
