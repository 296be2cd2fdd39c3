"""Runs a coordinator or a worker, or a run whose engine starts the workers itself."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from easydict import EasyDict

from ding.config.parts import import_names
from ding.config.system import (
    DEFAULT_ENGINE,
    kind_of,
    place_in_team,
    processes_per_learner,
    team_of,
    worker_names,
)
from ding.config.utils import LOOPBACK, is_local, reachable
from ding.entry.part_process import PartHandle, Up, run_part
from ding.entry.run.parallel_folders import RunFolders
from ding.entry.run.signals import StopSignal, heard_at_once
from ding.envs import env_seeds
from ding.interaction.base.server import allow_most_descriptors
from ding.utils import ENGINE_REGISTRY, set_pkg_seed
from ding.utils.callbacks import Callbacks
from ding.utils.console import Console, say
from ding.utils.default_helper import first_goal
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError
from ding.utils.log_helper import set_logs
from ding.utils.run_log import RunLog
from ding.utils.settings import at
from ding.utils.system_helper import own_address
from ding.worker import Coordinator
from ding.worker.comm_worker import build_service, make_service
from ding.worker.engines.carrier import Carrier, Stores, WorkerSpec
from ding.worker.engines.control import RunControl
from ding.worker.engines.flask_fs import flask_fs_engine
from ding.worker.seams import Engine

#: The end of a released worker; the coordinator reports how the run ended.
RELEASED = Ending("finished", "the coordinator has let it go")


def run_coordinator(
    handle: PartHandle, config: EasyDict, key: str | None, engine: Engine | None = None
) -> Ending:
    """Build and run the coordinator of a compiled config, in this process, until its verdict.

    Args:
        config: ``main`` and ``system``.
        key: The run's key.
        engine: Transport of the run; by default processes that join over HTTP.

    Returns:
        How the run ended.
    """
    handle.clean = RunFolders(config).clean_for_killed
    allow_most_descriptors()
    main, own = config.main, config.system.coordinator
    own.run_key = key
    own.port = 0 if own.port in (None, "auto") else own.port
    if engine is None:
        starter = handle if handle.has_parent else None
        specs = worker_specs(config, has_teams=True)
        engine = flask_fs_engine(config.system, main.exp_name, main.seed, starter, specs)
    set_logs(config.system.get("logs", {}), output_path(main.exp_name, "coordinator"))
    set_pkg_seed(main.seed, use_cuda=False)
    goal = first_goal(at(main, "env.stop_value"))
    with (
        RunLog(
            *(main.exp_name, False, "coordinator"),
            config=main,
            seed=main.seed,
            mode="parallel",
            **config.get("notes", {}),
        ) as log,
        Console(main.exp_name, goal if isinstance(goal, int | float) else None) as console,
    ):
        given = config.get("callbacks", main.get("callbacks"))
        coordinator = Coordinator(
            config, run_log=log, console=console, engine=engine, callbacks=Callbacks(given)
        )
        try:
            coordinator.start()
            handle.on_stop(lambda status, reason: coordinator.stop(reason, status))
            handle.send(Up(coordinator.address[1]))
            verdict = coordinator.wait() or ("failed", "no verdict")
            ending = Ending(*verdict, handle.stopping.signal if handle.stopping else None)
            handle.send(ending)
        finally:
            coordinator.close()
    return ending


def run_worker(handle: PartHandle, config: EasyDict, name: str, key: str | None) -> Ending:
    """Build and run a learner or collector, in this process, until it must end.

    Args:
        config: ``main`` and ``system``.
        name: Such as ``learner0``.
        key: The run's key.

    Returns:
        How it ended; `RELEASED` if the coordinator released it.
    """
    entry = config.system[name]
    entry.run_key, entry.host = key, _host_of(entry)
    spec = worker_spec(config, name)
    spec.settle_process()
    worker = make_service(spec.kind, entry)
    try:
        worker.start()  # before `close`, which a request during construction may call next
        handle.on_stop(lambda status, reason: worker.close())
        handle.send(Up())
        worker.join()
    finally:
        worker.close()
    asked, failed = handle.stopping, worker.failed
    if asked is None and failed:
        asked = Ending("failed", str(failed))
        say(f"{name}: {failed}", to_stderr=True)
    return asked or RELEASED


def _host_of(entry: EasyDict) -> str | None:
    """The address on which a worker listens: the config's, else one that others can reach."""
    host, coordinator = entry.get("host"), entry.get("coordinator")
    if coordinator is None or reachable(host) != LOOPBACK:
        return host
    if is_local(coordinator[0]) and not entry.get("multi_gpu"):
        return host
    try:
        return own_address(reachable(coordinator[0]), int(coordinator[1]))
    except OSError as error:
        cause = f"the coordinator at {coordinator[0]!r} cannot be reached: {error}"
        raise ConfigError(cause) from error


