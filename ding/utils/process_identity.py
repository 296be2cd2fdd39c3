"""Which process it was: numbers alone are given to other processes later."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

_SECONDS = 5.0


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


def _started(pid: int) -> str | None:
    if sys.platform == "linux":
        return _started_on_linux(pid)
    try:
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
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
