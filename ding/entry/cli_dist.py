"""``ding -m dist``: one part of a run that is spread over shells or hosts."""

from collections.abc import Mapping
from typing import Any

from ding.config.check import Notes
from ding.config.compile_parallel import complete_parallel
from ding.entry import dist_entry
from ding.entry.cli_runs import read_configs, rename
from ding.entry.dist_replicas import (
    dist_add_replicas,
    dist_delete_replicas,
    dist_restart_replicas,
)
from ding.entry.overrides import apply_overrides
from ding.entry.parallel_entry import print_notes


def run_dist(options: Mapping[str, Any]) -> int:
    """Do what the options of `ding.entry.cli.main` say; returns the exit status.

    Raises:
        DingError: What is wrong, for one line on the terminal.
        SystemExit: A signal ended the part.
    """
    module = options["module"]
    if module is None:
        _change_replicas(options)
    elif module == "config":
        _prepare(options)
    else:
        _launch(module, options)
    return 0


def _prepare(options: Mapping[str, Any]) -> None:
    configs = read_configs(options["config"], with_system=True)
    strict = apply_overrides(configs, options["settings"])
    if options["exp_name"]:
        rename(configs, options["exp_name"])
    main, create, system = configs
    seed = (options["seeds"] or [main.get("seed") or 0])[0]
    notes = Notes()
    config = complete_parallel(main, create, system, seed, notes, options["strict"] or strict)
    print_notes(notes)
    if options["train_iter"] is not None:
        config.main.policy.learn.learner.train_iterations = options["train_iter"]
    hosts, ports = (
        tuple(options[f"{part}_{what}"] for part in ("coordinator", "learner", "collector"))
        for what in ("host", "port")
    )
    dist_entry.prepare(config, options["platform"], hosts, ports)


def _launch(module: str, options: Mapping[str, Any]) -> None:
    logs = options["enable_total_log"], options["disable_flask_log"]
    seed = options["seeds"][0] if options["seeds"] else None
    config = dist_entry.read_part(options["config"], seed, *logs)
    name = options["module_name"]
    if module == "coordinator":
        coordinator = config.system.coordinator
        coordinator.host = options["coordinator_host"] or coordinator.host
        coordinator.port = options["coordinator_port"] or coordinator.port
        config.resume_coordinator = True if options["resume"] else None
        dist_entry.lead(config)
    elif module == "spawn_learner":
        dist_entry.spawn(config, name, options["learner_port"])
    else:
        part = module.removeprefix("learner_")
        dist_entry.work(config, module, name, options[f"{part}_host"], options[f"{part}_port"])


def _change_replicas(options: Mapping[str, Any]) -> None:
    coordinator, namespace = options["coordinator_name"], options["namespace"]
    kubeconfig, replicas = options["kubeconfig"], options["replicas"]
    if kind := options["add"]:
        resources = options["cpus"], options["gpus"], options["memory"]
        dist_add_replicas(kind, kubeconfig, replicas, coordinator, namespace, *resources)
    elif kind := options["delete"]:
        dist_delete_replicas(kind, kubeconfig, replicas, coordinator, namespace)
    else:
        pod = options["restart_pod_name"]
        dist_restart_replicas(options["restart"], kubeconfig, coordinator, namespace, pod)
