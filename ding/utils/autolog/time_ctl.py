"""Clocks: real seconds, ticks, and a proxy that can be stopped."""

import time
from abc import ABC, abstractmethod
from enum import IntEnum, unique

from ding.utils.lock_helper import LockContext, LockContextType


class BaseTime(ABC):
    """A clock that never runs backwards."""

    @abstractmethod
    def time(self) -> int | float:
        """The time now."""


class NaturalTime(BaseTime):
    """Seconds since the epoch."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def time(self) -> float:
        """The time now; a system clock that is set changes nothing."""
        return self._epoch + time.monotonic()


class TickTime(BaseTime):
    """Ticks that the owner counts."""

    def __init__(self, init: int = 0) -> None:
        self._tick = init

    def step(self, delta: int = 1) -> int:
        """Go on by ``delta`` ticks.

        Returns:
            The new time.

        Raises:
            ValueError: If ``delta`` is below 1.
            TypeError: If it is no integer.
        """
        if not isinstance(delta, int):
            raise TypeError(f"delta is {delta!r}, expected a whole number of ticks")
        if delta < 1:
            raise ValueError(f"delta is {delta}, expected 1 or more: time does not run backwards")
        self._tick += delta
        return self._tick

    def time(self) -> int:
        """The number of ticks so far."""
        return self._tick


class TimeProxy(BaseTime):
    """Shows another clock, and can hold the time it shows.

    Args:
        time_: The clock behind.
        frozen: Whether the time shown is held from the start.
        lock_type: What guards the change between held and running.
    """

    def __init__(
        self,
        time_: BaseTime,
        frozen: bool = False,
        lock_type: LockContextType = LockContextType.THREAD_LOCK,
    ) -> None:
        self._time = time_
        self._lock = LockContext(lock_type)
        self._held: int | float | None = time_.time() if frozen else None

    @property
    def is_frozen(self) -> bool:
        """Whether the time shown is held."""
        return self._held is not None

    def freeze(self) -> None:
        """Hold the time shown; a time held already stays as it is."""
        with self._lock:
            if self._held is None:
                self._held = self._time.time()

    def unfreeze(self) -> None:
        """Show the clock behind again."""
        with self._lock:
            self._held = None

    def time(self) -> int | float:
        """The time shown."""
        held = self._held
        return self._time.time() if held is None else held

    def current_time(self) -> int | float:
        """The time of the clock behind."""
        return self._time.time()


@unique
class TimeMode(IntEnum):
    """What the times of a history count from."""

    RELATIVE_LIFECYCLE = 1
    """The moment at which the model was made."""
    RELATIVE_CURRENT_TIME = 2
    """Now: times are zero or negative."""
    ABSOLUTE = 3
    """The zero of the clock."""
