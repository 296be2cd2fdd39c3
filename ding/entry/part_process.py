"""Processes of a run's parts (coordinator, learners, collectors): the part's and the parent's side.

A part runs in a thread of its process; the main thread waits for anything that may end it: a
signal, a message of the parent, the parent's death, or the part's own end. The parent needs no
thread.
"""

import contextlib
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ding.entry.run.signals import StopNow, StopSignal, woken_by_signals
from ding.utils import CloudPickleWrapper, durations
from ding.utils.console import say
from ding.utils.ending import SIGNALS, Ending
from ding.utils.errors import DingError
from ding.utils.file_helper import open_regular
from ding.utils.log_file import drop_pending, leave_process, redirect_output
from ding.utils.processes import (
    ChildProcess,
    close_inherited_ends,
    end_processes,
    how_it_ended,
    process_identity,
)
from ding.utils.system_helper import ReportingThread
from ding.worker.engines.carrier import ProcessEnd

# ---------------------------------------------------------------------- messages of a part


@dataclass(frozen=True)
class Up:
    """The part has started; ``port`` is the coordinator's."""

    port: int | None = None


@dataclass(frozen=True)
class Ensure:
    """From the coordinator: a worker's process must run, and join at an address."""

    name: str
    address: str


@dataclass(frozen=True)
class Kill:
    """From the coordinator: kill a worker's process."""

    name: str


#: An `Ending` states how the part ends; the coordinator sends its verdict before its own end.
PartMessage = Up | Ensure | Kill | Ending

# ---------------------------------------------------------------------- messages of its parent


@dataclass(frozen=True)
class WorkerStarted:
    """For the coordinator: the `process_identity` to kill if the parent is killed."""

    name: str
    process: dict[str, Any]


#: An `Ending` is the reason why the part must end.
ParentMessage = Ending | WorkerStarted | ProcessEnd


# ---------------------------------------------------------------------- the process

#: Takes status and reason of the requested end.
StopFunction = Callable[[str, str], object]


class PartHandle:
    """A part's interface to its process; for the coordinator, a `Starter` of workers.

    Attributes:
        stopping: The requested end, if any.
        clean: Called at the very end if the supervisor has died and cannot clean up.
        on_exit: Called when the supervisor reports a worker's end.
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
        """Register ``stop``, which a separate thread calls when an end is requested."""
        with self._lock:
            self._stop = stop
            self._call_stop()

    def send(self, message: PartMessage) -> None:
        """Send a message to the supervisor, if there is one."""
        if self._link is not None:
            with contextlib.suppress(OSError), self._lock:
                self._link.send(message)

    def ensure(self, name: str, address: str) -> None:
        """Start a worker's process, which joins at an address, unless it is running."""
        self.send(Ensure(name, address))

    def kill(self, name: str) -> None:
        """Kill a worker's process if it is running."""
        self.send(Kill(name))

    def ask_to_stop(self, ending: Ending) -> None:
        """Request the part's end; only the first request counts."""
        with self._lock:
            if self.stopping is None:
                self.stopping = ending
                self._call_stop()

    def take(self, message: ParentMessage) -> None:
        """Process a message of the supervisor."""
        if isinstance(message, Ending):
            self.ask_to_stop(message)
        elif isinstance(message, ProcessEnd):
            self.on_exit(message)
        else:
            self._siblings[message.name] = message.process

    def orphan(self) -> None:
        """The supervisor has died: end the part."""
        self._orphaned = time.monotonic()
        self.ask_to_stop(Ending("interrupted", "the process that started the run has ended"))

    def take_over(self) -> None:
        """Do the supervisor's work at the end if it has died: end the other parts, and clean up."""
        if self._orphaned is not None:
            left = self._orphaned + durations.PART_STOP - time.monotonic()
            end_processes(self._siblings.values(), max(0.0, left))
            self.clean()

    def _call_stop(self) -> None:
        """Call `stop` as soon as it is registered and an end is requested."""
        if self._stop is not None and self.stopping is not None:
            asks = self.stopping.status, self.stopping.reason
            say_failure = lambda cause: say(f"error: {cause}", to_stderr=True)  # noqa: E731
            ReportingThread(self._stop, "stop", say_failure, asks).start()


#: Runs a part in a process; returns how it ended.
PartMain = Callable[[PartHandle], Ending]


def run_part(run: PartMain, link: Connection | None = None, takes_sigint: bool = True) -> Ending:
    """Run a part until its end.

    Args:
        run: The part.
        link: Connection to the supervisor; the part ends with it.
        takes_sigint: Whether this process handles Ctrl-C.

    Returns:
        How the part ended. If the part does not stop when it must, this function does not return:
        the process exits. An exception is printed, unless it is a `DingError` and there is no
        supervisor: the ending's reason, which the caller prints, is then sufficient.
    """
    handle = PartHandle(link)
    done_read, done_write = os.pipe()
    ended: list[Ending] = []

    def work() -> None:
        try:
            ended.append(run(handle))
        except BaseException as error:  # the edge of the thread: reported below
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

    # Otherwise the supervisor decides; when a closed terminal ends it, there is time to clean up.
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
    """Wait for a part's end, and pass on requests for it; if it is overdue, end the process."""
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


# ---------------------------------------------------------------------- the parent's side


