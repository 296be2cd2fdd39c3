"""The parts of a parallel run, started one by one from one compiled config."""

import os
import shlex
from functools import partial
from typing import Any

from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import complete_parallel
from ding.config.read import read_compiled, read_config_with_system
from ding.config.save import save_run_config
from ding.config.system import DEFAULT_ENGINE, has_own_engine, kind_of, worker_names
from ding.config.utils import OPEN_PORTS, check_platform, move_worker, place_parts
from ding.entry.parallel_entry import print_notes, run_in_folders, worker_of
from ding.entry.part_process import run_part
from ding.entry.part_runs import RELEASED, run_coordinator, run_on_engine, run_worker
from ding.entry.run.folder import recorded_ending
from ding.entry.run.parallel_folders import check_shared_paths
from ding.entry.run.signals import StopSignal
from ding.entry.run.status import coordinator_address
from ding.entry.supervisor import run_ranks
from ding.utils.console import say
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError
from ding.utils.run_claims import KEY_FILE, KEY_VARIABLE, make_run_key, read_run_key
from ding.worker.engines.http_worker import ask_for_entry
from ding.worker.messages import Kind

__all__ = [
    "dist_add_replicas",
    "dist_delete_replicas",
    "dist_launch_collector",
    "dist_launch_coordinator",
    "dist_launch_learner",
    "dist_launch_learner_aggregator",
    "dist_launch_spawn_learner",
    "dist_prepare_config",
    "dist_restart_replicas",
]

_NO_REPLICAS = (
    "workers in Kubernetes join by the coordinator's address: scale a deployment of "
    "`ding worker --join HOST:PORT` (docs/parallel.md has its manifest)"
)
#: Kinds of workers of which a run may get more than its config lists.
_FURTHER = ("learner", "collector")


def dist_prepare_config(
    filename: str,
    seed: int,
    platform: str,
    coordinator_host: str,
    learner_host: str,
    collector_host: str,
    coordinator_port: int,
    learner_port: int,
    collector_port,
) -> str:
    """Compile a config for parts that are started by hand, and create the run's key.

    Workers without a port choose a free one when they start, and join the coordinator.

    Args:
        filename: Config file with ``main_config``, ``create_config`` and ``system_config``.
        seed: Seed of all random number generators.
        platform: ``local``, which also means named hosts.
        coordinator_host: Host of the coordinator; the loopback address if empty.
        learner_host: Hosts of the learners, separated by commas.
        collector_host: Hosts of the collectors, separated by commas.
        coordinator_port: The coordinator's port; a free one if empty.
        learner_port: The learners' port.
        collector_port: The collectors' port.

    Returns:
        Path of the compiled config, which every part needs.
    """
    check_platform(platform)
    notes = Notes()
    config = complete_parallel(*read_config_with_system(filename), seed, notes)
    print_notes(notes)
    return prepare(
        config,
        (coordinator_host, learner_host, collector_host),
        (coordinator_port, learner_port, collector_port),
    )


def prepare(config: EasyDict, hosts: tuple[Any, Any, Any], ports: tuple[Any, Any, Any]) -> str:
    """Assign hosts and ports to a completed config's parts, save it, and print what to start."""
    is_started_by_engine = has_own_engine(config.system)
    if not is_started_by_engine:
        check_shared_paths(config)
    place_parts(config, hosts, ports, joining=True)
    path = save_run_config(config)
    make_run_key(config.main.exp_name)
    command = f"ding -m dist -c {shlex.quote(path)} -s {config.main.seed} -M "
    if is_started_by_engine:
        print(f"start this, which starts the workers:\n  {command}coordinator")
        return path
    lines = [f"{command}coordinator"]
    lines += [
        f"{command}{kind_of(name)} --module-name {name}"
        for name in worker_names(config.main, config.system)
    ]
    print(
        "start these in any order, each in a separate shell; workers may be added and stopped "
        "at any time:\n  " + "\n  ".join(lines)
    )
    return path


