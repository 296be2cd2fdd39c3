"""Which process it was: numbers alone are given to other processes later."""

import contextlib
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from functools import cache
from multiprocessing.connection import wait
from typing import Any

from ding.utils import durations


def process_identity(pid: int | None = None) -> dict[str, Any]:
    """What a process can be known by later, as plain JSON.

    Args:
        pid: Of this host; this process if not given.

    Returns:
        ``host``, ``pid``, and ``started``: when, in the system's own words; ``None`` if there is
        no such process.
    """
    pid = os.getpid() if pid is None else pid
    return {"host": platform.node(), "pid": pid, "started": _started(pid)}


def still_runs(identity: Mapping[str, Any]) -> bool | None:
    """Whether a process goes on; ``None`` if that cannot be told, as it is of another host.

    Args:
        identity: A `process_identity`, perhaps read from a file.
    """
    if identity.get("host") != platform.node():
        return None
    pid, started = identity.get("pid"), identity.get("started")
    return type(pid) is int and started is not None and _started(pid) == started


def end_processes(identities: Iterable[Mapping[str, Any]], seconds: float) -> None:
    """Wait for processes of this host to end, and kill those that have not in time.

    Args:
        identities: See `process_identity`.
        seconds: Time that they have, all together.
    """
    deadline = time.monotonic() + seconds
    for identity in identities:
        with contextlib.suppress(OSError):
            _end(identity, deadline)


def _end(identity: Mapping[str, Any], deadline: float) -> None:
    if not still_runs(identity):
        return
    if sys.platform != "linux":
        os.kill(identity["pid"], signal.SIGKILL)
        return
    process = os.pidfd_open(identity["pid"])
    try:
        if still_runs(identity) and not wait([process], max(0.0, deadline - time.monotonic())):
            signal.pidfd_send_signal(process, signal.SIGKILL)
            wait([process], durations.KILLED_GONE)
    finally:
        os.close(process)


def _started(pid: int) -> str | None:
    if sys.platform == "linux":
        return _started_on_linux(pid)
    try:
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=durations.KILLED_GONE
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _started_on_linux(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name before the last bracket may hold anything.
            state, *fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    # Field 22 of proc(5), in ticks since the start of the machine.
    return None if state in b"ZX" else f"{_boot()}:{int(fields[18])}"


@cache
def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