@dataclass(frozen=True)
class Died:
    """A process has ended; reported after all of its messages."""

    status: int  # negative for a signal
    cause: str  # reported by the process; empty if none
    how: str  # the status as text, with the cause or the last line of its output


#: A part's name, and its message or death.
Event = tuple[str, PartMessage | Died]


class Processes:
    """The parts of a run, by name; the parent needs no thread for them.

    They end when their parent dies.

    Args:
        outputs: By name, the file for a part's output; ``None``: the terminal.

    Attributes:
        start_limit: Maximum seconds until a part reports that it has started.
    """

    def __init__(self, outputs: Mapping[str, str | None]) -> None:
        self._outputs = outputs
        self._children: dict[str, ChildProcess] = {}
        self._endings: dict[str, Ending] = {}  # as reported by the parts
        self._method = start_method()
        is_fork = self._method == "fork"
        self.start_limit = durations.FORK_START if is_fork else durations.SPAWN_START
        self._open = contextlib.ExitStack()
        self._alarm = self._open.enter_context(woken_by_signals())

    def start(self, name: str, main: PartMain) -> None:
        """Start a part; a part of that name must not be running."""
        given = main if self._method == "fork" else CloudPickleWrapper(main)
        self._children[name] = ChildProcess(
            _child_main,
            lambda _, link: (given, link, self._outputs[name]),
            self._method,
            name,
        )

    def send(self, name: str, message: ParentMessage) -> None:
        """Send a message, which is lost if the part is dead."""
        child = self._children.get(name)
        if child is not None and not child.link.closed:
            with contextlib.suppress(OSError):
                child.link.send(message)

    def wait(self, until: float) -> list[Event]:
        """Wait for events, a signal, or a time of the monotonic clock; returns the events."""
        sources: list[Connection | int] = [self._alarm]
        for child in self._children.values():
            sources += [one for one in child.waitables if not getattr(one, "closed", False)]
        left = None if until == math.inf else max(0.0, until - time.monotonic())
        if self._alarm in wait(sources, left):
            os.read(self._alarm, 64)
        events: list[Event] = []
        for name, child in list(self._children.items()):
            is_dead = not child.is_alive  # checked before its last messages are read
            for message in _messages(child.link):
                if isinstance(message, Ending):
                    self._endings[name] = message
                events.append((name, message))
            if is_dead:
                events.append((name, self._forget(name)))
        return events

    def kill(self, name: str) -> None:
        """Kill a part without an event, if it is running."""
        child = self._children.get(name)
        if child is not None:
            child.kill()
            self._forget(name)

    def is_alive(self, name: str) -> bool:
        """Whether the part was started and its death was not reported yet."""
        return name in self._children

    def identity(self, name: str) -> dict[str, Any] | None:
        """The part's `process_identity`, if it is running."""
        child = self._children.get(name)
        return None if child is None else process_identity(child.process.pid)

    def close(self) -> None:
        """Kill all parts, and free their resources."""
        for child in self._children.values():
            child.kill()
        for name in list(self._children):
            self._forget(name)
        self._open.close()

    def wait_for_ends(
        self,
        names: Collection[str],
        deadline: float,
        stop: StopSignal,
        on_event: Callable[[Event], object] = lambda event: None,
    ) -> None:
        """Wait until these parts have ended, or the deadline; a signal shortens the deadline.

        Args:
            on_event: Called with each event in the meantime.
        """
        number = stop.number
        while any(map(self.is_alive, names)) and time.monotonic() < deadline:
            for event in self.wait(deadline):
                on_event(event)
            if stop.number != number:
                number = stop.number
                deadline = min(deadline, time.monotonic() + durations.PART_STOP)

    def _forget(self, name: str) -> Died:
        child = self._children.pop(name)
        status = child.end_status(durations.KILLED_GONE) or 0
        child.link.close()
        child.process.close()
        how, output = how_it_ended(status), self._outputs[name]
        ending = self._endings.pop(name, None)
        cause = ending.reason if ending is not None and ending.status == "failed" else ""
        because = cause or (_last_error_line(output) if output else "")
        return Died(status, cause, f"{how}: {because}" if because and status > 0 else how)


def start_method() -> str:
    """``fork`` if it is safe: children start fast, and know the caller's registered classes."""
    import torch

    is_safe = sys.platform == "linux" and not torch.cuda.is_initialized()
    return "fork" if is_safe else "spawn"


def _messages(link: Connection) -> list[PartMessage]:
    """All messages received so far; a pipe that has ended is closed."""
    messages: list[PartMessage] = []
    try:
        while not link.closed and link.poll():
            messages.append(link.recv())
    except (EOFError, OSError):
        link.close()
    return messages


def _child_main(main: Any, link: Connection, output: str | None) -> None:
    close_inherited_ends()
    drop_pending()  # it belongs to the parent, which writes it
    if output is not None:
        redirect_output(output)
    ending = run_part(getattr(main, "data", main), link, takes_sigint=False)
    # Without returning, which would wait for custom threads that never end.
    leave_process(ending.exit_status)


def _last_error_line(path: str) -> str:
    """The last line of a worker's output with the cause of its death; empty if there is none."""
    with contextlib.suppress(OSError), open_regular(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else ""
    return ""
