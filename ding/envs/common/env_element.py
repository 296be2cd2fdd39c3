"""Parts of an environment's interface: an observation's, an action's or a reward's form."""

from abc import ABC, abstractmethod
from collections import namedtuple
from typing import Any

EnvElementInfo = namedtuple("EnvElementInfo", ["shape", "value"])


class IEnvElement(ABC):
    """What every element can tell of itself."""

    @abstractmethod
    def __repr__(self) -> str:
        raise NotImplementedError

    @property
    @abstractmethod
    def info(self) -> Any:
        """Shape and range of the element's values."""


class EnvElement(IEnvElement):
    """Base of users' elements.

    A subclass sets ``_shape`` and ``_value`` in ``_init``, to which the constructor passes its
    arguments, and describes itself in ``_details``.
    """

    _name = "EnvElement"
    _shape: Any
    _value: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """
        Raises:
            AttributeError: ``_init`` left out ``_shape`` or ``_value``.
        """
        self._init(*args, **kwargs)
        self._check()

    @abstractmethod
    def _init(self, *args: Any, **kwargs: Any) -> None:
        """Set the element's shape and values."""

    @abstractmethod
    def _details(self) -> str:
        """What ``repr`` shows beside the name."""

    def _check(self) -> None:
        missing = [name for name in ("_shape", "_value") if not hasattr(self, name)]
        if missing:
            raise AttributeError(f"{type(self).__name__}._init() has to set {', '.join(missing)}")

    def __repr__(self) -> str:
        return f"{self._name}: {self._details()}"

    @property
    def info(self) -> EnvElementInfo:
        return EnvElementInfo(shape=self._shape, value=self._value)
