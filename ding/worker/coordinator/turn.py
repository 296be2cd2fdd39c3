"""One thread at a time decides; what takes long is done without the others waiting for it."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., object])


class Turn:
    """A lock of all that a run decides. A thread that has it may take it again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._after: list[Callable[[], object]] = []

    def later(self, action: Callable[[], object]) -> None:
        """Do something when the turn is over: write files, call users' code. Within a turn only."""
        self._after.append(action)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *exc: object) -> None:
        self._depth -= 1
        # Only at the end of the outermost turn: within it, this thread still holds the lock.
        after: list[Callable[[], object]] = []
        if not self._depth:
            after, self._after = self._after, after
        self._lock.release()
        for action in after:
            action()


class _HasTurn(Protocol):
    turn: Turn


def in_turn(method: Method) -> Method:
    """A method that takes the turn for as long as it works."""

    @wraps(method)
    def call(self: _HasTurn, *args: object, **kwargs: object) -> object:
        with self.turn:
            return method(self, *args, **kwargs)

    return cast(Method, call)
