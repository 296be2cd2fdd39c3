"""A record of named values over time, with statistics registered by name."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from .data import TimeRangedData
from .time_ctl import BaseTime, TimeMode, TimeProxy
from .value import LoggedValue

_TimeObjectType = TypeVar("_TimeObjectType", bound=BaseTime)
Window = tuple[tuple[int | float, int | float], Any]


class LoggedModel(Generic[_TimeObjectType]):
    """Remembers what its properties were during the last ``expire`` ticks or seconds.

    Properties are declared with `LoggedValue` (``reward = LoggedValue(float)`` in the class);
    statistics over them are registered and called by name::

        self.register_attribute_value("avg", "reward", self._avg_reward)  # in __init__
        monitor.reward = 1.0
        monitor.avg["reward"]()

    ``range_values[name](mode)`` exists for every property: ``((begin, end), value)`` for each
    value in force during the range, or until it began, oldest first.

    Args:
        time_: The clock; its owner moves it on.
        expire: Length of the range, in the unit of the clock.
        names: Further properties, of any type, in addition to those of the class.

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
        self._attributes: dict[str, dict[str, Any]] = {}
        self.range_values: dict[str, Callable[..., list[Window]]] = {
            name: functools.partial(self._range_values, name) for name in self._data
        }

    def fixed_time(self) -> float | int:
        """The time that statistics are computed at: held between freeze and unfreeze."""
        return self._proxy.time()

    def current_time(self) -> float | int:
        """The time of the clock, whether held or not."""
        return self._proxy.current_time()

    def freeze(self) -> None:
        """Hold the time, so that several statistics are of one moment."""
        self._proxy.freeze()

    def unfreeze(self) -> None:
        """Let the time go on."""
        self._proxy.unfreeze()

    def register_attribute_value(self, attribute_name: str, property_name: str, value: Any) -> None:
        """Make ``value`` (as a rule a function) reachable as ``model.<attribute>[<property>]``.

        Raises:
            KeyError: If the property is not declared.
        """
        self.ranged_data(property_name)
        self._attributes.setdefault(attribute_name, {})[property_name] = value

    def get_property_attribute(self, property_name: str) -> list[str]:
        """Names of what has been registered for a property.

        Raises:
            KeyError: If the property is not declared.
        """
        self.ranged_data(property_name)
        return [name for name, values in self._attributes.items() if property_name in values]

    def value_names(self) -> list[str]:
        """Names of the logged properties."""
        return list(self._data)

    def ranged_data(self, property_name: str) -> TimeRangedData[Any]:
        """The history of a property.

        Raises:
            KeyError: If the property is not declared.
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
