"""Child processes of a parallel run."""

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from ding.entry.part_process import PartHandle, run_part
from ding.entry.part_runs import last_error_line
from ding.utils import CloudPickleWrapper
from ding.utils.log_file import drop_pending, flush_all

#: Runs a part in the child; see :func:`run_part`.
PartMain = Callable[[PartHandle], int]


class Child:
    """A process, what it told, and how it ended.

    Args:
        name: Such as ``collector0``.
        output: File for what it prints; ``None``: it keeps the terminal.

    Attributes:
        up: Whether it has told that it works.
        error: What it told to have failed of.
        started: When it was, by the monotonic clock.
        restarts: How often it was started again.
        exit_status: As of a process of `multiprocessing`; 0 until it is reaped.
        how: Signal or exit status, and the error behind it.
    """

    def __init__(self, name: str, output: str | None) -> None:
        self.name, self.output = name, output
        self.process: Any = None
        self.link: Connection | None = None
        self.restarts = 0
        self._reset()

    def _reset(self) -> None:
        self.up, self.error, self.started = False, "", time.monotonic()
        self.exit_status = 0
        self.how = ""

    def start(self, main: PartMain, lifeline: tuple[Connection, Connection], method: str) -> None:
        """Start the process.

        Args:
            main: What it runs.
            lifeline: Both ends; the supervisor alone keeps the writing one.
            method: ``fork`` or ``spawn``.
        """
        self._reset()
        context: Any = multiprocessing.get_context(method)
        self.link, theirs = context.Pipe()
        is_fork = method == "fork"
        arguments = (
            main if is_fork else CloudPickleWrapper(main),
            *(theirs, lifeline[0], self.output),
            # A forked child has these too and has to close them, or nobody would see an end.
            [self.link, lifeline[1]] if is_fork else [],
        )
        self.process = context.Process(target=_child_main, args=arguments, name=self.name)
        self.process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.is_alive()

    def tell(self, word: str, *facts: Any) -> None:
        """Send a word to the child, if it is there."""
        if self.link is not None:
            with contextlib.suppress(OSError):
                self.link.send((word, *facts))

    def heard(self) -> list[tuple]:
        """All words that the child has sent and that were not read yet."""
        words: list[tuple] = []
        if self.link is None:
            return words
        try:
            while self.link.poll():
                words.append(self.link.recv())
        except (EOFError, OSError):
            self.link.close()
            self.link = None
        return words

    @property
    def sources(self) -> list[Any]:
        """What to wait on for its words and its death."""
        found = [] if self.process is None else [self.process.sentinel]
        return found if self.link is None else [*found, self.link]

    @property
    def is_dead(self) -> bool:
        """Whether it has ended and was not reaped."""
        return self.process is not None and not self.process.is_alive()

    def end(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, if it lives."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def reap(self) -> str:
        """Free what belongs to a process once it has ended; returns how that was."""
        if self.link is not None:
            self.link.close()
            self.link = None
        if self.process is not None and self.process.pid is not None:
            self.process.join()
            self.exit_status = self.process.exitcode or 0
            self.how = self._how()
            self.process.close()
        self.process = None
        return self.how

    def _how(self) -> str:
        code = self.exit_status
        if code < 0:
            return f"was killed by {_signal_name(-code)}"
        error = self.error or (last_error_line(self.output) if self.output and code else "")
        return f"ended with status {code}" + (f": {error}" if error else "")


class PipeEvent:
    """An event that two processes share. Unlike `multiprocessing.Event`, it survives their deaths:
    setting it never waits, and a listener hears of the other's end as of the event.
    """

    def __init__(self) -> None:
        self._reader, self._writer = multiprocessing.Pipe(duplex=False)

    def set(self) -> None:
        """Set it, for good."""
        if not self.is_set():
            with contextlib.suppress(OSError):
                self._writer.send_bytes(b".")

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is set within so many seconds."""
        return self._reader.poll(timeout)  # the byte stays there

    def only_listen(self) -> None:
        """In the process that does not set it: hear of the end of the one that does."""
        self._writer.close()


def _child_main(
    main: Any,
    link: Connection,
    lifeline: Connection,
    output: str | None,
    not_ours: list[Connection],
) -> None:
    for connection in not_ours:
        connection.close()
    drop_pending()  # the parent's, and written by it
    if output is not None:
        _redirect(output)
    run = getattr(main, "data", main)
    status = run_part(run, link, lifeline, heeds_sigint=False)
    flush_all()  # forked processes run no exit handlers
    sys.stdout.flush()
    sys.stderr.flush()
    # Not by returning: threads of users' code that never end would be waited for.
    os._exit(status)


def _redirect(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for target in (1, 2):
        os.dup2(fd, target)
    os.close(fd)
    # Whatever stood there (a notebook's, a test's) does not lead to the file.
    sys.stdout, sys.stderr = (
        open(fd, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        for fd in (1, 2)
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
