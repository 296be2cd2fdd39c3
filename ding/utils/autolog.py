"""Logged values with their history over the last ticks or seconds."""

import functools
import pickle
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from enum import IntEnum, unique
from numbers import Number
from typing import Any, Generic, TypeVar, overload

from ding.utils.lock_helper import LockContext, LockContextType

_Tp = TypeVar("_Tp")
_ValueType = TypeVar("_ValueType")
_TimeObjectType = TypeVar("_TimeObjectType", bound="BaseTime")
Window = tuple[tuple[int | float, int | float], Any]


class BaseTime(ABC):
    """A monotonic clock."""

    @abstractmethod
    def time(self) -> int | float:
        """The current time."""


class NaturalTime(BaseTime):
    """Seconds since the epoch."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def time(self) -> float:
        """The current time, not affected by changes of the system clock."""
        return self._epoch + time.monotonic()


class TickTime(BaseTime):
    """A clock that the owner advances with `step`."""

    def __init__(self, init: int = 0) -> None:
        self._tick = init

    def step(self, delta: int = 1) -> int:
        """Advance the clock by ``delta`` ticks.

        Returns:
            The new time.

        Raises:
            ValueError: ``delta`` is below 1.
            TypeError: ``delta`` is not an integer.
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
    """Shows the time of another clock, and can freeze it.

    Args:
        time_: The other clock.
        frozen: Whether the time is frozen from the start.
        lock_type: Type of the lock for `freeze` and `unfreeze`.
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
        """Whether the time is frozen."""
        return self._held is not None

    def freeze(self) -> None:
        """Freeze the time; does nothing if it is frozen."""
        with self._lock:
            if self._held is None:
                self._held = self._time.time()

    def unfreeze(self) -> None:
        """Show the time of the other clock again."""
        with self._lock:
            self._held = None

    def time(self) -> int | float:
        """The frozen time, or that of the other clock."""
        held = self._held
        return self._time.time() if held is None else held

    def current_time(self) -> int | float:
        """The time of the other clock."""
        return self._time.time()


@unique
class TimeMode(IntEnum):
    """Origin of the times in a history."""

    RELATIVE_LIFECYCLE = 1
    """The moment at which the model was made."""
    RELATIVE_CURRENT_TIME = 2
    """Now: times are zero or negative."""
    ABSOLUTE = 3
    """The zero of the clock."""


class RangedData(ABC, Generic[_Tp]):
    """Values with the times at which they were added, as far back as ``expire``.

    A value is valid until the next one is added. The last value before the range is therefore kept
    too, however old it is. Thread-safe.

    Args:
        expire: Length of the range, in the unit of the clock.
        use_pickle: Whether to store pickled copies, so that later changes of a value do not change
            the history.

    Raises:
        ValueError: ``expire`` is not positive.
        TypeError: ``expire`` is not a number.
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
        """Add a value with the current time."""
        stored = pickle.dumps(data) if self._use_pickle else data
        now = self._get_time()
        self._records.append((now, stored))  # atomic: a lock would double the cost
        if len(self._records) >= self._forget_at:
            with self._lock:
                self._forget(now)

    def extend(self, iter_: Iterable[_Tp]) -> None:
        """Add several values with the current time."""
        for item in iter_:
            self.append(item)

    def current(self) -> _Tp:
        """The latest value.

        Raises:
            ValueError: No value has been added yet.
        """
        try:
            stored = self._records[-1][1]
        except IndexError:
            raise ValueError("there is no current value: none has been added yet") from None
        return self._load(stored)

    def history(self) -> list[tuple[int | float, _Tp]]:
        """``(time, value)`` of the last value before the range and of all in it, oldest first."""
        with self._lock:
            self._forget(self._get_time())
            records = list(self._records)  # atomic: other threads may append at any time
        return [(when, self._load(stored)) for when, stored in records]

    @abstractmethod
    def _get_time(self) -> int | float:
        """The current time."""

    def _forget(self, now: int | float) -> None:
        records, begin = self._records, now - self.expire
        while len(records) > 1 and records[1][0] < begin:
            records.popleft()
        self._forget_at = 2 * len(records) + 8  # amortises the cost of this method

    def _load(self, stored: Any) -> _Tp:
        return pickle.loads(stored) if self._use_pickle else stored


class TimeRangedData(RangedData[_Tp]):
    """`RangedData` with a given clock."""

    def __init__(self, time_: BaseTime, expire: float) -> None:
        super().__init__(expire)
        self.time = time_
        self._get_time = time_.time  # type: ignore[method-assign]  # one call less per value

    def _get_time(self) -> int | float:
        return self.time.time()


