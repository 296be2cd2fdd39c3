"""What stands around a coordinator, learner or collector in its own process.

The part runs in a thread; the main thread waits for whatever may end it: a signal, a message of the
supervisor, the supervisor's death, or the part's own end.
"""

import contextlib
import math
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ding.entry.run.signals import StopNow, StopSignal, woken_by_signals
from ding.utils import durations
from ding.utils.console import say
from ding.utils.ending import SIGNALS, Ending
from ding.utils.errors import DingError
from ding.utils.log_file import leave_process
from ding.utils.processes import end_processes
from ding.utils.system_helper import ReportingThread
from ding.worker.engines.carrier import ProcessEnd

# ---------------------------------------------------------------------- messages of a part


@dataclass(frozen=True)
class Up:
    """It works.

    Attributes:
        port: The coordinator's.
    """

    port: int | None = None


@dataclass(frozen=True)
class Ensure:
    """From the coordinator: a worker's process has to run, and join at an address."""

    name: str
    address: str


@dataclass(frozen=True)
class Kill:
    """From the coordinator: a worker's process has to end at once."""

    name: str


#: An ending is how it ends; the coordinator's, the run's verdict, comes before its own end.
PartMessage = Up | Ensure | Kill | Ending

# ---------------------------------------------------------------------- messages of its parent


@dataclass(frozen=True)
class WorkerStarted:
    """For the coordinator: should the parent be killed, it has to end the others.

    Attributes:
        process: A `process_identity`.
    """

    name: str
    process: dict[str, Any]


#: An ending is why it is to end.
ParentMessage = Ending | WorkerStarted | ProcessEnd


# ---------------------------------------------------------------------- the process

#: Takes status and reason of the end that is asked for.
StopFunction = Callable[[str, str], object]


class PartHandle:
    """What a part knows of the process around it; to the coordinator, a `Starter` of workers.

    Attributes:
        stopping: The end that was asked for, if one was.
        clean: Called at the very end if the supervisor has ended and cannot do it.
        on_exit: Called when the supervisor has seen a worker's end.
        has_parent: Whether there is a supervisor.
    """

    def __init__(self, link: Connection | None) -> None:
        self.stopping: Ending | None = None
        self.clean: Callable[[], object] = lambda: None
        self.on_exit: Callable[[ProcessEnd], object] = lambda end: None
        self.has_parent = link is not None
        self._link = link
        self._lock = threading.Lock()
        self._stop: StopFunction | None = None
        self._siblings: dict[str, dict[str, Any]] = {}
        self._orphaned: float | None = None

    def on_stop(self, stop: StopFunction) -> None:
        """Have ``stop`` called, in a separate thread, when an end is asked for."""
        with self._lock:
            self._stop = stop
            self._call_stop()

    def send(self, message: PartMessage) -> None:
        """Send a message to the supervisor, if there is one."""
        if self._link is not None:
            with contextlib.suppress(OSError), self._lock:
                self._link.send(message)

    def ensure(self, name: str, address: str) -> None:
        """Have a worker's process live, which joins at an address; one that lives is left alone."""
        self.send(Ensure(name, address))

    def kill(self, name: str) -> None:
        """End a worker's process at once, if it lives."""
        self.send(Kill(name))

    def ask_to_stop(self, ending: Ending) -> None:
        """Ask the part for an end; only the first one counts."""
        with self._lock:
            if self.stopping is None:
                self.stopping = ending
                self._call_stop()

    def take(self, message: ParentMessage) -> None:
        """Take a message of the supervisor."""
        if isinstance(message, Ending):
            self.ask_to_stop(message)
        elif isinstance(message, ProcessEnd):
            self.on_exit(message)
        else:
            self._siblings[message.name] = message.process

    def orphan(self) -> None:
        """The supervisor has ended: end, too."""
        self._orphaned = time.monotonic()
        self.ask_to_stop(Ending("interrupted", "the process that started the run has ended"))

    def take_over(self) -> None:
        """Do what the supervisor would at the end, if that has ended: end the others, and clean."""
        if self._orphaned is not None:
            left = self._orphaned + durations.PART_STOP - time.monotonic()
            end_processes(self._siblings.values(), max(0.0, left))
            self.clean()

    def _call_stop(self) -> None:
        """Call it as soon as it is there and an end is asked for."""
        if self._stop is not None and self.stopping is not None:
            asks = self.stopping.status, self.stopping.reason
            say_failure = lambda cause: say(f"error: {cause}", to_stderr=True)  # noqa: E731
            ReportingThread(self._stop, "stop", say_failure, asks).start()


#: A part's life in a process; returns how it ended.
PartMain = Callable[[PartHandle], Ending]


def run_part(run: PartMain, link: Connection | None = None, takes_sigint: bool = True) -> Ending:
    """Run a part until its end.

    Args:
        run: The part.
        link: To and from the supervisor; ends with it.
        takes_sigint: Whether Ctrl-C is for this process.

    Returns:
        How it ended. A part that does not stop when it has to does not return: the process ends.
        What it raised is printed, unless it is a `DingError` and there is no supervisor: then
        the ending's reason, which the caller prints, says all.
    """
    handle = PartHandle(link)
    done_read, done_write = os.pipe()
    ended: list[Ending] = []

    def work() -> None:
        try:
            ended.append(run(handle))
        except BaseException as error:  # the edge of the thread: reported onward
            name = "" if isinstance(error, DingError) else f"{type(error).__name__}: "
            ended.append(Ending("failed", f"{name}{error}"))
            if not isinstance(error, DingError):
                say("".join(traceback.format_exception(error)).rstrip(), to_stderr=True)
            elif link is not None:
                say(f"error: {error}", to_stderr=True)
        finally:
            try:
                handle.send(ended[0])
            finally:
                os.write(done_write, b".")

    # The supervisor decides otherwise; when a closed terminal ends it, there is time to clean up.
    ignored = () if takes_sigint else (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT))
    stop = StopSignal(set(SIGNALS).difference(ignored), ignored)
    stop.patient = True
    try:
        with woken_by_signals() as alarm, stop:
            worker = threading.Thread(target=work, name="part", daemon=True)
            worker.start()
            _wait_for_end(handle, done_read, alarm, stop, link)
            worker.join(durations.PART_JOIN)
            handle.take_over()
    except StopNow as signalled:
        leave_process(signalled.ending.exit_status)
    os.close(done_read)
    os.close(done_write)
    return ended[0]


def _wait_for_end(
    handle: PartHandle, done: int, alarm: int, stop: StopSignal, link: Connection | None
) -> None:
    """Wait for a part's end, and pass on what asks for it; if it is overdue, end the process."""
    sources: list[Any] = [done, alarm, *([] if link is None else [link])]
    deadline = math.inf
    while (left := deadline - time.monotonic()) > 0:
        ready = wait(sources, None if left == math.inf else left)
        if done in ready:
            return
        if alarm in ready:
            os.read(alarm, 64)
            if stop.ending is not None:
                handle.ask_to_stop(stop.ending)
        if link is not None and link in ready:
            try:
                handle.take(link.recv())
            except (EOFError, OSError):
                sources.remove(link)
                handle.orphan()
        if handle.stopping is not None and deadline == math.inf:
            deadline = time.monotonic() + durations.PART_STOP
    handle.take_over()
    say(f"{handle.stopping} (it did not end within {durations.PART_STOP:g} s)", to_stderr=True)
    leave_process(1)
