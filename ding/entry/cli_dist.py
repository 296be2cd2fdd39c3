"""``ding -m dist``: one part of a run that is spread over shells or hosts."""

from typing import Any

from ding.config.compile_parallel import complete_parallel
from ding.config.notes import Notes
from ding.config.read import read_compiled
from ding.entry import dist_entry
from ding.entry.cli_runs import read_configs, rename
from ding.entry.dist_replicas import (
    dist_add_replicas,
    dist_delete_replicas,
    dist_restart_replicas,
)
from ding.entry.overrides import apply_overrides
from ding.entry.parallel_entry import print_notes


def run_dist(options: dict[str, Any], own: dict[str, Any]) -> int:
    """Do what the options of :func:`ding.entry.cli.main` say; returns the exit status.

    Args:
        options: Those of all modes.
        own: Those of `ding.entry.cli_options`.

    Raises:
        DingError: What is wrong, for one line on the terminal.
        SystemExit: A signal ended the part.
    """
    module = own["module"]
    if module is None:
        _change_replicas(own)
    elif module == "config":
        _prepare(options, own)
    else:
        _launch(module, options, own)
    return 0


def _prepare(options: dict[str, Any], own: dict[str, Any]) -> None:
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
        tuple(own[f"{part}_{what}"] for part in ("coordinator", "learner", "collector"))
        for what in ("host", "port")
    )
    dist_entry.prepare(config, own["platform"], hosts, ports)


def _launch(module: str, options: dict[str, Any], own: dict[str, Any]) -> None:
    config = read_compiled(options["config"])
    if options["seeds"]:
        config.main.seed = options["seeds"][0]
    config.system.logs = {
        "total": own["enable_total_log"],
        "flask": not own["disable_flask_log"],
    }
    name = own["module_name"]
    if module == "coordinator":
        coordinator = config.system.coordinator
        coordinator.host = own["coordinator_host"] or coordinator.host
        coordinator.port = own["coordinator_port"] or coordinator.port
        config.resume_coordinator = True if options["resume"] else None
        dist_entry.lead(config)
    elif module == "spawn_learner":
        dist_entry.spawn(config, name, own["learner_port"])
    else:
        part = module.removeprefix("learner_")
        dist_entry.work(config, module, name, own[f"{part}_host"], own[f"{part}_port"])


def _change_replicas(own: dict[str, Any]) -> None:
    where = own["kubeconfig"], own["coordinator_name"], own["namespace"]
    kubeconfig, coordinator, namespace = where
    if own["add"]:
        resources = own["cpus"], own["gpus"], own["memory"]
        dist_add_replicas(
            own["add"], kubeconfig, own["replicas"], coordinator, namespace, *resources
        )
    elif own["delete"]:
        dist_delete_replicas(own["delete"], kubeconfig, own["replicas"], coordinator, namespace)
    else:
        pod = own["restart_pod_name"]
        dist_restart_replicas(own["restart"], kubeconfig, coordinator, namespace, pod)