def output_path(exp_name: str, name: str) -> str:
    """The file for a worker's output if it has no terminal."""
    return os.path.join(exp_name, "log", name, "output.txt")


def run_on_engine(config: EasyDict, resume: bool | None, stop: StopSignal) -> Ending:
    """Run a compiled config on its engine; returns how the run ended.

    Args:
        config: ``main`` and ``system``.
        resume: Continue from the coordinator's saved state; ``None``: if there is one.
        stop: The signals, which interrupt the opening of the engine.

    Raises:
        ConfigError: The engine is not available.
    """
    section, exp_name = config.system.engine, config.main.exp_name
    # A process that was started with a compiled config has not imported these modules yet.
    import_names(section.import_names, "system_config.engine.import_names")
    made: Any = ENGINE_REGISTRY.get(section.type)
    if not (isinstance(made, type) and issubclass(made, Carrier)):
        raise ConfigError(
            f"system_config.engine.type={section.type!r} names {made!r}; expected a subclass of "
            "ding.worker.engines.carrier.Carrier"
        )
    if "modules" in made.config:  # which workers on other hosts may lack
        section.modules = sorted({*section.modules, *_modules_of(config.main)})
    carrier = made(section, exp_name)
    with heard_at_once(stop):
        carrier.open()
    try:
        specs = worker_specs(config, carrier.has_teams)
        control = RunControl(carrier, specs, config.system.max_restart)
        stores = Stores.of(carrier)
        engine = Engine(control, stores.samples, stores.weights, stores.artifacts)
        config.resume_coordinator = resume
        return run_part(lambda handle: run_coordinator(handle, config, None, engine))
    finally:
        carrier.close()


def worker_specs(config: EasyDict, has_teams: bool = False) -> list[WorkerSpec]:
    """The specifications of a compiled config's workers.

    Args:
        has_teams: Whether the engine supports learners with several processes.

    Raises:
        ConfigError: A learner has several processes, which the engine does not support.
    """
    main, system = config.main, config.system
    if processes_per_learner(system) > 1 and not has_teams:
        raise ConfigError(
            f"system_config.learner_gpu_num={system.learner_gpu_num}: the engine "
            f"{system.engine.type!r} has no learners of several processes, {DEFAULT_ENGINE!r} and "
            "'ray' have"
        )
    return [
        worker_spec(config, name, output_path(main.exp_name, name))
        for name in worker_names(main, system)
        if name in system
    ]


def worker_spec(config: EasyDict, name: str, output: str | None = None) -> WorkerSpec:
    """The specification of a worker in a compiled config.

    Args:
        output: File for its process's output.
    """
    system = config.system
    return WorkerSpec(
        name,
        "collector" if kind_of(name) == "collector" else "learner",
        build_service,
        system[name],
        env_seeds(config.main.seed, name, 1)[0],
        output,
        system.get("logs", {}),
        team_of(name, system),
        place_in_team(name, system),
    )


def _modules_of(cfg: Mapping[str, Any]) -> Iterator[str]:
    """All ``import_names`` of a config."""
    for key, value in cfg.items():
        if key == "import_names":
            yield from value
        elif isinstance(value, Mapping):
            yield from _modules_of(value)
