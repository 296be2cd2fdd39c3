"""Options of the command ``ding`` that only ``-m parallel`` and ``-m dist`` know."""

from collections.abc import Callable, Mapping
from typing import Any

import click

MODULES = (
    *("config", "coordinator", "learner", "collector"),
    *("learner_aggregator", "spawn_learner"),
)
PLATFORMS = ("local", "slurm", "k8s")
_REPLICAS = ("collector", "learner")

_PORT = click.IntRange(0, 65535)

# Alone it means true; a value may follow.
_SWITCH: dict[str, Any] = {
    "is_flag": False,
    "flag_value": True,
    "type": click.BOOL,
    "metavar": "[true|false]",
}

_OPTIONS = (
    click.option("-M", "--module", type=click.Choice(MODULES), help="Part to run (-m dist)."),
    click.option("--module-name", "-mn", metavar="NAME", help="Such as learner1 (-m dist)."),
    click.option(
        "-P",
        "--platform",
        type=click.Choice(PLATFORMS),
        default="local",
        help="Where the parts run (-M config). [default: local]",
    ),
    click.option(
        "-cdh", "-ch", "--coordinator-host", metavar="HOST", help="Host of the coordinator."
    ),
    click.option("-cdp", "-cp", "--coordinator-port", type=_PORT, help="Its port."),
    click.option("-lh", "--learner-host", metavar="HOST[,...]", help="Hosts of the learners."),
    click.option("-lp", "--learner-port", type=_PORT, help="Port of a learner."),
    click.option("-clh", "--collector-host", metavar="HOST[,...]", help="Hosts of collectors."),
    click.option("-clp", "--collector-port", type=_PORT, help="Port of a collector."),
    click.option("-agh", "--aggregator-host", metavar="HOST", help="Host of an aggregator."),
    click.option("-agp", "--aggregator-port", type=_PORT, help="Its port."),
    click.option("--engine", metavar="TYPE", help="What carries the run (-m parallel)."),
    click.option("--address", help="Where the engine is, such as auto for a Ray cluster."),
    click.option(
        "--enable-total-log",
        **_SWITCH,
        default=False,
        help="Workers log more than warnings (-m parallel, -m dist).",
    ),
    click.option(
        "--disable-flask-log",
        **_SWITCH,
        default=True,
        help="Servers keep single requests out of logs. [default: true]",
    ),
    click.option("--add", type=click.Choice(_REPLICAS), help="Add workers in Kubernetes."),
    click.option("--delete", type=click.Choice(_REPLICAS), help="End workers there."),
    click.option("--restart", type=click.Choice(_REPLICAS), help="Replace a worker's pod there."),
    click.option("-kc", "--kubeconfig", type=click.Path(), help="Configuration of kubectl."),
    click.option("-cdn", "--coordinator-name", metavar="POD", help="The coordinator's pod."),
    click.option("-ns", "--namespace", default="default", help="Of the pods. [default: default]"),
    click.option(
        "-rs",
        "--replicas",
        type=click.IntRange(1),
        default=1,
        help="How many to add or end. [default: 1]",
    ),
    click.option("-rpn", "--restart-pod-name", metavar="POD", help="Pod to replace."),
    click.option("--cpus", type=click.IntRange(1), help="CPUs of an added worker."),
    click.option("--gpus", type=click.IntRange(0), help="GPUs of an added worker."),
    click.option("--memory", metavar="SIZE", help="Memory of an added worker, such as 10Gi."),
)


def parallel_options(command: Callable) -> Callable:
    """Decorator: add the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_usage(options: Mapping[str, Any]) -> None:
    """Refuse what does not go together.

    Raises:
        click.UsageError: It does not.
    """
    mode = options["mode"]
    replicas = [name for name in ("add", "delete", "restart") if options[name]]
    for name in ("engine", "address"):
        if options[name] and mode not in (None, "parallel"):
            raise click.UsageError(f"--{name} is for -m parallel")
    if mode != "dist":
        known = ("coordinator_host", "coordinator_port") if mode == "parallel" else ()
        wrong = [
            n for n in options if n.endswith(("_host", "_port")) and options[n] and n not in known
        ]
        if wrong:
            where = f"-m {mode}" if mode else "one process"
            raise click.UsageError(
                f"--{wrong[0].replace('_', '-')} has no effect with {where}: it is for -m dist"
            )
        for name in ("module", "module_name", *replicas):
            if options[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} is for -m dist")
        return
    if len(replicas) + bool(options["module"]) != 1:
        raise click.UsageError(
            f"-m dist needs one of -M {'|'.join(MODULES)}, --add, --delete and --restart"
        )
    if replicas and not options["coordinator_name"]:
        raise click.UsageError(f"--{replicas[0]} needs --coordinator-name")
    if options["restart"] and not options["restart_pod_name"]:
        raise click.UsageError("--restart needs --restart-pod-name")
    if options["module"] and not options["config"]:
        raise click.UsageError(
            "-m dist needs a config file (-c); for parts, the one that -M config wrote"
        )
