"""The processes of a run, as their parent sees them: started, watched, asked to stop, killed."""

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ding.entry.part_process import ParentMessage, PartMain, PartMessage, run_part
from ding.entry.part_runs import last_error_line
from ding.entry.run.signals import StopSignal, woken_by_signals
from ding.utils import CloudPickleWrapper, durations
from ding.utils.ending import Ending
from ding.utils.log_file import drop_pending, leave_process, redirect_output
from ding.utils.processes import ChildProcess, close_inherited_ends, how_it_ended, process_identity


@dataclass(frozen=True)
class Died:
    """A process has ended; all of its messages came before.

    Attributes:
        status: Exit status, negative for a signal.
        cause: The cause of failure that it reported; empty if none.
        how: Description of the status, with the cause or the last line of its output.
    """

    status: int
    cause: str
    how: str


#: What a part has sent, or that it has died, with its name.
Event = tuple[str, PartMessage | Died]


class Processes:
    """The parts of a run, by their names; the parent needs no thread for them.

    They end when their parent does.

    Args:
        outputs: By name, file for what a part prints; ``None``: it keeps the terminal.

    Attributes:
        start_limit: Seconds that one may take until it says that it works.
    """

    def __init__(self, outputs: Mapping[str, str | None]) -> None:
        self._outputs = outputs
        self._children: dict[str, ChildProcess] = {}
        self._endings: dict[str, Ending] = {}  # as they have reported them
        self._method = start_method()
        is_fork = self._method == "fork"
        self.start_limit = durations.FORK_START if is_fork else durations.SPAWN_START
        self._open = contextlib.ExitStack()
        self._alarm = self._open.enter_context(woken_by_signals())

    def start(self, name: str, main: PartMain) -> None:
        """Start a part; one of that name must not live."""
        given = main if self._method == "fork" else CloudPickleWrapper(main)
        self._children[name] = ChildProcess(
            _child_main,
            lambda _, link: (given, link, self._outputs[name]),
            self._method,
            name,
        )

    def send(self, name: str, message: ParentMessage) -> None:
        """Send a message; whether it comes is not known, for the part may be dead."""
        child = self._children.get(name)
        if child is not None and not child.link.closed:
            with contextlib.suppress(OSError):
                child.link.send(message)

    def wait(self, until: float) -> list[Event]:
        """What has happened; waits for that, a signal, or a moment of the monotonic clock."""
        sources = [self._alarm]
        for child in self._children.values():
            sources += [one for one in child.waitables if not getattr(one, "closed", False)]
        left = None if until == math.inf else max(0.0, until - time.monotonic())
        if self._alarm in wait(sources, left):
            os.read(self._alarm, 64)
        events: list[Event] = []
        for name, child in list(self._children.items()):
            is_dead = not child.is_alive  # before its last messages are read
            for message in _messages(child.link):
                if isinstance(message, Ending):
                    self._endings[name] = message
                events.append((name, message))
            if is_dead:
                events.append((name, self._forget(name)))
        return events

    def kill(self, name: str) -> None:
        """End a part at once, without an event; nothing if it does not live."""
        child = self._children.get(name)
        if child is not None:
            child.kill()
            self._forget(name)

    def is_alive(self, name: str) -> bool:
        """Whether it was started, and its death was not reported."""
        return name in self._children

    def identity(self, name: str) -> dict[str, Any] | None:
        """A `process_identity`, if it lives."""
        child = self._children.get(name)
        return None if child is None else process_identity(child.process.pid)

    def close(self) -> None:
        """End all at once, and free what belongs to them."""
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
        """Wait until these have ended, or the deadline; a signal that comes brings that nearer.

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
        because = cause or (last_error_line(output) if output else "")
        return Died(status, cause, f"{how}: {because}" if because and status > 0 else how)


def start_method() -> str:
    """``fork`` where it is safe: children start at once, and know what the caller registered."""
    import torch

    is_safe = sys.platform == "linux" and not torch.cuda.is_initialized()
    return "fork" if is_safe else "spawn"


def _messages(link: Connection) -> list[PartMessage]:
    """All that have come; a pipe that has ended is closed."""
    messages: list[PartMessage] = []
    try:
        while not link.closed and link.poll():
            messages.append(link.recv())
    except (EOFError, OSError):
        link.close()
    return messages


def _child_main(main: Any, link: Connection, output: str | None) -> None:
    close_inherited_ends()
    drop_pending()  # the parent's, and written by it
    if output is not None:
        redirect_output(output)
    ending = run_part(getattr(main, "data", main), link, takes_sigint=False)
    # Not by returning: threads of users' code that never end would be waited for.
    leave_process(ending.exit_status)