def dist_launch_coordinator(
    filename: str,
    seed: int,
    coordinator_port: int,
    disable_flask_log: bool,
    enable_total_log: bool = False,
) -> None:
    """Run the coordinator of a compiled config to the run's end; a killed one resumes.

    Args:
        filename: Path from `dist_prepare_config`.
        seed: Seed of its random numbers.
        coordinator_port: Replaces the config's port.
        disable_flask_log: Whether to leave single requests out of the log.
        enable_total_log: Whether to log more than warnings.

    Raises:
        RunError: The run failed.
        SystemExit: SIGINT or SIGTERM ended it.
    """
    config = read_part(filename, seed, disable_flask_log, enable_total_log)
    launch("coordinator", config, port=coordinator_port)


def dist_launch_learner(
    filename: str,
    seed: int,
    learner_port: int,
    name: str | None = None,
    disable_flask_log: bool = True,
) -> None:
    """Run a learner of a compiled config until the coordinator releases it.

    Args:
        filename: Path from `dist_prepare_config`.
        seed: Seed of its random numbers.
        learner_port: Replaces the config's port.
        name: Its name, such as ``learner1``; the first if not given.
        disable_flask_log: Whether to leave single requests out of the log.

    Raises:
        RunError: The learner failed.
        SystemExit: SIGINT or SIGTERM ended it.
    """
    config = read_part(filename, seed, disable_flask_log)
    launch("learner", config, name, port=learner_port)


def dist_launch_collector(
    filename: str,
    seed: int,
    collector_port: int,
    name: str | None = None,
    disable_flask_log: bool = True,
) -> None:
    """Run a collector of a compiled config; arguments as in `dist_launch_learner`."""
    config = read_part(filename, seed, disable_flask_log)
    launch("collector", config, name, port=collector_port)


def dist_launch_learner_aggregator(
    filename: str,
    seed: int,
    aggregator_host: str,
    aggregator_port: int,
    name: str | None = None,
    disable_flask_log: bool = True,
) -> None:
    """Only prints a message: the coordinator treats a learner's processes as one worker."""
    launch("learner_aggregator", read_part(filename, seed, disable_flask_log), name)


def dist_launch_spawn_learner(
    filename: str,
    seed: int,
    learner_port: int,
    name: str | None = None,
    disable_flask_log: bool = True,
) -> None:
    """Run all processes of a learner on this host: one for each GPU in the config.

    Args:
        learner_port: Port of the first process, others count up from it; free ports if not given.
        name: The learner's first process, such as ``learner0``; other arguments as in
            `dist_launch_learner`.
    """
    config = read_part(filename, seed, disable_flask_log)
    launch("spawn_learner", config, name, port=learner_port)


def launch(
    module: str,
    config: EasyDict,
    name: str | None = None,
    host: str | None = None,
    port: int | None = None,
) -> None:
    """Run one part of a compiled config in this process, until its end.

    Args:
        module: A kind of part, or ``spawn_learner``: all processes of a learner.
        name: Its name. A worker that the config does not list is copied from the first of its kind.
        host: Replaces the config's host.
        port: Replaces the config's port.

    Raises:
        ConfigError: The part is a worker that the run's engine starts itself.
        RunError: The part failed.
        SystemExit: SIGINT or SIGTERM ended it.
    """
    system = config.system
    if module == "coordinator":
        ending = _run_coordinator(config, host, port)
    elif has_own_engine(system):
        raise ConfigError(
            f"system_config.engine.type={system.engine.type!r} starts workers itself, with the "
            f"coordinator; only those of {DEFAULT_ENGINE!r} are started by hand"
        )
    elif module == "learner_aggregator":
        say(f"{name or module}: nothing to do, a learner's processes join the coordinator")
        return
    elif module == "spawn_learner":
        _find_coordinator(config, name or "learner0")
        ending = run_ranks(config, make_run_key(config.main.exp_name), name, port)
        say(f"{name or 'learner'}: {ending}")
    else:
        name = _entry_of(config, module, name).name
        _find_coordinator(config, name)
        move_worker(config, name, host, port)
        ending = _run_worker(config, name, make_run_key(config.main.exp_name))
    ending.raise_if_bad()


def _run_coordinator(config: EasyDict, host: str | None, port: int | None) -> Ending:
    if has_own_engine(config.system):
        resume = config.get("resume_coordinator")
        with StopSignal() as stop:
            return run_in_folders(config, "dist", lambda _: run_on_engine(config, resume, stop))
    own = config.system.coordinator
    own.update(host=host or own.host, port=port or own.port)
    main = partial(run_coordinator, config=config)
    return run_in_folders(config, "dist", lambda key: run_part(partial(main, key=key)))