class LoggedValue(Generic[_ValueType]):
    """A property of a `LoggedModel` with a history of its values.

    Args:
        type_: Type of the values. For ``float`` and ``int``, any number is converted.
    """

    def __init__(self, type_: type[_ValueType] = object) -> None:  # type: ignore[assignment]
        self._type = type_
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, model: None, owner: type) -> "LoggedValue[_ValueType]": ...

    @overload
    def __get__(self, model: "LoggedModel[Any]", owner: type) -> _ValueType: ...

    def __get__(self, model: "LoggedModel[Any] | None", owner: type) -> Any:
        return self if model is None else model._data[self._name].current()

    def __set__(self, model: "LoggedModel[Any]", value: _ValueType) -> None:
        if type(value) is not self._type:
            value = self._checked(value)
        model._data[self._name].append(value)

    def _checked(self, value: object) -> _ValueType:
        if isinstance(value, self._type):
            return value
        if self._type in (float, int):
            if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
                value = value.item()
            if isinstance(value, Number):
                return self._type(value)  # type: ignore[call-arg]
        raise TypeError(
            f"{self._name} got {value!r:.80} ({type(value).__name__}), "
            f"expected {self._type.__name__}"
        )


class LoggedModel(Generic[_TimeObjectType]):
    """Keeps the values of its properties during the last ``expire`` ticks or seconds.

    Properties are declared with `LoggedValue` (``reward = LoggedValue(float)`` in the class);
    statistics over them are registered and called by name::

        self.register_attribute_value("avg", "reward", self._avg_reward)  # in __init__
        monitor.reward = 1.0
        monitor.avg["reward"]()

    ``range_values[name](mode)`` exists for every property and returns ``((begin, end), value)`` for
    each value that was valid during the range or until it began, oldest first.

    Args:
        time_: The clock, which its owner advances.
        expire: Length of the range, in the unit of the clock.
        names: Names of further properties, of any type, in addition to those of the class.

    Attributes:
        time: The clock.
        expire: Length of the range.
    """

    def __init__(self, time_: _TimeObjectType, expire: float, names: Iterable[str] = ()) -> None:
        self.time = time_
        self._proxy = TimeProxy(time_)
        self.expire = expire
        self._init_time = self._proxy.time()
        declared = [
            name
            for cls in reversed(type(self).__mro__)
            for name, item in vars(cls).items()
            if isinstance(item, LoggedValue)
        ]
        self._data: dict[str, TimeRangedData[Any]] = {
            name: TimeRangedData(self._proxy, expire) for name in (*declared, *names)
        }
        self._attributes: dict[str, dict[str, object]] = {}
        self.range_values: dict[str, Callable[..., list[Window]]] = {
            name: functools.partial(self._range_values, name) for name in self._data
        }

    def fixed_time(self) -> float | int:
        """The time at which statistics are computed, frozen between freeze and unfreeze."""
        return self._proxy.time()

    def current_time(self) -> float | int:
        """The time of the clock, whether frozen or not."""
        return self._proxy.current_time()

    def freeze(self) -> None:
        """Freeze the time, so that several statistics refer to the same moment."""
        self._proxy.freeze()

    def unfreeze(self) -> None:
        """Unfreeze the time."""
        self._proxy.unfreeze()

    def register_attribute_value(
        self, attribute_name: str, property_name: str, value: object
    ) -> None:
        """Make ``value`` (usually a function) available as ``model.<attribute>[<property>]``.

        Raises:
            KeyError: The property is not declared.
        """
        self.ranged_data(property_name)
        self._attributes.setdefault(attribute_name, {})[property_name] = value

    def get_property_attribute(self, property_name: str) -> list[str]:
        """Names of the attributes that are registered for a property.

        Raises:
            KeyError: The property is not declared.
        """
        self.ranged_data(property_name)
        return [name for name, values in self._attributes.items() if property_name in values]

    def value_names(self) -> list[str]:
        """Names of the logged properties."""
        return list(self._data)

    def ranged_data(self, property_name: str) -> TimeRangedData[Any]:
        """The history of a property.

        Raises:
            KeyError: The property is not declared.
        """
        try:
            return self._data[property_name]
        except KeyError:
            raise KeyError(
                f"{type(self).__name__} has no logged property {property_name!r}, it declares: "
                f"{', '.join(self._data) or 'none'}"
            ) from None

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__.get("_attributes", {})
        if name in self.__dict__.get("_data", ()):
            return self._data[name].current()
        if name not in attributes:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}; registered are: "
                f"{', '.join(attributes) or 'none'}"
            )
        return attributes[name]

    def _range_values(
        self, name: str, mode: TimeMode = TimeMode.RELATIVE_LIFECYCLE
    ) -> list[Window]:
        now = self.fixed_time()
        zeros = {TimeMode.ABSOLUTE: 0, TimeMode.RELATIVE_CURRENT_TIME: now}
        zero = zeros.get(mode, self._init_time)
        begin = max(now - self.expire, self._init_time)
        history = self._data[name].history()
        ends = [when for when, _ in history[1:]] + [now]
        return [
            ((max(when, begin) - zero, end - zero), value)
            for (when, value), end in zip(history, ends)
        ]


#: Aliases of this module, from which scripts import the names above.
for _module in ("data", "model", "time_ctl", "value"):
    sys.modules[f"{__name__}.{_module}"] = sys.modules[__name__]
