"""A history that forgets."""

import pickle
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from .time_ctl import BaseTime

_Tp = TypeVar("_Tp")


class RangedData(ABC, Generic[_Tp]):
    """Values with the times at which they came, as far back as ``expire``.

    A value is in force until the next one comes. So the last one from before the range is kept too,
    however old it is. Thread-safe.

    Args:
        expire: Length of the range, in the unit of the clock.
        use_pickle: Whether to keep pickled copies, so that later changes of a value do not reach
            the history.

    Raises:
        ValueError: If ``expire`` is not positive.
        TypeError: If it is no number.
    """

    def __init__(self, expire: float, use_pickle: bool = False) -> None:
        if not isinstance(expire, (int, float)):
            raise TypeError(f"expire is {expire!r}, expected a number")
        if expire <= 0:
            raise ValueError(f"expire is {expire}, expected more than 0")
        self.expire = expire
        self._use_pickle = use_pickle
        self._records: deque[tuple[int | float, Any]] = deque()
        self._forget_at = 8
        self._lock = threading.Lock()

    def append(self, data: _Tp) -> None:
        """Add a value that came now."""
        stored = pickle.dumps(data) if self._use_pickle else data
        now = self._get_time()
        self._records.append((now, stored))  # atomic: a lock would double the cost
        if len(self._records) >= self._forget_at:
            with self._lock:
                self._forget(now)

    def extend(self, iter_: Iterable[_Tp]) -> None:
        """Add several values that came now."""
        for item in iter_:
            self.append(item)

    def current(self) -> _Tp:
        """The latest value.

        Raises:
            ValueError: If none has come yet.
        """
        try:
            stored = self._records[-1][1]
        except IndexError:
            raise ValueError("there is no current value: none has been added yet") from None
        return self._load(stored)

    def history(self) -> list[tuple[int | float, _Tp]]:
        """``(time, value)`` of the last one before the range and of all in it, oldest first."""
        with self._lock:
            self._forget(self._get_time())
            records = list(self._records)  # at once: others may append meanwhile
        return [(when, self._load(stored)) for when, stored in records]

    @abstractmethod
    def _get_time(self) -> int | float:
        """The time now."""

    def _forget(self, now: int | float) -> None:
        records, begin = self._records, now - self.expire
        while len(records) > 1 and records[1][0] < begin:
            records.popleft()
        self._forget_at = 2 * len(records) + 8  # so that looking costs nothing on average

    def _load(self, stored: Any) -> _Tp:
        return pickle.loads(stored) if self._use_pickle else stored


class TimeRangedData(RangedData[_Tp]):
    """A history by a given clock."""

    def __init__(self, time_: BaseTime, expire: float) -> None:
        super().__init__(expire)
        self.time = time_
        self._get_time = time_.time  # type: ignore[method-assign]  # one call less per value

    def _get_time(self) -> int | float:
        return self.time.time()
