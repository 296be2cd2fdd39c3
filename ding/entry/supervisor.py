"""Parent processes of a run's parts: they start and end all parts."""

import contextlib
import math
import time
from collections.abc import Sequence
from functools import partial

from easydict import EasyDict

from ding.config.system import kind_of, place_in_team, worker_names
from ding.config.utils import OPEN_PORTS, move_worker, reachable
from ding.entry.part_process import (
    Died,
    Ensure,
    Event,
    Kill,
    Processes,
    Up,
    WorkerStarted,
)
from ding.entry.part_runs import output_path, run_coordinator, run_worker
from ding.entry.run.folder import recorded_ending
from ding.entry.run.signals import StopNow, StopSignal
from ding.interaction.base.network import split_http_address
from ding.utils import durations
from ding.utils.console import say
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError
from ding.utils.processes import Restarts
from ding.worker.engines.carrier import ProcessEnd

_COORDINATOR = "coordinator"


class Supervisor:
    """Parent of a run's parts. It runs no threads, tensor operations or servers.

    It starts the coordinator, and restarts it if it dies; the coordinator decides which workers run
    (`ding.worker.engines.control`).

    Args:
        config: Compiled parallel config; workers' ports are ``'auto'``.
        key: The run's key.
        resume: Whether to continue from the coordinator's saved state.
    """

    def __init__(self, config: EasyDict, key: str, resume: bool = False) -> None:
        self._config, self._key, self._resume = config, key, resume
        self._workers = worker_names(config.main, config.system)
        outputs = {name: output_path(config.main.exp_name, name) for name in self._workers}
        self._processes = Processes({_COORDINATOR: None, **outputs})
        self._up: set[str] = set()  # parts that have reported that they are running
        self._restarts = Restarts({_COORDINATOR: _COORDINATOR}, config.system.max_restart)
        self._started: float | None = None  # start of the coordinator, by the monotonic clock
        #: When the coordinator must have started; or when it must be restarted.
        self._due: float | None = None
        self._cause: Ending | None = None  # why the supervisor ends the run
        self._verdict: Ending | None = None  # from the coordinator
        self._coordinator_end = "hung"

    def run(self, stop: StopSignal) -> Ending:
        """Run to the end, when all parts have ended; returns how it ended.

        Args:
            stop: The signals; handled here from now on.
        """
        stop.patient = True
        try:
            self._start_coordinator()
            while stop.number is None and not self._is_over:
                for event in self._processes.wait(math.inf if self._due is None else self._due):
                    self._take(event)
                self._look_after()
            self._end(stop)
        except StopNow as signalled:
            self._cause, self._verdict = signalled.ending, None
        finally:
            self._processes.close()
        return self._conclusion()

    @property
    def _is_over(self) -> bool:
        return self._cause is not None or self._verdict is not None

    # ------------------------------------------------------------------ running

    def _start_coordinator(self) -> None:
        # After a restart, resume if the coordinator has saved a state.
        is_first = self._started is None
        self._config.resume_coordinator = self._resume or (False if is_first else None)
        self._started = time.monotonic()
        self._due = self._started + self._processes.start_limit
        main = partial(run_coordinator, config=self._config, key=self._key)
        self._processes.start(_COORDINATOR, main)
        # A restarted coordinator must know the surviving workers.
        self._name_processes(self._workers)

    def _start_worker(self, name: str, address: str) -> None:
        entry = self._config.system[name]
        if entry.port in OPEN_PORTS:  # the coordinator connects to the others
            host = reachable(self._config.system.coordinator.host)
            entry.coordinator = [host, split_http_address(address)[1]]
        main = partial(run_worker, config=self._config, name=name, key=self._key)
        self._processes.start(name, main)
        self._name_processes([name])

    def _name_processes(self, names: Sequence[str]) -> None:
        for name in names:
            process = self._processes.identity(name)
            if process is not None:
                self._processes.send(_COORDINATOR, WorkerStarted(name, process))

    def _take(self, event: Event) -> None:
        name, news = event
        match news:
            case Died():
                self._on_death(name, news)
            case Up():
                self._up.add(name)
                if name == _COORDINATOR:  # keeps its port after a restart
                    self._config.system.coordinator.port, self._due = news.port, None
            case Ensure():
                if not (self._is_over or self._processes.is_alive(news.name)):
                    self._start_worker(news.name, news.address)
            case Kill():
                self._processes.kill(news.name)
            # Before it has started, this is the cause of its death: see `_on_death`.
            case Ending() if name == _COORDINATOR and name in self._up:
                self._verdict = self._verdict or news

    def _look_after(self) -> None:
        """Start the coordinator if it is due, and check whether it starts in time."""
        if self._is_over or self._due is None or self._due > time.monotonic():
            return
        if self._processes.is_alive(_COORDINATOR):
            limit = self._processes.start_limit
            self._fail(f"{_COORDINATOR} did not come up in {limit:.0f} s")
        else:
            self._start_coordinator()

    def _on_death(self, name: str, death: Died) -> None:
        was_up = name in self._up
        self._up.discard(name)
        # An error during construction would occur again.
        is_unbuilt = not was_up and bool(death.cause or death.status > 0)
        if name == _COORDINATOR:
            self._on_coordinators_death(death, is_unbuilt)
            return
        end = ProcessEnd(name, death.how)
        if is_unbuilt:
            end = ProcessEnd(name, death.cause or death.how, "unbuilt")
        elif death.status == 0:
            end = ProcessEnd(name, "left", "left")
        if self._processes.is_alive(_COORDINATOR):  # it decides what to do
            self._processes.send(_COORDINATOR, end)
        elif not self._is_over:
            say(f"{name} {end.how}", to_stderr=True)

    def _on_coordinators_death(self, death: Died, is_unbuilt: bool) -> None:
        self._due, self._coordinator_end = None, death.how
        if self._is_over:
            return
        if is_unbuilt:
            self._fail(f"coordinator: {death.cause}" if death.cause else f"coordinator {death.how}")
            return
        assert self._started is not None
        now = time.monotonic()
        after = self._restarts.after_death(_COORDINATOR, death.how, now - self._started)
        if after.pause is None:
            self._fail(f"{_COORDINATOR} {after.text}")
            return
        self._due = now + after.pause
        say(f"{_COORDINATOR} {after.text}", to_stderr=True)

    # ------------------------------------------------------------------ the end

    def _fail(self, reason: str) -> None:
        self._cause = Ending("failed", reason)

    def _end(self, stop: StopSignal) -> None:
        """End all parts normally, the coordinator first, within a time limit."""
        number = stop.number
        if not self._is_over:
            self._cause = stop.ending
        alone, everybody = _time_to_end(in_haste=self._cause is not None)
        if self._cause is not None:
            self._processes.send(_COORDINATOR, self._cause)
        begin = time.monotonic()
        self._processes.wait_for_ends([_COORDINATOR], begin + alone, stop, self._take)
        if stop.number != number:  # a signal that arrived in between
            alone, everybody = _time_to_end(in_haste=True)
            begin = time.monotonic() - alone
        for name in self._workers:
            self._processes.send(name, self._conclusion())
        everyone = [_COORDINATOR, *self._workers]
        self._processes.wait_for_ends(everyone, begin + everybody, stop, self._take)

    def _conclusion(self) -> Ending:
        cause = self._cause
        if cause is not None and (cause.status == "failed" or self._verdict is None):
            return cause
        return self._verdict or Ending("failed", f"coordinator {self._coordinator_end}")


