"""The processes of one learner that train together, as children of one parent."""

import math
import time
from functools import partial
from typing import Any

from easydict import EasyDict

from ding.config.hosts import LOOPBACK
from ding.config.system import kind_of, processes_per_learner, rank_of, worker_names
from ding.entry.child_group import ChildGroup, woken_by_signals
from ding.entry.children import Child
from ding.entry.part_runs import output_path, rank_environ, run_worker
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


class _Ranks(ChildGroup):
    def __init__(self, config: EasyDict, key: str, names: list[str]) -> None:
        self._config, self._key = config, key
        exp_name = config.main.exp_name
        self._port = ReservedPort(LOOPBACK)  # where they meet
        super().__init__([Child(name, output_path(exp_name, name)) for name in names])

    def run(self) -> Ending:
        with StopSignal() as stop, woken_by_signals() as self._alarm:
            stop.patient = True
            try:
                self._start()
                while stop.number is None and all(child.alive for child in self._group):
                    self._step(math.inf)
                verdict = self._how(stop)
                for child in self._group:
                    child.tell("stop", verdict)
                self._await(self._group, time.monotonic() + durations.PART_STOP, stop, stop.number)
            except StopNow as signalled:
                verdict = signalled.ending
            finally:
                self._kill_all()
                self._port.close()
        return verdict

    def _start(self) -> None:
        count = processes_per_learner(self._config.system)
        for rank, child in enumerate(self._group):
            environ = rank_environ(rank, count, self._port.port)
            main = partial(
                run_worker,
                config=self._config,
                name=child.name,
                key=self._key,
                environ=environ,
            )
            child.start(main, self._lifeline, self._method)

    def _heed_word(self, child: Child, word: str, facts: list[Any]) -> None:
        if word == "error":
            child.error = facts[0]

    def _how(self, stop: StopSignal) -> Ending:
        if stop.number is not None:
            return Ending.by_signal(stop.number)
        causes = []
        for child in self._group:
            if child.is_dead:
                self._heed(child)
                how = child.reap()
                if child.exit_status:
                    causes.append(f"{child.name} {how}")
        if causes:
            return Ending("failed", causes[0])
        return recorded_ending(self._config.main.exp_name)
