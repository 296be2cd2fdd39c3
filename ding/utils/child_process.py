"""A process that this one starts, with a pipe between the two that ends with either of them."""

import contextlib
import multiprocessing
import signal
import warnings
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from . import durations

# This process's ends of pipes to its children. A forked child has copies of them and has to close
# these (`close_inherited_ends`), or nobody would see that the parent is gone.
_own_ends: "weakref.WeakSet[Connection]" = weakref.WeakSet()


class ChildProcess:
    """Started when it is made.

    Args:
        target: Runs in the child. It is to call `close_inherited_ends` first.
        arguments: Makes the target's arguments of this process's end of the pipe (``None`` unless
            the child is forked) and of the child's.
        method: ``fork``, ``spawn`` or ``forkserver``.
        name: Of the process.
        daemon: Whether it may have no children of its own, and is ended with this process.

    Attributes:
        process: Of ``multiprocessing``.
        link: This process's end of the pipe.
    """

    def __init__(
        self,
        target: Callable[..., object],
        arguments: Callable[[Connection | None, Connection], tuple[Any, ...]],
        method: str,
        name: str,
        daemon: bool = False,
    ) -> None:
        context: Any = multiprocessing.get_context(method)
        self.link, theirs = context.Pipe()
        _own_ends.add(self.link)
        own = self.link if method == "fork" else None
        self.process: Any = context.Process(
            target=target, args=arguments(own, theirs), name=name, daemon=daemon
        )
        with warnings.catch_warnings():
            # About forking with threads: the child starts none of them and drops their locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive()

    @property
    def waitables(self) -> tuple[Any, Any]:
        """What becomes ready with a message, and with the process's end."""
        return self.link, self.process.sentinel

    def kill(self) -> None:
        """End it at once, if it lives."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    def end_status(self, timeout: float = durations.ENV_JOIN) -> int | None:
        """Exit status, negative for a signal, once it has ended; waits for that."""
        self.process.join(timeout)
        return self.process.exitcode


def how_it_ended(status: int | None) -> str:
    """In words, what an exit status says."""
    if status is not None and status < 0:
        return f"was killed by {signal_name(-status)}"
    return f"ended with status {status}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def close_inherited_ends() -> None:
    """In a forked child: give up the copies of its parent's ends of pipes."""
    for end in list(_own_ends):
        with contextlib.suppress(OSError):
            end.close()
    _own_ends.clear()
