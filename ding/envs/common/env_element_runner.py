"""Elements that take part in an environment's steps."""

from abc import abstractmethod
from typing import Any

from ding.envs.common.env_element import EnvElement, IEnvElement


class IEnvElementRunner(IEnvElement):
    """An element that is reset with the environment and read after its steps."""

    @abstractmethod
    def get(self, engine: Any) -> Any:
        """The element's value in the environment `engine`."""

    @abstractmethod
    def reset(self, *args: Any, **kwargs: Any) -> None:
        """Begin an episode."""


class EnvElementRunner(IEnvElementRunner):
    """Base of users' runners: ``_init``, which gets the constructor's arguments, sets ``_core``."""

    _core: EnvElement

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """
        Raises:
            AttributeError: ``_init`` left out ``_core``.
        """
        self._init(*args, **kwargs)
        if not hasattr(self, "_core"):
            raise AttributeError(f"{type(self).__name__}._init() has to set _core, an EnvElement")

    @abstractmethod
    def _init(self, *args: Any, **kwargs: Any) -> None:
        """Set ``_core``."""

    def __repr__(self) -> str:
        return repr(self._core)

    @property
    def info(self) -> Any:
        return self._core.info