def _run_worker(config: EasyDict, name: str, key: str) -> Ending:
    ending = run_part(partial(run_worker, config=config, name=name, key=key))
    say(f"{name}: {recorded_ending(config.main.exp_name) if ending == RELEASED else ending}")
    return ending


def _entry_of(config: EasyDict, kind: str, name: str | None) -> EasyDict:
    system = config.system
    if name and name not in system and kind_of(name) == kind and kind in _FURTHER:
        system[name] = {**worker_of(config, kind, None), "name": name, "port": "auto"}
    return worker_of(config, kind, name)


def _find_coordinator(config: EasyDict, name: str) -> None:
    """Find the coordinator of a run on one host, or one that chooses its port."""
    coordinator = config.system.coordinator
    if coordinator.port not in OPEN_PORTS:
        return
    found = coordinator_address(config.main.exp_name)
    if found is None:
        raise ConfigError(
            f"{config.main.exp_name} has no coordinator that {name} could join: start "
            "that first, or make the config with -m dist -M config"
        )
    coordinator.host, coordinator.port = found["host"], found["port"]


def read_part(
    filename: str, seed: int | None, disable_flask_log: bool, total_log: bool = False
) -> EasyDict:
    """A part's compiled config; as in `dist_launch_coordinator`, but ``seed`` may be None."""
    config = read_compiled(filename)
    config.main.seed = config.main.seed if seed is None else seed
    config.system.logs = {"total": total_log, "flask": not disable_flask_log}
    return config


# ---------------------------------------------------------------------- workers without a config


def join(host: str, port: int, kind: Kind, name: str | None = None, folder: str = ".") -> None:
    """Run a worker that joins a run, in this process, until its end.

    The coordinator provides its config; samples, weights and states are in the run's folders, which
    this host must share.

    Args:
        host: The coordinator's host.
        port: The coordinator's port.
        kind: ``collector`` or ``learner``.
        name: Such as ``collector7``; by default a name that no other worker has.
        folder: Folder with the run's key, unless ``DING_RUN_KEY`` contains it.

    Raises:
        ConfigError: There is no key, or this host does not have the run's folder.
        RunError: The coordinator rejects the worker, or the worker failed.
        SystemExit: SIGINT or SIGTERM ended it.
    """
    key = read_run_key(folder)
    if key is None:
        raise ConfigError(
            f"a worker needs the run's key: set {KEY_VARIABLE}, or name the run's folder with "
            f"--run, where it is in {KEY_FILE}"
        )
    config = EasyDict(ask_for_entry((host, port), kind, name, key))
    exp_name = config.main.exp_name
    if not os.path.isdir(exp_name):
        raise ConfigError(f"this host has no folder {exp_name}, which workers of a run share")
    name = next(part for part in config.system if kind_of(part) == kind)
    config.system[name].coordinator = [host, port]
    say(f"{name} joins {host}:{port}")
    _run_worker(config, name, key).raise_if_bad()


# ---------------------------------------------------------------------- workers in Kubernetes


def dist_add_replicas(
    replicas_type: str,
    kubeconfig: str | None,
    replicas: int,
    coordinator_name: str,
    namespace: str,
    cpus: int | None,
    gpus: int | None,
    memory: str | None,
) -> None:
    """Removed, as are the next two: scale a deployment of ``ding worker --join HOST:PORT`` instead.

    Raises:
        ConfigError: Always, with this advice.
    """
    raise ConfigError(_NO_REPLICAS)


def dist_delete_replicas(
    replicas_type: str, kubeconfig: str | None, replicas: int, coordinator_name: str, namespace: str
) -> None:
    """See `dist_add_replicas`."""
    raise ConfigError(_NO_REPLICAS)


def dist_restart_replicas(
    replicas_type: str,
    kubeconfig: str | None,
    coordinator_name: str,
    namespace: str,
    restart_pod_name: str,
) -> None:
    """See `dist_add_replicas`."""
    raise ConfigError(_NO_REPLICAS)
