"""Child processes with a pipe, exit statuses, restarts, and identities of processes."""

import contextlib
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection, wait
from typing import Any

from ding.utils import durations
from ding.utils.types import Json, JsonObject

# This process's ends of the pipes to its children. A forked child inherits copies of them and must
# close these (`close_inherited_ends`); otherwise, children would not notice the end of the parent.
_own_ends: "weakref.WeakSet[Connection]" = weakref.WeakSet()


class ChildProcess:
    """A child process with a pipe; the constructor starts it.

    Args:
        target: Function that runs in the child. It must call `close_inherited_ends` first.
        arguments: Makes the target's arguments from this process's end of the pipe (``None`` unless
            the child is forked) and the child's end.
        method: ``fork``, ``spawn`` or ``forkserver``.
        name: Name of the process.
        daemon: Whether the child ends with this process and may not have children.

    Attributes:
        process: The ``multiprocessing`` process.
        link: This process's end of the pipe.
    """

    def __init__(
        self,
        target: Callable[..., object],
        arguments: Callable[[Connection | None, Connection], tuple[object, ...]],
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
            # The warning about forking with threads: the child does not depend on their locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive()

    @property
    def waitables(self) -> tuple[Connection | int, ...]:
        """Objects for ``multiprocessing.connection.wait``: ready at a message, and at the end."""
        return self.link, self.process.sentinel

    def kill(self) -> None:
        """Kill the process, if it is alive."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    def end_status(self, timeout: float = durations.ENV_JOIN) -> int | None:
        """Wait for the end; returns the exit status (negative for a signal), ``None`` if alive."""
        self.process.join(timeout)
        return self.process.exitcode


def how_it_ended(status: int | None) -> str:
    """A description of an exit status."""
    if status is not None and status < 0:
        return f"was killed by {signal_name(-status)}"
    return f"ended with status {status}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def close_inherited_ends() -> None:
    """In a forked child: close the inherited copies of its parent's ends of pipes."""
    for end in list(_own_ends):
        with contextlib.suppress(OSError):
            end.close()
    _own_ends.clear()


def process_identity(pid: int | None = None) -> JsonObject:
    """Facts by which a process can be recognised later, as plain JSON.

    Args:
        pid: Id of a process of this host; by default this process.

    Returns:
        ``host``, ``pid``, and ``started``, the start time in the system's format; ``None`` if there
        is no such process.
    """
    pid = os.getpid() if pid is None else pid
    return {"host": platform.node(), "pid": pid, "started": _started(pid)}


def still_runs(identity: Mapping[str, Json]) -> bool | None:
    """Whether a process still runs; ``None`` (unknown) if it is on another host.

    Args:
        identity: Result of `process_identity`, which may have been read from a file.
    """
    if identity.get("host") != platform.node():
        return None
    pid, started = identity.get("pid"), identity.get("started")
    return type(pid) is int and started is not None and _started(pid) == started


def end_processes(identities: Iterable[Mapping[str, Json]], seconds: float) -> None:
    """Wait for processes of this host to end, and kill those that do not end in time.

    Args:
        identities: See `process_identity`.
        seconds: Total time to wait.
    """
    deadline = time.monotonic() + seconds
    for identity in identities:
        with contextlib.suppress(OSError):
            _end(identity, deadline)


def _end(identity: Mapping[str, Json], deadline: float) -> None:
    if not still_runs(identity):
        return
    if sys.platform != "linux":
        os.kill(identity["pid"], signal.SIGKILL)
        return
    process = os.pidfd_open(identity["pid"])
    try:
        # Check again: another process may have got the id before the descriptor was opened.
        if still_runs(identity) and not wait([process], max(0.0, deadline - time.monotonic())):
            signal.pidfd_send_signal(process, signal.SIGKILL)
            wait([process], durations.KILLED_GONE)
    finally:
        os.close(process)


def _started(pid: int) -> str | None:
    if sys.platform == "linux":
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                # The name, which ends with the last bracket, may contain any character.
                state, *fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return None
        # Field 22 of proc(5), in ticks since boot.
        return None if state in b"ZX" else f"{_boot()}:{int(fields[18])}"
    try:
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=durations.KILLED_GONE
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


@cache
def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class AfterDeath:
    """The action after the death of a part of a run.

    Attributes:
        text: The message.
        pause: Seconds until the part is restarted; ``None`` if it is not restarted.
        is_end: Whether the run cannot continue without the part.
    """

    text: str
    pause: float | None = None
    is_end: bool = False


class Restarts:
    """Decides which dead parts of a run are restarted, for all engines. Thread-safe.

    Args:
        kinds: Kind of each part, by name: a run continues without a part as long as there is
            another one of its kind.
        most: Maximum number of restarts per part; a long life resets the count.
    """

    def __init__(self, kinds: Mapping[str, str], most: int) -> None:
        self._left, self._most = dict(kinds), most
        self._counts = Counter[str]()
        self._lock = threading.Lock()

    def after_death(self, name: str, how: str, life: float) -> AfterDeath:
        """The action after the death of a part that has lived for `life` seconds."""
        # A part that dies once per day must not use up its restarts.
        if life > durations.GOOD_LIFE:
            self._counts[name] = 0
        count = self._counts[name] = self._counts[name] + 1
        if count > self._most:
            return self.without(name, how if count == 1 else f"died {count} times, at last: {how}")
        waits = durations.RESTART_WAITS
        text = f"{how}; starting it again ({count} of {self._most})"
        return AfterDeath(text, waits[min(count, len(waits)) - 1])

    def without(self, name: str, how: str) -> AfterDeath:
        """The action after a part has ended for good."""
        with self._lock:
            kind = self._left.pop(name)
            if kind in self._left.values():
                return AfterDeath(f"{how}; continuing without it")
        return AfterDeath(how, is_end=True)
