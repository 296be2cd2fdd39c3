"""The process, its host, and threads that do not lose errors."""

import os
import secrets
import socket
import threading
import time
from collections import deque
from typing import Any

#: What `get_ip` gives without a network.
NO_NETWORK = "127.0.0.1"
_FOUND_NUM = 100
_found: deque[int] = deque(maxlen=_FOUND_NUM)
_found_lock = threading.Lock()


def get_ip() -> str:
    """The address by which other hosts reach this one; the loopback address without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 1))  # sends nothing: UDP only picks the interface
            return probe.getsockname()[0]
        except OSError:
            return NO_NETWORK


def get_pid() -> int:
    """The process id."""
    return os.getpid()


def get_task_uid() -> str:
    """A name that no other call gives, on any host."""
    return f"{secrets.token_hex(8)}_{time.time_ns()}"


class PropagatingThread(threading.Thread):
    """A thread whose `join` returns the target's result, or raises what it raised."""

    def run(self) -> None:
        self.ret: Any = None
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


class ReservedPort:
    """A free TCP port that no other program is given until it is closed.

    A server may listen on it meanwhile, as long as that allows addresses to be used again, as
    servers do.

    Args:
        host: An address of this machine.

    Attributes:
        port: The port.
    """

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, 0))
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]

    def close(self) -> None:
        """Let others have it."""
        self._socket.close()


def find_free_port(host: str) -> int:
    """A TCP port that nobody listens on at `host`, an address of this machine.

    The last ones that were found are not found again, as whoever asked may not listen yet. Other
    programs may take it all the same: `ReservedPort` keeps them from it.
    """
    held: list[ReservedPort] = []
    try:
        while True:
            held.append(ReservedPort(host))
            port = held[-1].port
            with _found_lock:
                if port not in _found or len(held) > _FOUND_NUM:
                    _found.append(port)
                    return port
    finally:
        for one in held:
            one.close()
