"""Starts the processes of a parallel run, starts dead ones again, and ends them all."""

import contextlib
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import wait
from typing import Any

from easydict import EasyDict

from ding.config.hosts import reachable
from ding.config.system import kind_of, worker_names
from ding.entry.children import Child
from ding.entry.part_process import STOP_SECONDS
from ding.entry.part_runs import output_path, run_coordinator, run_worker
from ding.entry.stop_signal import StopNow, StopSignal

#: Seconds that a process may take until it says that it works.
_START_SECONDS = {"fork": 10.0, "spawn": 60.0}
#: Seconds that the coordinator may take to end a run that nobody interrupts.
_CLOSE_SECONDS = 10.0
#: Seconds that workers may take once the coordinator has ended.
_WORKER_SECONDS = 1.5
#: Seconds before a dead process is started again: the n-th time and all later ones.
_WAITS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
#: Seconds of life after which earlier deaths no longer count.
_GOOD_LIFE = 600.0
_COORDINATOR = "coordinator"


class Supervisor:
    """Parent of a run's processes. It runs no thread, no tensor operation and no server.

    Args:
        config: Compiled parallel config; workers' ports on ``'auto'``.
        key: The run's key.
        resume: Go on from the coordinator's saved state.
    """

    def __init__(self, config: EasyDict, key: str, resume: bool = False) -> None:
        self._config = config
        self._key = key
        self._resume = resume
        self._method = start_method()
        self._lifeline = multiprocessing.Pipe(duplex=False)
        exp_name = config.main.exp_name
        names = worker_names(config.main, config.system)
        self._workers = {name: Child(name, output_path(exp_name, name)) for name in names}
        self._coordinator = Child(_COORDINATOR, None)
        self._due: dict[str, float] = {}
        self._given_up: set[str] = set()
        self._cause: tuple[str, str] | None = None  # why the run is ended from here
        self._verdict: tuple[str, str] | None = None  # the coordinator's

    def run(self) -> tuple[str, str]:
        """Run to the end; returns status and reason. All processes are gone then."""
        with StopSignal() as stop, _woken_by_signals() as self._alarm:
            stop.patient = True
            try:
                self._start(self._coordinator)
                while stop.number is None and self._cause is None and self._verdict is None:
                    self._step(self._next_due())
                    self._look_after()
                self._end(stop)
            except StopNow as signalled:
                self._cause = "interrupted", str(signalled)
                self._verdict = None
            finally:
                self._kill_all()
        return self._conclusion()

    # ------------------------------------------------------------------ running

    def _children(self) -> list[Child]:
        return [self._coordinator, *self._workers.values()]

    def _start(self, child: Child) -> None:
        self._due.pop(child.name, None)
        if child is self._coordinator:
            # After a restart: if it had come so far as to save something.
            self._config.resume_coordinator = self._resume or (None if child.restarts else False)
            main = partial(run_coordinator, config=self._config, key=self._key)
        else:
            main = partial(run_worker, config=self._config, name=child.name, key=self._key)
        child.start(main, self._lifeline, self._method)

    def _next_due(self) -> float:
        """The next moment at which something has to be done though nothing has happened."""
        limit = _START_SECONDS[self._method]
        starting = [c.started + limit for c in self._children() if c.alive and not c.up]
        return min([*self._due.values(), *starting], default=math.inf)

    def _step(self, until: float) -> None:
        """Wait for words, deaths or signals, and take the words."""
        sources: list[Any] = [self._alarm]
        for child in self._children():
            sources += child.sources
        left = None if until == math.inf else max(0.0, until - time.monotonic())
        if self._alarm in wait(sources, left):
            os.read(self._alarm, 64)
        for child in self._children():
            self._heed(child)

    def _heed(self, child: Child) -> None:
        for word, *facts in child.heard():
            if word == "up":
                child.up = True
                if child is self._coordinator:
                    self._found_coordinator(facts[0])
            elif word == "error":
                child.error = facts[0]
            elif word == "verdict":
                self._verdict = facts[0], facts[1]

    def _found_coordinator(self, port: int) -> None:
        """The coordinator listens: it keeps this port for good, and workers can be started."""
        coordinator = self._config.system.coordinator
        coordinator.port = port
        for child in self._workers.values():
            self._config.system[child.name].coordinator = [reachable(coordinator.host), port]
            if child.process is None and child.name not in {*self._due, *self._given_up}:
                self._start(child)

    def _look_after(self) -> None:
        """Start what is due, and see who is dead or does not come up."""
        now = time.monotonic()
        for child in self._children():
            if self._due.get(child.name, math.inf) <= now:
                self._start(child)
            elif child.is_dead:
                self._heed(child)  # its last words may have come in between
                self._on_death(child)
            elif child.alive and not child.up and now - child.started > self._start_seconds:
                self._fail(f"{child.name} did not come up in {now - child.started:.0f} s")
            if self._cause is not None or self._verdict is not None:
                return

    @property
    def _start_seconds(self) -> float:
        return _START_SECONDS[self._method]

    def _on_death(self, child: Child) -> None:
        how = child.reap()
        if not child.up and child.error:
            # What fails while it is built fails again.
            self._fail(f"{child.name}: {child.error}")
            return
        if time.monotonic() - child.started > _GOOD_LIFE:
            child.restarts = 0
        most = self._config.system.max_restart
        left = child.exit_status == 0 and child is not self._coordinator
        if left or child.restarts >= most:
            self._give_up(child, "left" if left else how)
            return
        child.restarts += 1
        pause = _WAITS[min(child.restarts, len(_WAITS)) - 1]
        self._due[child.name] = time.monotonic() + pause
        self._note(f"{child.name} {how}; starting it again ({child.restarts} of {most})")

    def _give_up(self, child: Child, how: str) -> None:
        times = f"died {child.restarts + 1} times, at last: " if child.restarts else ""
        self._given_up.add(child.name)
        words = f"{child.name} {times}{how}"
        others = {kind_of(name) for name in self._workers if name not in self._given_up}
        if kind_of(child.name) in others:
            self._note(f"{words}; going on without it")
        else:
            self._fail(words)

    def _note(self, line: str) -> None:
        """Show a line to the operator; the coordinator owns the terminal while it lives."""
        if self._coordinator.alive and self._coordinator.up:
            self._coordinator.tell("note", line)
        else:
            print(line, file=sys.stderr, flush=True)

    # ------------------------------------------------------------------ the end

    def _fail(self, reason: str) -> None:
        self._cause = "failed", reason

    def _end(self, stop: StopSignal) -> None:
        """Have all processes end in good order, the coordinator first, within a bounded time."""
        told = stop.number
        if told is not None and self._verdict is None and self._cause is None:
            self._cause = "interrupted", stop.name
        seconds = _CLOSE_SECONDS if self._cause is None else STOP_SECONDS
        if self._cause is not None:
            self._coordinator.tell("stop", *self._cause)
        self._await([self._coordinator], time.monotonic() + seconds, stop, told)
        workers = list(self._workers.values())
        for child in workers:
            child.tell("stop", *self._conclusion())
        self._await(workers, time.monotonic() + _WORKER_SECONDS, stop, stop.number)

    def _await(
        self, children: list[Child], deadline: float, stop: StopSignal, told: int | None
    ) -> None:
        """Wait until these have ended, or the deadline; a signal brings that nearer."""
        while any(child.alive for child in children) and time.monotonic() < deadline:
            self._step(deadline)
            for child in self._children():
                if child.is_dead:
                    self._heed(child)
                    child.reap()
            if stop.number != told:
                told = stop.number
                deadline = min(deadline, time.monotonic() + STOP_SECONDS)

    def _kill_all(self) -> None:
        for child in self._children():
            child.end(signal.SIGKILL)
        for child in self._children():
            child.reap()
        for end in self._lifeline:
            end.close()

    def _conclusion(self) -> tuple[str, str]:
        if self._cause is not None and (self._cause[0] == "failed" or self._verdict is None):
            return self._cause
        return self._verdict or ("failed", f"coordinator {self._coordinator.how or 'hung'}")


def start_method() -> str:
    """``fork`` where it is safe: children start at once, and know what the caller registered."""
    import torch

    is_safe = sys.platform == "linux" and not torch.cuda.is_initialized()
    return "fork" if is_safe else "spawn"


@contextlib.contextmanager
def _woken_by_signals() -> Iterator[int]:
    """A descriptor that can be read as soon as a signal has come."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False) if is_main else -1
    try:
        yield read
    finally:
        if is_main:
            signal.set_wakeup_fd(before)
        os.close(read)
        os.close(write)
