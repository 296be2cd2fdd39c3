"""Where the processes of a parallel run listen."""

import itertools
import socket
from collections.abc import Callable, Sequence
from typing import Any

from easydict import EasyDict

from ding.config.system import kind_of, worker_entry, worker_names
from ding.utils import find_free_port
from ding.utils.cluster_helper import DEFAULT_K8S_COORDINATOR_PORT

LOOPBACK = "127.0.0.1"
_EVERYWHERE = "0.0.0.0"
_LOCAL = ("", "localhost", LOOPBACK, _EVERYWHERE)
#: Ports that are chosen when a part starts.
OPEN_PORTS = ("auto", 0, None)

#: A list, or separated by commas.
Hosts = str | Sequence[str] | None
#: A host to a port there, or to ``auto``.
_ChoosePort = Callable[[str], int | str]


def set_system_cfg(cfg: EasyDict) -> EasyDict:
    """Add an entry for each learner and collector to ``cfg.system``; no addresses yet.

    Args:
        cfg: ``main`` (with ``create_config``) and ``system``; changed in place.
    """
    for name in worker_names(cfg.main, cfg.system):
        cfg.system[name] = worker_entry(name, cfg.main, cfg.system, cfg.main.create_config)
    return cfg


def set_host_port(
    cfg: EasyDict, coordinator_host: Hosts, learner_host: Hosts, collector_host: Hosts
) -> EasyDict:
    """Give every part its host and port; free ports where the host is this machine.

    A part whose port is set in the config keeps it; on other machines one without stays on
    ``'auto'``, and takes a free port when it starts.

    Args:
        cfg: ``main`` and ``system``; changed in place.
        coordinator_host: The coordinator's host; the loopback address if not given.
        learner_host: Those of the learners, in turn: a list, or separated by commas.
        collector_host: Those of the collectors, likewise.
    """
    free_port = _free_port_or("auto")
    return _place(cfg, coordinator_host, learner_host, collector_host, free_port, free_port)


def place_joining(
    cfg: EasyDict, coordinator_host: Hosts, learner_host: Hosts, collector_host: Hosts
) -> None:
    """`set_host_port` for workers that join: only what others join gets a port, in place."""
    hosts = coordinator_host, learner_host, collector_host
    _place(cfg, *hosts, lambda host: "auto", _free_port_or(DEFAULT_K8S_COORDINATOR_PORT))
    fill_tables(cfg)


def set_learner_interaction_for_coordinator(cfg: EasyDict) -> EasyDict:
    """Fill the coordinator's table of learners: name to ``[name, host, port]``.

    It holds those with a known port; the others join by themselves.
    """
    cfg.system.coordinator.learner = _table(cfg, _workers(cfg, "learner"))
    return cfg


def set_collector_interaction_for_coordinator(cfg: EasyDict) -> EasyDict:
    """Fill the coordinator's table of collectors: name to ``[name, host, port]``."""
    cfg.system.coordinator.collector = _table(cfg, _workers(cfg, "collector"))
    return cfg


def parallel_transform(
    cfg: dict[str, Any],
    coordinator_host: str | None = None,
    learner_host: list[str] | None = None,
    collector_host: list[str] | None = None,
) -> EasyDict:
    """Complete ``cfg`` (``main`` and ``system``) for local or named hosts, in place; returns it."""
    done = set_system_cfg(EasyDict(cfg))
    set_host_port(done, coordinator_host, learner_host, collector_host)
    fill_tables(done)
    cfg.update(done)
    return done


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
    for name in _workers(cfg):
        if system[name].port in OPEN_PORTS and port not in OPEN_PORTS:
            system[name].coordinator = [reachable(host), port]
    set_learner_interaction_for_coordinator(cfg)
    set_collector_interaction_for_coordinator(cfg)


def _place(
    cfg: EasyDict,
    coordinator_host: Hosts,
    learner_host: Hosts,
    collector_host: Hosts,
    free_port: _ChoosePort,
    joined_port: _ChoosePort,
) -> EasyDict:
    """Give each part the next of its hosts, and a port if it has none.

    Args:
        free_port: Chooses the port of a worker at a host.
        joined_port: That of the coordinator.
    """
    system = cfg.system

    def place(entry: EasyDict, host: str | None, choose: _ChoosePort) -> None:
        entry.host = host or entry.get("host") or LOOPBACK
        if entry.get("port", "auto") in OPEN_PORTS:
            entry.port = choose(entry.host)

    place(system.coordinator, next(iter(_listed(coordinator_host)), None), joined_port)
    for kind, given in (("learner", learner_host), ("collector", collector_host)):
        turn = itertools.cycle(_listed(given) or [None])
        for name in _workers(cfg, kind):
            place(system[name], next(turn), free_port)
    return cfg


def _free_port_or(elsewhere: int | str) -> _ChoosePort:
    """Chooses a free port of this machine; on another one it is `elsewhere`."""
    return lambda host: find_free_port(host) if is_local(host) else elsewhere


def _table(cfg: EasyDict, names: list[str]) -> EasyDict:
    table = EasyDict()
    for name in names:
        entry = cfg.system[name]
        if entry.port not in OPEN_PORTS and entry.host != _EVERYWHERE:
            table[name] = [name, entry.host or LOOPBACK, entry.port]
    return table


def _workers(cfg: EasyDict, kind: str | None = None) -> list[str]:
    names = worker_names(cfg.main, cfg.system)
    return [name for name in names if kind in (None, kind_of(name))]


def _listed(hosts: Hosts) -> list[str]:
    parts = hosts.split(",") if isinstance(hosts, str) else hosts or []
    return [part.strip() for part in parts if part.strip()]
