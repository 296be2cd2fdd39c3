"""Parallel runs on engines that start workers themselves; the coordinator is in this process."""

from collections.abc import Iterator, Mapping
from typing import Any

from easydict import EasyDict

from ding.config.hosts import LOOPBACK
from ding.config.system import (
    DEFAULT_ENGINE,
    aggregator_of,
    kind_of,
    processes_per_learner,
    worker_names,
)
from ding.entry.part_process import run_part
from ding.entry.part_runs import rank_environ, run_coordinator
from ding.entry.stop_signal import StopSignal, heard_at_once
from ding.envs import env_seeds
from ding.utils import ENGINE_REGISTRY
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError
from ding.utils.system_helper import find_free_port
from ding.worker.engines.carrier import Carrier, Stores, WorkerSpec
from ding.worker.engines.spawn_control import SpawnControl
from ding.worker.engines.worker_services import build_service
from ding.worker.messages import Kind
from ding.worker.seams import Engine


def run_on_engine(config: EasyDict, resume: bool, stop: StopSignal) -> Ending:
    """Run a compiled config on the engine that it names; returns how it ended.

    Args:
        config: ``main`` and ``system``.
        resume: Go on from the coordinator's saved state.
        stop: The signals, which interrupt the opening of the engine.

    Raises:
        ConfigError: The engine cannot be had.
    """
    section, exp_name = config.system.engine, config.main.exp_name
    made: Any = ENGINE_REGISTRY.get(section.type)
    if not (isinstance(made, type) and issubclass(made, Carrier)):
        raise ConfigError(
            f"system_config.engine.type={section.type!r} names {made!r}; expected a subclass of "
            "ding.worker.engines.carrier.Carrier"
        )
    if "modules" in made.config:  # that its workers may not have where they are
        section.modules = sorted({*section.modules, *_modules_of(config.main)})
    carrier = made(section, exp_name)
    with heard_at_once(stop):
        carrier.open()
    try:
        specs = worker_specs(config, carrier.has_teams)
        control = SpawnControl(carrier, specs, config.system.max_restart)
        stores = Stores.of(carrier)
        engine = Engine(control, stores.samples, stores.weights, stores.artifacts)
        config.resume_coordinator = resume
        return run_part(lambda handle: run_coordinator(handle, config, None, engine))
    finally:
        carrier.close()


def worker_specs(config: EasyDict, has_teams: bool = False) -> list[WorkerSpec]:
    """What the workers of a compiled config are made of.

    Args:
        has_teams: Whether a learner may consist of several.

    Raises:
        ConfigError: A learner of several processes, where there can be none.
    """
    main, system = config.main, config.system
    if processes_per_learner(system) > 1 and not has_teams:
        raise ConfigError(
            f"system_config.learner_gpu_num={system.learner_gpu_num}: the engine "
            f"{system.engine.type!r} has no learners of several processes, {DEFAULT_ENGINE!r} and "
            "'ray' have"
        )
    ports: dict[str, int] = {}
    specs = []
    for name in worker_names(main, system):
        kind, team, environ = kind_of(name), aggregator_of(name, system), {}
        if team is not None:
            # Where they meet; that the host which they will be on has it free is likely.
            port = ports.setdefault(team, find_free_port(LOOPBACK))
            environ = rank_environ(name, system, port)
        if kind in ("collector", "learner"):
            seed = env_seeds(main.seed, name, 1)[0]
            role: Kind = "collector" if kind == "collector" else "learner"
            specs.append(WorkerSpec(name, role, build_service, system[name], seed, environ, team))
    return specs


def _modules_of(cfg: Mapping[str, Any]) -> Iterator[str]:
    """All ``import_names`` of a config."""
    for key, value in cfg.items():
        if key == "import_names":
            yield from value
        elif isinstance(value, Mapping):
            yield from _modules_of(value)
