"""Base classes for parts of users' environments: an observation, an action or a reward."""

from abc import ABC, abstractmethod
from collections import namedtuple
from typing import Any

EnvElementInfo = namedtuple("EnvElementInfo", ["shape", "value"])
EnvElementInfo.__doc__ = "Shape of an element of an environment, and its range or kind (``value``)."


class IEnvElement(ABC):
    """What all elements have."""

    @abstractmethod
    def __repr__(self) -> str:
        raise NotImplementedError

    @property
    @abstractmethod
    def info(self) -> EnvElementInfo:
        """Shape and range of the element's values."""


class EnvElement(IEnvElement):
    """The form of a value: subclasses set ``_shape`` and ``_value`` in ``_init``.

    The constructor passes its arguments on to that; ``_details`` is what ``repr`` shows.
    """

    _name = "EnvElement"
    _shape: object
    _value: object

    def __init__(self, *args: object, **kwargs: object) -> None:
        """
        Raises:
            AttributeError: ``_init`` left out ``_shape`` or ``_value``.
        """
        self._init(*args, **kwargs)
        _require(self, "_shape", "_value")

    @abstractmethod
    def _init(self, *args: Any, **kwargs: Any) -> None: ...

    @abstractmethod
    def _details(self) -> str: ...

    def __repr__(self) -> str:
        return f"{self._name}: {self._details()}"

    @property
    def info(self) -> EnvElementInfo:
        return EnvElementInfo(shape=self._shape, value=self._value)


class IEnvElementRunner(IEnvElement):
    """An element that is reset with the environment and read after its steps."""

    @abstractmethod
    def get(self, engine: Any) -> object:
        """The element's value in the environment `engine`."""

    @abstractmethod
    def reset(self, *args: Any, **kwargs: Any) -> None:
        """Begin an episode."""


class EnvElementRunner(IEnvElementRunner):
    """Reads an element: ``_init``, which gets the constructor's arguments, sets ``_core``."""

    _core: EnvElement

    def __init__(self, *args: object, **kwargs: object) -> None:
        """
        Raises:
            AttributeError: ``_init`` left out ``_core``.
        """
        self._init(*args, **kwargs)
        _require(self, "_core")

    @abstractmethod
    def _init(self, *args: Any, **kwargs: Any) -> None: ...

    def __repr__(self) -> str:
        return repr(self._core)

    @property
    def info(self) -> EnvElementInfo:
        return self._core.info


def _require(element: IEnvElement, *names: str) -> None:
    missing = [name for name in names if not hasattr(element, name)]
    if missing:
        raise AttributeError(f"{type(element).__name__}._init() has to set {', '.join(missing)}")
