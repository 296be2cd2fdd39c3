"""The process, its host, and threads that do not lose errors."""

import os
import secrets
import socket
import threading
import time
from typing import Any


def get_ip() -> str:
    """The address by which other hosts reach this one; the loopback address without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 1))  # sends nothing: UDP only picks the interface
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


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


def find_free_port(host: str) -> int:
    """A TCP port that nobody listens on at `host`, an address of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]
