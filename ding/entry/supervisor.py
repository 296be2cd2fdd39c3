"""Parents of a run's parts: they start them, start dead ones again, and end them all."""

import contextlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from easydict import EasyDict

from ding.config.hosts import LOOPBACK, OPEN_PORTS, reachable
from ding.config.system import (
    aggregator_of,
    kind_of,
    rank_of,
    worker_names,
)
from ding.entry.part_process import Up, WorkerEnded, WorkerStarted
from ding.entry.part_runs import output_path, rank_environ, run_coordinator, run_worker
from ding.entry.processes import Died, Event, Processes
from ding.entry.run.folder import recorded_ending
from ding.entry.run.signals import StopNow, StopSignal
from ding.utils import durations
from ding.utils.console import say
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError
from ding.utils.processes import Restarts
from ding.utils.system_helper import ReservedPort

_COORDINATOR = "coordinator"


@dataclass
class _Part:
    """What is known of a part.

    Attributes:
        is_up: Whether it has said that it works.
        started: When it was, by the monotonic clock; ``None`` before the first time.
        due: When it has to be up, if it is being started; when it is to be started again, if it
            died.
    """

    name: str
    is_up: bool = False
    started: float | None = None
    due: float | None = None


class Supervisor:
    """Parent of a run's parts. It runs no thread, no tensor operation and no server.

    Args:
        config: Compiled parallel config; workers' ports on ``'auto'``.
        key: The run's key.
        resume: Go on from the coordinator's saved state.
    """

    def __init__(self, config: EasyDict, key: str, resume: bool = False) -> None:
        self._config, self._key, self._resume = config, key, resume
        names = worker_names(config.main, config.system)
        self._coordinator = _Part(_COORDINATOR)
        self._workers = {name: _Part(name) for name in names}
        self._parts = {_COORDINATOR: self._coordinator, **self._workers}
        # One process of a learner cannot be done without, whatever other learners there are.
        kinds = {n: n if aggregator_of(n, config.system) else kind_of(n) for n in self._parts}
        self._restarts = Restarts(kinds, config.system.max_restart)
        self._processes = Processes(
            {_COORDINATOR: None, **{n: output_path(config.main.exp_name, n) for n in names}}
        )
        self._group_ports: dict[str, ReservedPort] = {}
        self._cause: Ending | None = None  # why the run is ended from here
        self._verdict: Ending | None = None  # the coordinator's
        self._coordinator_end = "hung"

    def run(self, stop: StopSignal) -> Ending:
        """Run to the end; returns how it ended. All parts are gone then.

        Args:
            stop: The signals, which it takes over.
        """
        stop.patient = True
        try:
            self._start(self._coordinator)
            while stop.number is None and not self._is_over:
                for event in self._processes.wait(self._next_due()):
                    self._take(event)
                self._look_after()
            self._end(stop)
        except StopNow as signalled:
            self._cause, self._verdict = signalled.ending, None
        finally:
            self._processes.close()
            for reserved in self._group_ports.values():
                reserved.close()
        return self._conclusion()

    @property
    def _is_over(self) -> bool:
        return self._cause is not None or self._verdict is not None

    # ------------------------------------------------------------------ running

    def _start(self, part: _Part) -> None:
        is_first = part.started is None
        part.is_up, part.started = False, time.monotonic()
        part.due = part.started + self._processes.start_limit
        if part is self._coordinator:
            # After a restart: if it had come so far as to save something.
            self._config.resume_coordinator = self._resume or (False if is_first else None)
            main = partial(run_coordinator, config=self._config, key=self._key)
        else:
            main = partial(
                run_worker,
                config=self._config,
                name=part.name,
                key=self._key,
                environ=self._environ(part.name),
            )
        self._processes.start(part.name, main)
        news = self._workers if part is self._coordinator else [part.name]
        for name in news:
            process = self._processes.identity(name)
            if process is not None:
                self._processes.send(_COORDINATOR, WorkerStarted(name, process))

    def _environ(self, name: str) -> dict[str, str]:
        """What a learner's process needs to find the others that train with it."""
        system = self._config.system
        group = aggregator_of(name, system)
        if group is None:
            return {}
        if group not in self._group_ports:
            self._group_ports[group] = ReservedPort(LOOPBACK)
        port = self._group_ports[group].port
        return rank_environ(name, system, port)

    def _next_due(self) -> float:
        """The next moment at which something has to be done though nothing has happened."""
        due = [part.due for part in self._parts.values() if part.due is not None]
        return min(due, default=math.inf)

    def _take(self, event: Event) -> None:
        name, news = event
        part = self._parts[name]
        if isinstance(news, Died):
            self._on_death(part, news)
        elif isinstance(news, Up):
            part.is_up, part.due = True, None
            self._start_dependents(part, news.where)
        elif part is self._coordinator and part.is_up:
            self._verdict = self._verdict or news

    def _start_dependents(self, part: _Part, where: Any) -> None:
        """Start those who wait for this one; it keeps its port when it is started again."""
        system = self._config.system
        address: list[Any] = []
        if part is self._coordinator:
            system.coordinator.port = where
            address = [reachable(system.coordinator.host), where]
        elif kind_of(part.name) == "learner_aggregator":
            host, _, port = where.rpartition("://")[2].rpartition(":")
            system[part.name].master = EasyDict(host=host, port=int(port))
            address = [host, int(port)]
        for worker in self._workers.values():
            if (aggregator_of(worker.name, system) or _COORDINATOR) != part.name:
                continue
            if system[worker.name].port in OPEN_PORTS:  # to others the coordinator connects
                system[worker.name].coordinator = address
            if worker.started is None:
                self._start(worker)

    def _look_after(self) -> None:
        """Start what is due, and see who does not come up."""
        for part in self._parts.values():
            if self._is_over:
                return
            if part.due is None or part.due > time.monotonic():
                continue
            if self._processes.is_alive(part.name):
                limit = self._processes.start_limit
                self._fail(f"{part.name} did not come up in {limit:.0f} s")
            else:
                self._start(part)

    def _on_death(self, part: _Part, death: Died) -> None:
        part.due = None
        if part is self._coordinator:
            self._coordinator_end = death.how
        if self._is_over:
            return
        if not part.is_up and (death.cause or death.status > 0):
            # What fails while it is built fails again.
            self._fail(f"{part.name}: {death.cause}" if death.cause else f"{part.name} {death.how}")
            return
        assert part.started is not None
        now = time.monotonic()
        if death.status == 0 and part is not self._coordinator:
            after = self._restarts.without(part.name, "left")
        else:
            after = self._restarts.after_death(part.name, death.how, now - part.started)
        if after.is_end:
            self._fail(f"{part.name} {after.text}")
            return
        if after.pause is not None:
            part.due = now + after.pause
        self._report_death(part, after.text)

    def _report_death(self, part: _Part, cause: str) -> None:
        """To the coordinator, and by it to the operator, whose terminal it owns."""
        if self._coordinator.is_up and self._processes.is_alive(_COORDINATOR):
            self._processes.send(_COORDINATOR, WorkerEnded(part.name, cause))
        else:
            say(f"{part.name} {cause}", to_stderr=True)

    # ------------------------------------------------------------------ the end

    def _fail(self, reason: str) -> None:
        self._cause = Ending("failed", reason)

    def _end(self, stop: StopSignal) -> None:
        """Have all parts end in good order, the coordinator first, within a bounded time."""
        number = stop.number
        if not self._is_over:
            self._cause = stop.ending
        alone, everybody = _time_to_end(in_haste=self._cause is not None)
        if self._cause is not None:
            self._processes.send(_COORDINATOR, self._cause)
        begin = time.monotonic()
        self._processes.wait_for_ends([_COORDINATOR], begin + alone, stop, self._take)
        if stop.number != number:  # a signal that came in between
            alone, everybody = _time_to_end(in_haste=True)
            begin = time.monotonic() - alone
        for name in self._workers:
            self._processes.send(name, self._conclusion())
        self._processes.wait_for_ends(self._parts, begin + everybody, stop, self._take)

    def _conclusion(self) -> Ending:
        cause = self._cause
        if cause is not None and (cause.status == "failed" or self._verdict is None):
            return cause
        return self._verdict or Ending("failed", f"coordinator {self._coordinator_end}")


