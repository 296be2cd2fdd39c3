"""The declaration of a logged property."""

from numbers import Number
from typing import Any, Generic, Protocol, TypeVar, overload

from .data import TimeRangedData

_ValueType = TypeVar("_ValueType")


class _Logged(Protocol):
    """A `ding.utils.autolog.model.LoggedModel`, as its properties see it."""

    _data: dict[str, TimeRangedData[Any]]


class LoggedValue(Generic[_ValueType]):
    """A property of a `ding.utils.autolog.model.LoggedModel` whose values are remembered.

    Args:
        type_: What values have to be. Where a ``float`` or ``int`` is wanted, any number is taken
            and converted.
    """

    def __init__(self, type_: type[_ValueType] = object) -> None:  # type: ignore[assignment]
        self._type = type_
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, model: None, owner: type) -> "LoggedValue[_ValueType]": ...

    @overload
    def __get__(self, model: _Logged, owner: type) -> _ValueType: ...

    def __get__(self, model: _Logged | None, owner: type) -> Any:
        return self if model is None else model._data[self._name].current()

    def __set__(self, model: _Logged, value: _ValueType) -> None:
        if type(value) is not self._type:
            value = self._checked(value)
        model._data[self._name].append(value)

    def _checked(self, value: Any) -> _ValueType:
        if isinstance(value, self._type):
            return value
        if self._type in (float, int):
            number = value.item() if getattr(value, "ndim", None) == 0 else value
            if isinstance(number, Number):
                return self._type(number)  # type: ignore[call-arg]
        raise TypeError(
            f"{self._name} got {value!r:.80} ({type(value).__name__}), "
            f"expected {self._type.__name__}"
        )
