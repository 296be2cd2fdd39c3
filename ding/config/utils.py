"""Where the processes of a parallel run listen, and a parallel config for tests; scripts import
these names from here."""

import itertools
import socket
from collections.abc import Sequence
from typing import NoReturn

from easydict import EasyDict

from ding.config.save import save_config_formatted as save_config_formatted
from ding.config.system import FOLDERS, kind_of, processes_per_learner, worker_names
from ding.utils import find_free_port
from ding.utils.errors import ConfigError
from ding.utils.script_helper import DEFAULT_K8S_COORDINATOR_PORT
from ding.utils.settings import at
from ding.utils.types import Config

LOOPBACK = "127.0.0.1"
_EVERYWHERE = "0.0.0.0"
_LOCAL = ("", "localhost", LOOPBACK, _EVERYWHERE)
#: Ports that are chosen when a part starts.
OPEN_PORTS = ("auto", 0, None)

#: A list, or separated by commas.
Hosts = str | Sequence[str] | None
Ports = tuple[int | None, int | None, int | None]


def set_system_cfg(cfg: EasyDict) -> EasyDict:
    """Add an entry for each learner and collector to ``cfg.system``, in place; no addresses yet."""
    main, system = cfg.main, cfg.system
    folders = {key: system[key] for key in FOLDERS}
    beat = {key: system.coordinator[key] for key in ("heartbeat_span", "heartbeat_tolerance")}
    for name in worker_names(main, system):
        kind = kind_of(name)
        comm = main.create_config[f"comm_{kind}"]  # that of a user's type has further keys
        entry = EasyDict(name=name, **{**comm, "import_names": [*comm.get("import_names", [])]})
        entry.update(host=None, port="auto", **folders, coordinator=None, **beat)
        entry.exp_name = main.exp_name
        if kind == "learner":
            entry.send_policy_freq = at(main, "policy.learn.learner.send_policy_freq") or 1
            entry.multi_gpu = processes_per_learner(system) > 1
        entry.update(system.get(name) or {})
        system[name] = entry
    return cfg


def set_host_port(
    cfg: EasyDict,
    coordinator_host: Hosts,
    learner_host: Hosts,
    collector_host: Hosts,
    ports: Ports = (None, None, None),
    joining: bool = False,
) -> EasyDict:
    """Give every part its host and port; free ports where the host is this machine.

    A part whose port is set in the config keeps it; on other machines one without stays on
    ``'auto'``, and takes a free port when it starts.

    Args:
        cfg: ``main`` and ``system``; changed in place.
        coordinator_host: The coordinator's host; the loopback address if not given.
        learner_host: Those of the learners, in turn: a list, or separated by commas.
        collector_host: Those of the collectors, likewise.
        ports: Of the coordinator, and of the first learner and collector, and so on upwards.
        joining: Let workers without a port choose one when they start, and join by themselves:
            only the coordinator gets a port, since others have to know it.
    """
    names = ["coordinator"], _workers(cfg, "learner"), _workers(cfg, "collector")
    for parts, hosts, first in zip(names, (coordinator_host, learner_host, collector_host), ports):
        is_known = parts == ["coordinator"]  # before it starts
        elsewhere = DEFAULT_K8S_COORDINATOR_PORT if joining and is_known else "auto"
        listed = hosts.split(",") if isinstance(hosts, str) else hosts or []
        listed = [host.strip() for host in listed if host.strip()] or [""]
        for offset, (name, host) in enumerate(zip(parts, itertools.cycle(listed))):
            entry = cfg.system[name]
            entry.host = host or entry.get("host") or LOOPBACK
            if first is not None:
                entry.port = first and first + offset
            if entry.get("port", "auto") in OPEN_PORTS:
                is_here = (is_known or not joining) and is_local(entry.host)
                entry.port = find_free_port(entry.host) if is_here else elsewhere
    return cfg


def set_learner_interaction_for_coordinator(cfg: EasyDict) -> EasyDict:
    """Fill the coordinator's table of learners with known ports: name to ``[name, host, port]``."""
    return _fill_table(cfg, "learner")


def set_collector_interaction_for_coordinator(cfg: EasyDict) -> EasyDict:
    """Fill the coordinator's table of collectors, likewise."""
    return _fill_table(cfg, "collector")


