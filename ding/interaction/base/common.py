"""Base classes of services, tokens, and helpers for functions."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

DEFAULT_TOKEN_LENGTH = 64
_Self = TypeVar("_Self", bound="ControllableContext")


def random_token(length: int | None = None) -> str:
    """An unpredictable token of lower-case hexadecimal digits.

    Args:
        length: Number of digits, by default 64 (256 bits).
    """
    length = DEFAULT_TOKEN_LENGTH if length is None else length
    if length < 1:
        raise ValueError(f"a token of {length} digits was asked for; at least 1 is needed")
    return secrets.token_hex((length + 1) // 2)[:length]


class ControllableContext(ABC):
    """Base of objects with `start` and `close`, for ``with`` statements."""

    @abstractmethod
    def start(self) -> object: ...

    @abstractmethod
    def close(self) -> object: ...

    def __enter__(self: _Self) -> _Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()


class ControllableService(ControllableContext):
    """Base of services that run in their own threads from `start` until the end of `join`."""

    @abstractmethod
    def shutdown(self) -> object:
        """Request the end of the service; does not wait."""

    @abstractmethod
    def join(self) -> object:
        """Wait until the service has ended."""

    def close(self) -> None:
        self.shutdown()
        self.join()


def translate_dict_func(d: Mapping[str, Callable[..., Any]]) -> Callable[..., dict[str, Any]]:
    """A function that calls each value of `d` with its arguments, and returns a dict of results."""

    def call_all(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return {name: func(*args, **kwargs) for name, func in d.items()}

    return call_all


def default_func(
    return_value: Any = None,
) -> Callable[[Callable[..., Any] | None], Callable[..., Any]]:
    """A function that replaces ``None`` with a function that always returns `return_value`."""

    def choose(func: Callable[..., Any] | None) -> Callable[..., Any]:
        return (lambda *args, **kwargs: return_value) if func is None else func

    return choose