def _time_to_end(in_haste: bool) -> tuple[float, float]:
    """Seconds that the coordinator has by itself, and that all parts have."""
    if in_haste:
        return durations.COORDINATOR_STOPPING, durations.ALL_STOPPING
    return durations.COORDINATOR_ENDING, durations.ALL_ENDING


def run_ranks(
    config: EasyDict, key: str, name: str | None = None, port: int | None = None
) -> Ending:
    """Run all processes of a learner on this machine; returns how it ended.

    If one of them dies, the others end as well: they cannot train without it.

    Args:
        config: Compiled parallel config.
        key: The run's key.
        name: The learner's aggregator, or one of its processes; the first learner if not given.
        port: Of the first process, and so on upwards; else what the config says.
    """
    exp_name, system = config.main.exp_name, config.system
    names = _ranks_of(config, name)
    if port:
        for offset, one in enumerate(names):
            system[one].port = port + offset
    processes = Processes({one: output_path(exp_name, one) for one in names})
    meeting = ReservedPort(LOOPBACK)
    with StopSignal() as stop, contextlib.closing(meeting), contextlib.closing(processes):
        stop.patient = True
        try:
            for one in names:
                environ = rank_environ(one, system, meeting.port)
                main = partial(run_worker, config=config, name=one, key=key, environ=environ)
                processes.start(one, main)
            deaths: dict[str, Died] = {}
            while stop.number is None and not deaths:
                events = processes.wait(math.inf)
                deaths = {one: news for one, news in events if isinstance(news, Died)}
            ending = stop.ending or _how_they_ended(exp_name, deaths)
            for one in names:
                processes.send(one, ending)
            processes.wait_for_ends(names, time.monotonic() + durations.PART_STOP, stop)
        except StopNow as signalled:
            return signalled.ending
    return ending


def _how_they_ended(exp_name: str, deaths: Mapping[str, Died]) -> Ending:
    for name, death in deaths.items():
        if death.status:
            return Ending("failed", f"{name} {death.how}")
    return recorded_ending(exp_name)


def _ranks_of(config: EasyDict, name: str | None) -> list[str]:
    system = config.system
    learners = [n for n in worker_names(config.main, system) if kind_of(n) == "learner"]
    if name is None:
        index = 0
    elif name in learners:
        index = rank_of(name, system)[0]
    elif name in system and kind_of(name) == "learner_aggregator":
        index = int(name.removeprefix("learner_aggregator"))
    else:
        raise ConfigError(f"the config has no learner {name!r}; it has {', '.join(learners)}")
    return [n for n in learners if rank_of(n, system)[0] == index]