def _fill_table(cfg: EasyDict, kind: str) -> EasyDict:
    entries = {name: cfg.system[name] for name in _workers(cfg, kind)}
    cfg.system.coordinator[kind] = EasyDict(
        (name, [name, entry.host or LOOPBACK, entry.port])
        for name, entry in entries.items()
        if entry.port not in OPEN_PORTS and entry.host != _EVERYWHERE
    )
    return cfg


def parallel_transform(
    cfg: Config,
    coordinator_host: str | None = None,
    learner_host: list[str] | None = None,
    collector_host: list[str] | None = None,
) -> EasyDict:
    """Complete ``cfg`` (``main`` and ``system``) for local or named hosts, in place; returns it."""
    done = EasyDict(cfg)
    place_parts(done, (coordinator_host, learner_host, collector_host))
    cfg.update(done)
    return done


def place_parts(
    cfg: EasyDict,
    hosts: tuple[Hosts, Hosts, Hosts],
    ports: Ports = (None, None, None),
    joining: bool = False,
) -> None:
    """Add the workers to a completed config, in place; the arguments are `set_host_port`'s."""
    set_system_cfg(cfg)
    set_host_port(cfg, *hosts, ports, joining)
    fill_tables(cfg)


def check_platform(platform: str) -> None:
    """Refuse other platforms than ``local``, which also means named hosts."""
    if platform != "local":
        raise ConfigError(
            f"platform must be local, got {platform!r}; on a cluster, workers join by the "
            "coordinator's address: ding worker --join HOST:PORT"
        )


def set_host_port_slurm(*_: object, **__: object) -> NoReturn:
    """Raises a `ConfigError`, as do the other three for clusters: workers join by themselves."""
    raise ConfigError(
        "host lists for Slurm and Kubernetes are not made any more: workers join by the "
        "coordinator's address, `srun ding worker --join HOST:PORT` (docs/parallel.md)"
    )


set_host_port_k8s = parallel_transform_slurm = parallel_transform_k8s = set_host_port_slurm


def is_local(host: str | None) -> bool:
    """Whether a host is this machine: then free ports can be looked for."""
    if host is None or host in _LOCAL:
        return True
    try:
        with socket.socket() as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def reachable(host: str | None) -> str:
    """Where a server on this machine can be reached that listens at ``host``."""
    return LOOPBACK if host is None or host in _LOCAL else host


def fill_tables(cfg: EasyDict) -> None:
    """Fill the coordinator's tables, in place, and the addresses that workers join."""
    system = cfg.system
    host, port = system.coordinator.get("host"), system.coordinator.get("port")
    for name in worker_names(cfg.main, system):
        if system[name].port in OPEN_PORTS and port not in OPEN_PORTS:
            system[name].coordinator = [reachable(host), port]
    set_learner_interaction_for_coordinator(cfg)
    set_collector_interaction_for_coordinator(cfg)


def move_worker(cfg: EasyDict, name: str, host: str | None, port: int | None) -> None:
    """Have a worker of a compiled config listen at another host or port, in place, if these are
    given. It joins the coordinator, whose table does not list it there."""
    entry, coordinator = cfg.system[name], cfg.system.coordinator
    listed = entry.host, entry.port
    entry.update(host=host or entry.host, port=port or entry.port)
    if entry.port in OPEN_PORTS or listed != (entry.host, entry.port):
        entry.joins, entry.coordinator = True, [reachable(coordinator.host), coordinator.port]


def _workers(cfg: EasyDict, kind: str) -> list[str]:
    return [name for name in worker_names(cfg.main, cfg.system) if kind_of(name) == kind]


# A parallel config that compiles in no time, for tests of what coordinates workers.
parallel_test_main_config = EasyDict(
    exp_name="parallel_test",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=2,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=195,
    ),
    policy=dict(
        cuda=False,
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16, 16]),
        learn=dict(batch_size=16, learner=dict(learner_num=2, send_policy_freq=1)),
        collect=dict(n_sample=8, collector=dict(collector_num=2)),
        other=dict(
            replay_buffer=dict(replay_buffer_size=256),
            commander=dict(collector_task_space=2, learner_task_space=2, eval_interval=5),
        ),
    ),
)

parallel_test_create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
    learner=dict(type="base"),
    collector=dict(type="zergling"),
    commander=dict(type="naive"),
    comm_learner=dict(type="flask_fs"),
    comm_collector=dict(type="flask_fs"),
)

parallel_test_system_config = EasyDict(
    coordinator=dict(),
    path_data="parallel_test/data",
    path_policy="parallel_test/policy",
    communication_mode="auto",
    learner_gpu_num=0,
)
