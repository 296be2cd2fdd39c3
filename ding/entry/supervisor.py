"""Starts the processes of a parallel run, starts dead ones again, and ends them all."""

import math
import time
from functools import partial
from typing import Any

from easydict import EasyDict

from ding.config.hosts import LOOPBACK, OPEN_PORTS, reachable
from ding.config.system import (
    aggregator_of,
    kind_of,
    processes_per_learner,
    rank_of,
    worker_names,
)
from ding.entry.child_group import ChildGroup, woken_by_signals
from ding.entry.children import Child
from ding.entry.part_runs import output_path, rank_environ, run_coordinator, run_worker
from ding.entry.stop_signal import StopNow, StopSignal
from ding.utils import durations
from ding.utils.console import say
from ding.utils.ending import Ending
from ding.utils.process_identity import process_identity
from ding.utils.system_helper import ReservedPort

_COORDINATOR = "coordinator"


class Supervisor(ChildGroup):
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
        exp_name = config.main.exp_name
        names = worker_names(config.main, config.system)
        self._workers = {name: Child(name, output_path(exp_name, name)) for name in names}
        self._coordinator = Child(_COORDINATOR, None)
        super().__init__([self._coordinator, *self._workers.values()])
        self._due: dict[str, float] = {}
        self._given_up: set[str] = set()
        self._team_ports: dict[str, ReservedPort] = {}
        self._cause: Ending | None = None  # why the run is ended from here
        self._verdict: Ending | None = None  # the coordinator's
        is_fork = self._method == "fork"
        self._start_limit = durations.FORK_START if is_fork else durations.SPAWN_START

    def run(self, stop: StopSignal) -> Ending:
        """Run to the end; returns how it ended. All processes are gone then.

        Args:
            stop: The signals, which it takes over.
        """
        with woken_by_signals() as self._alarm:
            stop.patient = True
            try:
                self._start(self._coordinator)
                while stop.number is None and self._cause is None and self._verdict is None:
                    self._step(self._next_due())
                    self._look_after()
                self._end(stop)
            except StopNow as signalled:
                self._cause = signalled.ending
                self._verdict = None
            finally:
                self._kill_all()
                for reserved in self._team_ports.values():
                    reserved.close()
        return self._conclusion()

    # ------------------------------------------------------------------ running

    def _start(self, child: Child) -> None:
        self._due.pop(child.name, None)
        if child is self._coordinator:
            # After a restart: if it had come so far as to save something.
            self._config.resume_coordinator = self._resume or (None if child.restarts else False)
            main = partial(run_coordinator, config=self._config, key=self._key)
        else:
            main = partial(
                run_worker,
                config=self._config,
                name=child.name,
                key=self._key,
                environ=self._environ(child.name),
            )
        child.start(main, self._lifeline, self._method)
        # Should this process be killed, the coordinator has to end the others.
        told = self._workers.values() if child is self._coordinator else [child]
        for worker in told:
            if worker.alive:
                identity = process_identity(worker.process.pid)
                self._coordinator.tell("started", worker.name, identity)

    def _environ(self, name: str) -> dict[str, str]:
        """What a learner's process needs to find the others that train with it."""
        system = self._config.system
        team = aggregator_of(name, system)
        if team is None:
            return {}
        if team not in self._team_ports:
            self._team_ports[team] = ReservedPort(LOOPBACK)
        port = self._team_ports[team].port
        return rank_environ(rank_of(name, system)[1], processes_per_learner(system), port)

    def _next_due(self) -> float:
        """The next moment at which something has to be done though nothing has happened."""
        starting = [
            child.started + self._start_limit
            for child in self._group
            if child.alive and not child.up
        ]
        return min([*self._due.values(), *starting], default=math.inf)

    def _heed_word(self, child: Child, word: str, facts: list[Any]) -> None:
        if word == "up":
            child.up = True
            self._came_up(child, facts[0])
        elif word == "error":
            child.error = facts[0]
        elif word == "verdict":
            self._verdict = facts[0]

    def _came_up(self, child: Child, where: Any) -> None:
        """Start those who wait for this one; it keeps its port when it is started again."""
        system = self._config.system
        if child is self._coordinator:
            system.coordinator.port = where
            address = [reachable(system.coordinator.host), where]
        elif kind_of(child.name) == "learner_aggregator":
            host, _, port = where.rpartition("://")[2].rpartition(":")
            system[child.name].master = EasyDict(host=host, port=int(port))
            address = [host, int(port)]
        for other in self._workers.values():
            if (aggregator_of(other.name, system) or _COORDINATOR) != child.name:
                continue
            if system[other.name].port in OPEN_PORTS:  # to others the coordinator connects
                system[other.name].coordinator = address
            if other.process is None and other.name not in {*self._due, *self._given_up}:
                self._start(other)

    def _look_after(self) -> None:
        """Start what is due, and see who is dead or does not come up."""
        now = time.monotonic()
        for child in self._group:
            if self._due.get(child.name, math.inf) <= now:
                self._start(child)
            elif child.is_dead:
                self._heed(child)  # its last words may have come in between
                if self._verdict is None:
                    self._on_death(child)
            elif child.alive and not child.up and now - child.started > self._start_limit:
                self._fail(f"{child.name} did not come up in {now - child.started:.0f} s")
            if self._cause is not None or self._verdict is not None:
                return

    def _on_death(self, child: Child) -> None:
        how = child.reap()
        if not child.up and (child.error or child.exit_status > 0):
            # What fails while it is built fails again.
            self._fail(f"{child.name}: {child.error}" if child.error else f"{child.name} {how}")
            return
        if time.monotonic() - child.started > durations.GOOD_LIFE:
            child.restarts = 0
        most = self._config.system.max_restart
        left = child.exit_status == 0 and child is not self._coordinator
        if left or child.restarts >= most:
            self._give_up(child, "left" if left else how)
            return
        child.restarts += 1
        pause = durations.RESTART_WAITS[min(child.restarts, len(durations.RESTART_WAITS)) - 1]
        self._due[child.name] = time.monotonic() + pause
        self._tell_end(child, f"{how}; starting it again ({child.restarts} of {most})")

    def _give_up(self, child: Child, how: str) -> None:
        times = f"died {child.restarts + 1} times, at last: " if child.restarts else ""
        self._given_up.add(child.name)
        words = f"{times}{how}"
        others = {kind_of(name) for name in self._workers if name not in self._given_up}
        if kind_of(child.name) in others and not aggregator_of(child.name, self._config.system):
            self._tell_end(child, f"{words}; going on without it")
        else:
            self._fail(f"{child.name} {words}")

    def _tell_end(self, child: Child, words: str) -> None:
        """Tell the coordinator of a worker's end, and it the operator, whose terminal it owns."""
        if self._coordinator.alive and self._coordinator.up:
            self._coordinator.tell("ended", child.name, words)
        else:
            say(f"{child.name} {words}", to_stderr=True)

    # ------------------------------------------------------------------ the end

    def _fail(self, reason: str) -> None:
        self._cause = Ending("failed", reason)

    def _end(self, stop: StopSignal) -> None:
        """Have all processes end in good order, the coordinator first, within a bounded time."""
        told = stop.number
        if told is not None and self._verdict is None and self._cause is None:
            self._cause = Ending.by_signal(told)
        alone, all_told = _time_to_end(hurry=self._cause is not None)
        if self._cause is not None:
            self._coordinator.tell("stop", self._cause)
        begin = time.monotonic()
        self._await([self._coordinator], begin + alone, stop, told)
        if stop.number != told:  # a signal that came in between: hurry
            alone, all_told = _time_to_end(hurry=True)
            begin = time.monotonic() - alone
        for child in self._workers.values():
            child.tell("stop", self._conclusion())
        self._await(self._group, begin + all_told, stop, stop.number)

    def _conclusion(self) -> Ending:
        cause = self._cause
        if cause is not None and (cause.status == "failed" or self._verdict is None):
            return cause
        hung = f"coordinator {self._coordinator.how or 'hung'}"
        return self._verdict or Ending("failed", hung)


def _time_to_end(hurry: bool) -> tuple[float, float]:
    """Seconds that the coordinator has by itself, and that all processes have."""
    if hurry:
        return durations.COORDINATOR_STOPPING, durations.ALL_STOPPING
    return durations.COORDINATOR_ENDING, durations.ALL_ENDING
