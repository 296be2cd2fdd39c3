"""The processes of one learner that train together, as children of one parent."""

import contextlib
import math
import time
from collections.abc import Mapping
from functools import partial

from easydict import EasyDict

from ding.config.hosts import LOOPBACK
from ding.config.system import kind_of, rank_of, worker_names
from ding.entry.part_runs import output_path, rank_environ, run_worker
from ding.entry.processes import Died, Processes
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
