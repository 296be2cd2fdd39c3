"""The system part of a parallel config: which processes there are, where, and on which engine."""

import copy
import os
from collections.abc import Collection, Mapping

from easydict import EasyDict

from ding.config.adapt import COLLECTOR_NUM
from ding.config.check import KeyChecker, Notes, Problems, check_ranges
from ding.config.defaults import layered
from ding.config.parts import default_config, import_names
from ding.config.schema import COUNTS, examples
from ding.data.buffer.rate_limiter import RateLimiter, sample_ratio
from ding.utils import ENGINE_REGISTRY, deep_merge_dicts
from ding.utils.errors import ConfigError
from ding.utils.settings import at, put
from ding.utils.types import Config, Settings
from ding.worker import Coordinator

DEFAULT_ENGINE = "flask_fs"
_WHERE = "system_config.engine"
#: Learners of a parallel run, in the main config.
LEARNER_NUM = "policy.learn.learner.learner_num"
SYSTEM_DEFAULTS: Config = {
    "coordinator": {**Coordinator.default_config(), "host": None, "port": "auto"},
    # What carries messages, samples and weights: its type, and what that knows.
    "engine": {"type": DEFAULT_ENGINE, "import_names": []},
    "path_data": "",
    "path_policy": "",
    "communication_mode": "auto",
    "learner_gpu_num": 1,
    # How often the processes of one worker are started again after they died.
    "max_restart": 5,
}
SYSTEM_DEFAULTS["coordinator"].pop("cfg_type")
#: Shared folders, by the key that names another one.
FOLDERS = {"path_data": "data", "path_policy": "policy"}


def complete_system(
    system: Settings, main: Settings, notes: Notes, strict: bool | Collection[str] = False
) -> EasyDict:
    """Check what a user wrote in ``system_config`` and complete it with defaults.

    ``main`` is the compiled main config, for the names of the workers and the run's folder; the
    other arguments and the errors are those of `KeyChecker`.
    """
    known = deep_merge_dicts(copy.deepcopy(SYSTEM_DEFAULTS), examples()["system_config"])
    known.update(dict.fromkeys(worker_names(main, system), known.pop("worker")))
    user = EasyDict(copy.deepcopy(dict(system)))
    section = user.get("engine") or {}
    if isinstance(section, str):
        section = user.engine = {"type": section}
    elif not isinstance(section, Mapping):
        raise ConfigError(f"{_WHERE} must be a dict with 'type', or a name, got {section!r}")
    import_names(section.get("import_names", []), f"{_WHERE}.import_names")
    kind = ENGINE_REGISTRY.get(section.get("type", DEFAULT_ENGINE))
    engine = known["engine"] = {**SYSTEM_DEFAULTS["engine"], **default_config(kind)}
    engine.pop("cfg_type", None)
    every = {"system_config": known}
    for place in (COLLECTOR_NUM, LEARNER_NUM):  # where users are to set these keys
        put(every, place, 1)
    KeyChecker(every, notes, strict, counts=COUNTS).check({"system_config": user})
    notes.explain_gone({"system_config": user})
    merged = layered({**copy.deepcopy(SYSTEM_DEFAULTS), "engine": engine}, user)
    for key, folder in FOLDERS.items():
        if not merged[key]:
            merged[key] = os.path.join(main["exp_name"], folder)
        merged.coordinator[key] = merged[key]
    _check_values(merged, main)
    return merged


def _check_values(system: Settings, main: Settings) -> None:
    problems, coordinator = Problems(), system["coordinator"]
    check_ranges({"system_config": system}, problems)
    span, tolerance = coordinator["heartbeat_span"], coordinator["heartbeat_tolerance"]
    if span and tolerance and 0 < tolerance <= span:
        problems.add(
            f"system_config.coordinator.heartbeat_tolerance={tolerance} must be greater than "
            f"system_config.coordinator.heartbeat_span={span}: every worker would be taken for lost"
        )
    for name, section in system.items():
        port = section.get("port") if isinstance(section, Mapping) else None
        number = isinstance(port, int) and not isinstance(port, bool) and 0 <= port < 1 << 16
        if not (port is None or port == "auto" or number):
            problems.add(
                f"system_config.{name}.port must be 'auto' or a number from 0 to 65535, got "
                f"{port!r}"
            )
    given = [coordinator[key] for key in ("samples_per_insert", "samples_per_insert_tolerance")]
    try:
        if (ratio := sample_ratio(main.get("policy", {}), *given)) is not None:
            RateLimiter(ratio)
    except ConfigError as err:
        problems.add(str(err))
    problems.raise_if_any()


def processes_per_learner(system: Settings) -> int:
    """How many processes a learner has; 0 GPUs are one, too."""
    number = at(system, "learner_gpu_num")
    return max(1, number) if isinstance(number, int) else 1


def worker_names(main: Settings, system: Settings) -> list[str]:
    """Names of all workers, ``learner0``, ``collector0``, ...: one for each learner's process."""
    gpu_num = processes_per_learner(system)
    learners, collectors = at(main, LEARNER_NUM) or 1, at(main, COLLECTOR_NUM) or 1
    names = [f"learner{i}" for i in range(learners * gpu_num)]
    return names + [f"collector{i}" for i in range(collectors)]


def team_of(name: str, system: Settings) -> str | None:
    """What a learner of several processes is called as one, from the name of a process."""
    per_learner = processes_per_learner(system)
    if kind_of(name) != "learner" or per_learner == 1:
        return None
    return f"learner_aggregator{int(name.removeprefix('learner')) // per_learner}"


def place_in_team(name: str, system: Settings) -> tuple[int, int]:
    """The rank of a worker's process within its learner, and the number of processes."""
    if team_of(name, system) is None:
        return 0, 1
    size = processes_per_learner(system)
    return int(name.removeprefix("learner")) % size, size


def kind_of(name: str) -> str:
    """``learner`` or ``collector``, from a worker's name."""
    return name.rstrip("0123456789")


def user_part(system: Settings, exp_name: str) -> Config:
    """What a ``system_config`` for another run takes of a compiled one: no addresses, and no
    folders that follow from ``exp_name``."""
    own = {key: os.path.join(exp_name, folder) for key, folder in FOLDERS.items()}
    kept = {key: system[key] for key in SYSTEM_DEFAULTS if key in system}
    kept = {key: value for key, value in kept.items() if value != own.get(key)}
    kept["coordinator"] = {
        key: value
        for key, value in system["coordinator"].items()
        if key in SYSTEM_DEFAULTS["coordinator"] and key != "port"
    }
    return kept


def has_own_engine(system: Settings) -> bool:
    """Whether a compiled ``system`` names another engine than the default one."""
    return bool(at(system, "engine.type") not in (None, DEFAULT_ENGINE))
