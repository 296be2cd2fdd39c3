"""The system part of a parallel config: which processes there are, where, and on which engine."""

import copy
import os
from collections.abc import Collection, Mapping

from easydict import EasyDict

from ding.config.check import KeyChecker, Notes, Problems, check_ranges
from ding.config.parts import default_config, import_names
from ding.config.schema import COUNTS, examples
from ding.data.buffer.rate_limiter import RateLimiter, sample_ratio
from ding.utils import ENGINE_REGISTRY, deep_merge_dicts
from ding.utils.errors import ConfigError
from ding.utils.settings import at
from ding.utils.types import Config, Settings
from ding.worker import Coordinator

DEFAULT_ENGINE = "flask_fs"
_WHERE = "system_config.engine"
#: What holds for the coordinator, with defaults.
COORDINATOR_DEFAULTS: Config = {**Coordinator.default_config(), "host": None, "port": "auto"}
COORDINATOR_DEFAULTS.pop("cfg_type")
SYSTEM_DEFAULTS: Config = {
    "coordinator": COORDINATOR_DEFAULTS,
    # What carries messages, samples and weights: its type, and what that knows.
    "engine": {"type": DEFAULT_ENGINE, "import_names": []},
    "path_data": "",
    "path_policy": "",
    "communication_mode": "auto",
    "learner_gpu_num": 1,
    # How often the processes of one worker are started again after they died.
    "max_restart": 5,
}
#: Shared folders, by the key that names another one.
FOLDERS = {"path_data": "data", "path_policy": "policy"}


def complete_system(
    system: Settings, main: Settings, notes: Notes, strict: bool | Collection[str] = False
) -> EasyDict:
    """Check what a user wrote in ``system_config`` and complete it with defaults.

    Args:
        main: The compiled main config, for the names of the workers and the run's folder.
        notes: Gets unknown keys.
        strict: Whether these are errors: all, or those at or under these paths.

    Raises:
        ConfigError: Unknown keys, wrong types, impossible values; each with its path.
        UnknownTypeError: There is no such engine.
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
    # Numbers of workers are in the main config: the place to name for these keys.
    numbers = {
        "collect": {"collector": {"collector_num": 1}},
        "learn": {"learner": {"learner_num": 1}},
    }
    every = {"system_config": known, "policy": numbers}
    KeyChecker(every, notes, strict, counts=COUNTS).check({"system_config": user})
    notes.explain_gone({"system_config": user})
    defaults = {**SYSTEM_DEFAULTS, "engine": engine}
    merged = EasyDict(deep_merge_dicts(copy.deepcopy(defaults), user))
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
    learners = at(main, "policy.learn.learner.learner_num") or 1
    collectors = at(main, "policy.collect.collector.collector_num") or 1
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


def worker_entry(name: str, cfg: Settings, system: Settings, create: Settings) -> EasyDict:
    """What a worker's process needs to know, but for addresses."""
    kind = kind_of(name)
    comm = create["comm_collector" if kind == "collector" else "comm_learner"]
    coordinator = system["coordinator"]
    entry = EasyDict(
        name=name,
        **{**comm, "import_names": list(comm.get("import_names", []))},  # a user's type has more
        host=None,
        port="auto",
        path_data=system["path_data"],
        path_policy=system["path_policy"],
        coordinator=None,
        heartbeat_span=coordinator["heartbeat_span"],
        heartbeat_tolerance=coordinator["heartbeat_tolerance"],
        exp_name=cfg["exp_name"],
    )
    if kind != "collector":
        entry.send_policy_freq = at(cfg, "policy.learn.learner.send_policy_freq") or 1
        entry.multi_gpu = processes_per_learner(system) > 1
    entry.update(system.get(name) or {})
    return entry


def user_part(system: Settings, exp_name: str) -> Config:
    """What a ``system_config`` for another run takes of a compiled one: no addresses, and no
    folders that follow from ``exp_name``."""
    own = {os.path.join(exp_name, folder) for folder in FOLDERS.values()}
    kept = {key: system[key] for key in SYSTEM_DEFAULTS if key in system}
    kept = {key: value for key, value in kept.items() if key not in FOLDERS or value not in own}
    kept["coordinator"] = {
        key: value
        for key, value in system["coordinator"].items()
        if key in COORDINATOR_DEFAULTS and key != "port"
    }
    return kept


def has_own_engine(system: Settings) -> bool:
    """Whether a compiled ``system`` names another engine than the default one."""
    return bool(at(system, "engine.type") not in (None, DEFAULT_ENGINE))
