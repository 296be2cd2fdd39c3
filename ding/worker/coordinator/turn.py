"""One thread at a time decides; slow actions run after its turn, without blocking the others."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., object])


class Turn:
    """A reentrant lock for all decisions of a run."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._after: list[Callable[[], object]] = []

    def later(self, action: Callable[[], object]) -> None:
        """Run an action after the turn: write files, call custom code. Only within a turn."""
        self._after.append(action)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *exc: object) -> None:
        self._depth -= 1
        # Only at the end of the outermost turn; until then, this thread holds the lock.
        after: list[Callable[[], object]] = []
        if not self._depth:
            after, self._after = self._after, after
        self._lock.release()
        for action in after:
            action()


class _HasTurn(Protocol):
    turn: Turn


def in_turn(method: Method) -> Method:
    """Decorator: the method holds the turn while it runs."""

    @wraps(method)
    def call(self: _HasTurn, *args: object, **kwargs: object) -> object:
        with self.turn:
            return method(self, *args, **kwargs)

    return cast(Method, call)
