"""The process, its host, and threads that do not lose errors."""

import contextlib
import fcntl
import logging
import os
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: What `get_ip` gives without a network.
NO_NETWORK = "127.0.0.1"
#: Characters of an error's text in the line of a thread that failed.
MAX_CAUSE = 300
_CGROUP = "/sys/fs/cgroup"
_SMALL = 64 << 20
_FOUND_NUM = 100
#: Linux: asks for the address of an interface, with a buffer of that size.
_SIOCGIFADDR, _IFREQ = 0x8915, 40
_found: deque[int] = deque(maxlen=_FOUND_NUM)
_found_lock = threading.Lock()
_logger = logging.getLogger(__name__)


def get_ip() -> str:
    """The address by which other hosts reach this one; the loopback address without a network."""
    try:
        return own_address("10.255.255.255")
    except OSError:
        return NO_NETWORK


def own_address(host: str, port: int = 9) -> str:
    """The address of this host on the way to another one.

    Raises:
        OSError: There is no way to it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))  # sends nothing: UDP only picks the interface
        return probe.getsockname()[0]


def interface_to(host: str) -> str | None:
    """Name of the network interface on the way to a host; ``None`` if it cannot be found."""
    with contextlib.suppress(OSError), socket.socket() as probe:
        own = socket.inet_aton(own_address(host))
        for _, name in socket.if_nameindex():
            request = name.encode().ljust(_IFREQ, b"\0")
            with contextlib.suppress(OSError):  # it has no address
                if fcntl.ioctl(probe, _SIOCGIFADDR, request)[20:24] == own:
                    return name
    return None


def get_pid() -> int:
    """The process id."""
    return os.getpid()


def get_task_uid() -> str:
    """A name that no other call gives, on any host."""
    return f"{secrets.token_hex(8)}_{time.time_ns()}"


class ReportingThread(threading.Thread):
    """A daemon thread that does not end in silence when its work fails.

    Args:
        target: The work.
        name: Of the thread.
        on_failure: Called in the thread with the cause, one line, when `target` has raised; the
            traceback is logged before. Has to end what waits for the work.
        args: Arguments of `target`.
    """

    def __init__(
        self,
        target: Callable[..., object],
        name: str,
        on_failure: Callable[[str], object],
        args: tuple[object, ...] = (),
    ) -> None:
        super().__init__(target=target, name=name, args=args, daemon=True)
        self._on_failure = on_failure

    def run(self) -> None:
        try:
            super().run()
        except BaseException as error:  # the edge of the thread
            _logger.exception("the thread %s failed", self.name)
            what = " ".join(str(error).split())[:MAX_CAUSE]
            self._on_failure(f"the thread {self.name} failed: {type(error).__name__}: {what}")


def available_memory() -> int:
    """Bytes of memory that can still be had: of the machine, or of the container if that is less.

    2^63 where the system does not say.
    """
    found = [1 << 63]
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/meminfo") as file:
            line = next(line for line in file if line.startswith("MemAvailable:"))
        found.append(int(line.split()[1]) << 10)
    with contextlib.suppress(OSError, ValueError):  # "max" is not a number: there is no limit
        limit, used = (
            int(Path(f"{_CGROUP}/memory.{one}").read_text()) for one in ("max", "current")
        )
        # Cached files count as used, and make room for whatever needs it.
        with open(f"{_CGROUP}/memory.stat") as file:
            cache = next(int(line.split()[1]) for line in file if line.startswith("inactive_file"))
        found.append(max(0, limit - used + cache))
    return min(found)


def fits_memory(size: int) -> bool:
    """Whether there is room for a number of bytes; small ones always fit."""
    return size <= _SMALL or size <= available_memory()


class PropagatingThread(threading.Thread):
    """A thread whose `join` returns the target's result, or raises what it raised."""

    def run(self) -> None:
        self.ret: object = None
        self.exc: BaseException | None = None
        try:
            if self._target is not None:  # type: ignore[attr-defined]
                self.ret = self._target(*self._args, **self._kwargs)  # type: ignore[attr-defined]
        except BaseException as error:
            self.exc = error
        finally:
            # As in Thread.run: arguments must not outlive the work.
            del self._target, self._args, self._kwargs  # type: ignore[attr-defined]

    def join(self, timeout: float | None = None) -> Any:
        """Wait for the end; None if it does not come within `timeout` seconds."""
        super().join(timeout)
        if self.is_alive():
            return None
        if self.exc is not None:
            raise self.exc
        return self.ret


def find_free_port(host: str) -> int:
    """A free TCP port at `host`, an address of this machine.

    The ports found last are not returned again, as their callers may not listen yet. Other
    programs may take it all the same.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as held:  # so that each try finds another one
        tries = 0
        while True:
            probe = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
            # As servers do: to these a port of a connection that has just ended is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, 0))
            port: int = probe.getsockname()[1]
            tries += 1
            with _found_lock:
                if port not in _found or tries > _FOUND_NUM:
                    _found.append(port)
                    return port
