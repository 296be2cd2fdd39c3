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
#: Kinds of which a run may get more workers than its config has.
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
    """Compile a config for parts that are started by hand, and make the run's key.

    Workers without a port take a free one when they start, and join the coordinator.

    Args:
        filename: Config file with ``main_config``, ``create_config`` and ``system_config``.
        seed: Seed of everything random.
        platform: ``local``, which also means named hosts.
        coordinator_host: Host of the coordinator; the loopback address if empty.
        learner_host: Hosts of the learners, separated by commas.
        collector_host: Those of the collectors.
        coordinator_port: The coordinator's port; a free one if empty.
        learner_port: The learners' port.
        collector_port: The collectors' port.

    Returns:
        Path of the compiled config, which every part is to be given.
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
    """Place the parts of a completed config, save it, and say what to start now."""
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
    """Run the coordinator of a compiled config to the run's end; one that was killed continues.

    Args:
        filename: What `dist_prepare_config` returned.
        seed: Seed of its draws.
        coordinator_port: Port instead of the config's.
        disable_flask_log: Whether the server keeps single requests out of the log.
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
    """Run a learner of a compiled config until the coordinator lets it go.

    Args:
        filename: What `dist_prepare_config` returned.
        seed: Seed of its draws.
        learner_port: Port instead of the config's.
        name: Its name, such as ``learner1``; the first if not given.
        disable_flask_log: Whether the server keeps single requests out of the log.

    Raises:
        RunError: It could not go on.
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
    """Run a collector of a compiled config; arguments as for `dist_launch_learner`."""
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
    """Nothing: the coordinator treats the processes of a learner as one worker, and says so."""
    launch("learner_aggregator", read_part(filename, seed, disable_flask_log), name)


def dist_launch_spawn_learner(
    filename: str,
    seed: int,
    learner_port: int,
    name: str | None = None,
    disable_flask_log: bool = True,
) -> None:
    """Run all processes of a learner on this machine: one for each GPU that the config names.

    Args:
        learner_port: Port of the first one, and so on upwards; else free ones.
        name: The learner's first process, such as ``learner0``; other arguments as for
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
        name: Its name. A worker that the config does not list is like the first of its kind.
        host: Instead of the config's.
        port: Likewise.

    Raises:
        ConfigError: It is a worker, which the run's engine starts itself.
        RunError: It could not go on.
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
    """Look for the coordinator of a run on one machine, or one that chooses its port."""
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
    """The compiled config of a part; see `dist_launch_coordinator`, but that the seed may stay."""
    config = read_compiled(filename)
    config.main.seed = config.main.seed if seed is None else seed
    config.system.logs = {"total": total_log, "flask": not disable_flask_log}
    return config


# ---------------------------------------------------------------------- workers without a config


def join(host: str, port: int, kind: Kind, name: str | None = None, folder: str = ".") -> None:
    """Run a worker that joins a run, in this process, until its end.

    Its config comes from the coordinator; samples, weights and states are in the run's folders,
    which this host has to share.

    Args:
        host: The coordinator's host.
        port: The coordinator's port.
        kind: ``collector`` or ``learner``.
        name: Such as ``collector7``; one that no other worker has if not given.
        folder: With the run's key, if that is not in ``DING_RUN_KEY``.

    Raises:
        ConfigError: No key, or this host does not have the run's folder.
        RunError: The coordinator refuses, or the worker could not go on.
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
    """Gone, as are the next two: scale a deployment of ``ding worker --join HOST:PORT``.

    Raises:
        ConfigError: Always; says so.
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
