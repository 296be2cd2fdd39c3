"""Parallel runs on engines that start workers themselves; the coordinator is in this process."""

from collections.abc import Iterator, Mapping
from typing import Any

from easydict import EasyDict

from ding.config.engines import DEFAULT_ENGINE
from ding.config.system import kind_of, processes_per_learner, worker_names
from ding.entry.part_process import run_part
from ding.entry.part_runs import run_coordinator
from ding.envs import env_seeds
from ding.utils import ENGINE_REGISTRY
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError
from ding.worker.engines.carrier import Carrier, WorkerSpec
from ding.worker.engines.spawn_control import CarrierEngine
from ding.worker.engines.worker_services import build_service


def run_on_engine(config: EasyDict, resume: bool) -> Ending:
    """Run a compiled config on the engine that it names; returns how it ended.

    Args:
        config: ``main`` and ``system``.
        resume: Go on from the coordinator's saved state.

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
    carrier.open()
    try:
        engine = CarrierEngine.of_run(carrier, worker_specs(config), config.system.max_restart)
        config.resume_coordinator = resume
        return run_part(lambda handle: run_coordinator(handle, config, None, engine))
    finally:
        carrier.close()


def worker_specs(config: EasyDict) -> list[WorkerSpec]:
    """What the workers of a compiled config are made of.

    Raises:
        ConfigError: A learner of several processes.
    """
    main, system = config.main, config.system
    if processes_per_learner(system) > 1:
        raise ConfigError(
            f"system_config.learner_gpu_num={system.learner_gpu_num}: a learner of several "
            f"processes needs the engine {DEFAULT_ENGINE!r}, not {system.engine.type!r}"
        )
    return [
        WorkerSpec(
            name,
            "collector" if kind_of(name) == "collector" else "learner",
            build_service,
            system[name],
            env_seeds(main.seed, name, 1)[0],
        )
        for name in worker_names(main, system)
    ]


def _modules_of(cfg: Mapping[str, Any]) -> Iterator[str]:
    """All ``import_names`` of a config."""
    for key, value in cfg.items():
        if key == "import_names":
            yield from value
        elif isinstance(value, Mapping):
            yield from _modules_of(value)