def _time_to_end(in_haste: bool) -> tuple[float, float]:
    """Seconds that the coordinator has to end by itself, and that all parts have."""
    if in_haste:
        return durations.COORDINATOR_STOPPING, durations.ALL_STOPPING
    return durations.COORDINATOR_ENDING, durations.ALL_ENDING


def run_ranks(
    config: EasyDict, key: str, name: str | None = None, port: int | None = None
) -> Ending:
    """Run all processes of a learner on this host; returns how it ended.

    If one of them dies, the others end as well, since they cannot train without it.

    Args:
        config: Compiled parallel config.
        key: The run's key.
        name: One of its processes; of the first learner if not given.
        port: Port of the first process, others count up from it; by default the config's.
    """
    exp_name, names = config.main.exp_name, _ranks_of(config, name)
    for offset, one in enumerate(names):
        move_worker(config, one, None, port and port + offset)
    processes = Processes({one: output_path(exp_name, one) for one in names})
    with StopSignal() as stop, contextlib.closing(processes):
        stop.patient = True
        try:
            for one in names:
                processes.start(one, partial(run_worker, config=config, name=one, key=key))
            deaths: dict[str, Died] = {}
            while stop.number is None and not deaths:
                events = processes.wait(math.inf)
                deaths = {one: news for one, news in events if isinstance(news, Died)}
            bad = [f"{one} {death.how}" for one, death in deaths.items() if death.status]
            ending = Ending("failed", bad[0]) if bad else recorded_ending(exp_name)
            ending = stop.ending or ending
            for one in names:
                processes.send(one, ending)
            processes.wait_for_ends(names, time.monotonic() + durations.PART_STOP, stop)
        except StopNow as signalled:
            return signalled.ending
    return ending


def _ranks_of(config: EasyDict, name: str | None) -> list[str]:
    system = config.system
    learners = [n for n in worker_names(config.main, system) if kind_of(n) == "learner"]
    if name not in (None, *learners):
        raise ConfigError(f"the config has no learner {name!r}; it has {', '.join(learners)}")
    rank, size = place_in_team(name or learners[0], system)
    first = learners.index(name or learners[0]) - rank
    return learners[first : first + size]
