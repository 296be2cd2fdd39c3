"""The processes of one learner that train together, as children of one parent."""

import math
import time
from functools import partial

from easydict import EasyDict

from ding.config.hosts import LOOPBACK
from ding.config.system import kind_of, rank_of, worker_names
from ding.entry.part_process import Stop
from ding.entry.part_runs import output_path, rank_environ, run_worker
from ding.entry.processes import Died, Processes, Said, wait_for_ends
from ding.entry.run_files import recorded_ending
from ding.entry.stop_signal import StopNow, StopSignal
from ding.utils import durations
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError
from ding.utils.system_helper import ReservedPort


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
    names = _ranks_of(config, name)
    if port:
        for offset, one in enumerate(names):
            config.system[one].port = port + offset
    return _Ranks(config, key, names).run()


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


class _Ranks:
    def __init__(self, config: EasyDict, key: str, names: list[str]) -> None:
        self._config, self._key, self._names = config, key, names
        exp_name = config.main.exp_name
        self._port = ReservedPort(LOOPBACK)  # where they meet
        self._processes = Processes({name: output_path(exp_name, name) for name in names})
        self._deaths: list[Died] = []

    def run(self) -> Ending:
        with StopSignal() as stop:
            stop.patient = True
            try:
                self._start()
                while stop.number is None and not self._deaths:
                    for event in self._processes.wait(math.inf):
                        self._take(event)
                ending = stop.ending or self._how_they_ended()
                for name in self._names:
                    self._processes.send(name, Stop(ending))
                deadline = time.monotonic() + durations.PART_STOP
                wait_for_ends(self._processes, self._names, deadline, stop, self._take)
            except StopNow as signalled:
                ending = signalled.ending
            finally:
                self._processes.close()
                self._port.close()
        return ending

    def _start(self) -> None:
        for name in self._names:
            environ = rank_environ(name, self._config.system, self._port.port)
            self._processes.start(
                name,
                partial(run_worker, config=self._config, name=name, key=self._key, environ=environ),
            )

    def _take(self, event: Said | Died) -> None:
        if isinstance(event, Died):
            self._deaths.append(event)

    def _how_they_ended(self) -> Ending:
        for death in self._deaths:
            if death.status:
                return Ending("failed", f"{death.name} {death.how}")
        return recorded_ending(self._config.main.exp_name)
