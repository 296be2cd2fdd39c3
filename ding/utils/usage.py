"""Measures CPU, memory and GPU usage of a process and its children, for the run's log."""

import contextlib
import os
import platform
import resource
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache

from ding.utils import durations

#: Names of the figures; 100 percent of CPU is one core, a megabyte is 10^6 bytes.
FIGURES = ("cpu_percent", "memory_mb", "gpu_memory_mb")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class UsageMeter:
    """Measures the resource usage of this process. Thread-safe.

    Args:
        children: Whether to include child processes, such as those of environments.
    """

    def __init__(self, children: bool = True) -> None:
        self._children = children
        self._lock = threading.Lock()
        self._time = time.monotonic()
        self._seconds = _cpu_seconds(self._pids())
        self._figures: dict[str, float] = {}

    def read(self) -> dict[str, float] | None:
        """Measure the available figures of `FIGURES`, unless the last ones are recent.

        Returns:
            ``None`` if the last figures are younger than ``durations.USAGE_SPAN``.
        """
        with self._lock:
            span = time.monotonic() - self._time
            if span < durations.USAGE_SPAN:
                return None
            pids = self._pids()
            seconds = _cpu_seconds(pids)
            # Processes that have ended since are not included: their CPU time is unknown.
            used = sum(now - self._seconds.get(pid, 0.0) for pid, now in seconds.items())
            figures = {
                "cpu_percent": round(100 * used / span, 1),
                "memory_mb": round(_memory(pids) / 1e6, 1),
                **_gpu_figures(),
            }
            self._time, self._seconds, self._figures = time.monotonic(), seconds, figures
            return figures

    def latest(self) -> Mapping[str, float]:
        """The figures, measured again if they are old; empty during the first span."""
        return self.read() or self._figures

    def _pids(self) -> list[int]:
        pids = [os.getpid()]
        if self._children:
            for pid in pids:  # the list grows in the loop
                # The file of each thread lists the children that it has started.
                with contextlib.suppress(OSError):
                    for thread in os.listdir(f"/proc/{pid}/task"):
                        with open(f"/proc/{pid}/task/{thread}/children") as file:
                            pids.extend(map(int, file.read().split()))
        return pids


@cache
def process_meter() -> UsageMeter:
    """The meter of this process, shared by all tasks: a task may be shorter than one span."""
    return UsageMeter()


def process_name() -> str:
    """A name of this process that is unique in a run."""
    return f"{platform.node()}:{os.getpid()}"


def reported_usage() -> dict[str, float | str]:
    """The figures of this process in a worker's report, with its `process_name`."""
    return {"process": process_name(), **process_meter().latest()}


def _cpu_seconds(pids: list[int]) -> dict[int, float]:
    """CPU time of processes; without ``/proc``, only that of this process."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as file:
                # The name, up to the last bracket, may contain anything. Fields 14, 15 of proc(5).
                fields = file.read().rpartition(b")")[2].split()
            found[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
    return found or {os.getpid(): time.process_time()}


def _memory(pids: list[int]) -> float:
    """Resident memory of the first process plus the unshared memory of the others, in bytes."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/statm") as file:
                _, resident, shared, *_ = map(int, file.read().split())
            # Forked children share most memory with their parent: count it once.
            total += (resident if pid == pids[0] else resident - shared) * _PAGE
    if total:
        return total
    # The peak so far, in kilobytes (bytes on macOS).
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _gpu_figures() -> dict[str, float]:
    """GPU memory that torch has reserved in this process; empty if CUDA is not in use."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "cuda") or not torch.cuda.is_initialized():
        return {}
    return {"gpu_memory_mb": round(torch.cuda.memory_reserved() / 1e6, 1)}
