"""Network addresses, ports, memory, ids, and threads that report errors."""

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

#: Result of `get_ip` without a network.
NO_NETWORK = "127.0.0.1"
#: Maximum length of an error's text in the report of a failed thread.
MAX_CAUSE = 300
_CGROUP = "/sys/fs/cgroup"
_SMALL = 64 << 20
_FOUND_NUM = 100
#: Linux: the ioctl for the address of an interface, and the size of its buffer.
_SIOCGIFADDR, _IFREQ = 0x8915, 40
_found: deque[int] = deque(maxlen=_FOUND_NUM)
_found_lock = threading.Lock()
_logger = logging.getLogger(__name__)


def get_ip() -> str:
    """The address at which other hosts reach this one; the loopback address without a network."""
    try:
        return own_address("10.255.255.255")
    except OSError:
        return NO_NETWORK


def own_address(host: str, port: int = 9) -> str:
    """The local address of the route to another host.

    Raises:
        OSError: There is no route to it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))  # sends nothing: UDP only selects the interface
        return probe.getsockname()[0]


def interface_to(host: str) -> str | None:
    """Name of the network interface of the route to a host; ``None`` if it cannot be found."""
    with contextlib.suppress(OSError), socket.socket() as probe:
        own = socket.inet_aton(own_address(host))
        for _, name in socket.if_nameindex():
            request = name.encode().ljust(_IFREQ, b"\0")
            with contextlib.suppress(OSError):  # the interface has no address
                if fcntl.ioctl(probe, _SIOCGIFADDR, request)[20:24] == own:
                    return name
    return None


def get_pid() -> int:
    """The process id."""
    return os.getpid()


def get_task_uid() -> str:
    """A globally unique name."""
    return f"{secrets.token_hex(8)}_{time.time_ns()}"


class ReportingThread(threading.Thread):
    """A daemon thread that reports an error of its target.

    Args:
        target: The function to run.
        name: Name of the thread.
        on_failure: Called in the thread with the cause (one line) if `target` raises, after the
            traceback was logged. It must release all threads that wait for `target`.
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
    """Bytes of memory available on the host, or in the container if that is less.

    Returns 2^63 if the system does not report it.
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
        # Cached files count as used, but can be evicted.
        with open(f"{_CGROUP}/memory.stat") as file:
            cache = next(int(line.split()[1]) for line in file if line.startswith("inactive_file"))
        found.append(max(0, limit - used + cache))
    return min(found)


def fits_memory(size: int) -> bool:
    """Whether `size` bytes fit into the available memory; always true up to 64 MiB."""
    return size <= _SMALL or size <= available_memory()


class PropagatingThread(threading.Thread):
    """A thread whose `join` returns the target's result, or raises its error."""

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
        """Wait for the end; returns None if the thread is alive after `timeout` seconds."""
        super().join(timeout)
        if self.is_alive():
            return None
        if self.exc is not None:
            raise self.exc
        return self.ret


def find_free_port(host: str) -> int:
    """A free TCP port at `host`, an address of this host.

    The ports found last are not returned again, because their callers may not listen yet. Another
    program may still use the port first.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as held:  # keeps ports open, so that each try finds another one
        tries = 0
        while True:
            probe = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
            # As servers do: with this option, ports of connections that have just ended are free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, 0))
            port: int = probe.getsockname()[1]
            tries += 1
            with _found_lock:
                if port not in _found or tries > _FOUND_NUM:
                    _found.append(port)
                    return port
