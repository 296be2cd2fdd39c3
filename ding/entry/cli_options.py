"""Options of the command ``ding`` that only ``-m parallel`` and ``-m dist`` know, and which options
have a meaning in which mode.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

_SERIAL = (
    *("serial", "serial_onpolicy", "serial_offline", "serial_bc"),
    *("serial_dt", "serial_dqfd", "serial_sqil"),
    *("serial_reward_model", "serial_reward_model_onpolicy"),
    *("serial_gail", "serial_gail_onpolicy", "serial_trex", "serial_trex_onpolicy"),
    *("serial_guided_cost", "serial_guided_cost_onpolicy", "serial_bco"),
)
MODES = (*_SERIAL, "parallel", "dist", "eval")
MODULES = (
    *("config", "coordinator", "learner", "collector"),
    *("learner_aggregator", "spawn_learner"),
)

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
)


def parallel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: add the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


#: Where an option applies, as text and as modes; ``None`` is the mode that a config implies.
_USES: tuple[tuple[str, tuple[str | None, ...], tuple[str, ...]], ...] = (
    ("-m eval", ("eval",), ("replay_path",)),
    ("-m parallel", (None, "parallel"), ("engine", "address")),
    ("-m parallel and -m dist", ("parallel", "dist"), ("coordinator_host", "coordinator_port")),
    (
        "-m dist",
        ("dist",),
        (
            *("module", "module_name", "learner_host", "learner_port"),
            *("collector_host", "collector_port", "aggregator_host", "aggregator_port"),
        ),
    ),
    ("training", (None, *_SERIAL, "parallel", "dist"), ("train_iter", "resume")),
    ("training in one process", (None, *_SERIAL), ("env_step",)),
    ("one process", (None, *_SERIAL, "eval"), ("load_path",)),
    ("runs that one command starts", (None, *_SERIAL, "parallel"), ("jobs", "dry_run")),
    ("one process, such as -m serial", (None, *_SERIAL, "dist", "eval"), ("profile",)),
)


def check_usage(options: Mapping[str, Any]) -> None:
    """Refuse what has no meaning in the mode, and what does not go together.

    Raises:
        click.UsageError: The first that is wrong.
    """
    mode = options["mode"]
    given = {name for name in options if options[name] and (name, options[name]) != ("jobs", 1)}
    for where, modes, names in _USES:
        for name in names:
            if name in given and mode not in modes:
                instead = "" if mode is None else f", not -m {mode}"
                raise click.UsageError(f"--{name.replace('_', '-')} is for {where}{instead}")
    if mode == "eval" and len(options["seeds"]) > 1:
        raise click.UsageError("-m eval takes one seed")
    for wrong, message in _combinations(mode, given):
        if wrong:
            raise click.UsageError(message)


def _combinations(mode: str | None, given: set[str]) -> Iterator[tuple[bool, str]]:
    """Options that exclude or need each other: whether they are wrong, and what to say then.

    Args:
        given: Names of the options that were given.
    """
    is_dist = mode == "dist"
    yield (
        "config" in given and bool(given & {"env_id", "policy"}),
        "-c and -e/-p exclude each other; to change a config's environment: --set env.env_id=...",
    )
    yield "config" not in given and mode == "parallel", "-m parallel needs a config file (-c)"
    yield (
        not (is_dist or "config" in given or given >= {"env_id", "policy"}),
        "what to run? Give a config file (-c), or an environment and a policy (-e and -p)",
    )
    yield given >= {"plain", "quiet"}, "--plain and --quiet exclude each other"
    yield given >= {"jobs", "resume"}, "--jobs is for new runs, not --resume"
    yield (
        is_dist and "module" not in given,
        f"-m dist needs one of -M {'|'.join(MODULES)}",
    )
    yield (
        "module" in given and "config" not in given,
        "-m dist needs a config file (-c); for parts, the one that -M config wrote",
    )
