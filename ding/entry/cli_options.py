"""Options of runs, by section, and the modes in which they apply."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol, TypeVar

import click

from ding.utils.types import Config, Settings

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

_Command = TypeVar("_Command", bound=Callable[..., object])


class _Option(Protocol):
    """A decorator that adds an option to a command."""

    def __call__(self, command: _Command, /) -> _Command: ...


_PORT = click.IntRange(0, 65535)
#: Protects against starting a million runs by mistake.
MAX_SEEDS = 1000

# Without a value it means true.
_SWITCH: Config = {
    "is_flag": False,
    "flag_value": True,
    "type": click.BOOL,
    "metavar": "[true|false]",
}


def seeds(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[int]:
    """The seeds of ``0,1,2`` or ``0-4``, over all occurrences of the option."""
    found: list[int] = []
    for text in ",".join(values).split(",") if values else ():
        match = re.fullmatch(r"\s*(-?\d+)(?:-(\d+))?\s*", text)
        if match is None:
            raise click.BadParameter(
                f"{text!r} is not a whole number; expected such as 0, 0,1,2 or 0-4"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise click.BadParameter(f"{text} counts down: write {last}-{first}")
        if not 0 <= first <= last < 1 << 32:
            raise click.BadParameter(f"{text} is not between 0 and {(1 << 32) - 1}")
        if last - first >= MAX_SEEDS:
            raise click.BadParameter(f"{text} are more than {MAX_SEEDS} seeds")
        found += range(first, last + 1)
    if len(set(found)) < len(found):
        raise click.BadParameter(f"a seed is given twice: {found}")
    return found


def _whole(ctx: click.Context, param: click.Parameter, value: float | None) -> int | None:
    return None if value is None else int(value)


# A number of steps, such as 1000 or 1e6.
_STEPS: Config = {"type": click.FloatRange(1, 1e18), "callback": _whole, "metavar": "NUMBER"}
FILE = click.Path(exists=True, dir_okay=False)

#: The sections of options in the order of the help, each with its options.
SECTIONS: dict[str, tuple[_Option, ...]] = {
    "What to run": (
        click.option(
            "-c", "--config", type=FILE, metavar="FILE", help="Config file, .py or .yaml."
        ),
        click.option(
            "-m",
            "--mode",
            type=click.Choice(MODES),
            metavar="MODE",
            help=f"{', '.join(MODES)}. [default: the mode that fits the config]",
        ),
        click.option(
            "--env-manager",
            metavar="TYPE",
            help="Env manager: subprocess, env_pool, ...; ding -q env_manager lists them.",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="PATH=VALUE",
            help="Set a key of the config; may be given several times.",
        ),
        click.option("--strict", is_flag=True, help="Refuse unknown keys of the config."),
        click.option(
            "--dry-run",
            is_flag=True,
            help="Print the complete config of the run without starting it.",
        ),
    ),
    "How long and where": (
        click.option("--train-iter", **_STEPS, help="Maximum number of updates."),
        click.option("--env-step", **_STEPS, help="Maximum number of environment steps."),
        click.option("--exp-name", metavar="FOLDER", help="Folder of the run."),
        click.option("--resume", is_flag=True, help="Continue the run in the config's folder."),
        click.option(
            "--load-path",
            type=FILE,
            metavar="FILE",
            help="Checkpoint to start from, or to evaluate.",
        ),
        click.option(
            "--replay-path",
            type=click.Path(file_okay=False),
            help="Folder for videos of the episodes (-m eval).",
        ),
    ),
    "Seeds": (
        click.option(
            "-s",
            "--seed",
            "seeds",
            multiple=True,
            callback=seeds,
            metavar="N[,N...][,N-N]",
            help="Seed; several seeds start one run each. [default: the config's, or 0]",
        ),
        click.option(
            "--jobs",
            type=click.IntRange(1),
            default=1,
            metavar="N",
            help="Number of runs at the same time, with several seeds. [default: 1]",
        ),
    ),
    "Display": (
        click.option("--plain", is_flag=True, help="Plain lines instead of a live display."),
        click.option("--quiet", is_flag=True, help="No display."),
        click.option("--debug", is_flag=True, help="Show tracebacks of all errors."),
    ),
    "Parallel runs": (
        click.option(
            "--engine", metavar="TYPE", help="Engine: flask_fs, ray or local (-m parallel)."
        ),
        click.option("--address", help="Address of the engine, such as auto for a Ray cluster."),
        click.option(
            "-cdh", "-ch", "--coordinator-host", metavar="HOST", help="Host of the coordinator."
        ),
        click.option("-cdp", "-cp", "--coordinator-port", type=_PORT, help="Its port."),
        click.option(
            "--enable-total-log",
            **_SWITCH,
            default=False,
            help="Workers log all messages, not only warnings.",
        ),
        click.option(
            "--disable-flask-log",
            **_SWITCH,
            default=True,
            help="Do not log single HTTP requests. [default: true]",
        ),
    ),
    "Parts started by hand": (
        click.option("-M", "--module", type=click.Choice(MODULES), help="Part to run (-m dist)."),
        click.option("--module-name", "-mn", metavar="NAME", help="Such as learner1 (-m dist)."),
        click.option("-lh", "--learner-host", metavar="HOST[,...]", help="Hosts of the learners."),
        click.option("-lp", "--learner-port", type=_PORT, help="Port of a learner."),
        click.option("-clh", "--collector-host", metavar="HOST[,...]", help="Hosts of collectors."),
        click.option("-clp", "--collector-port", type=_PORT, help="Port of a collector."),
    ),
}


class Sectioned(click.Command):
    """A command whose help lists its options by section."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            has_settings = any(param.name == "settings" for param in self.params)
            if error.possibilities or not has_settings:
                raise
            cure = "keys of the config: --set PATH=VALUE, such as policy.learn.batch_size=32"
            raise click.UsageError(f"{error.format_message()} For {cure}", ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = {option.name: option for option in self.params if isinstance(option, click.Option)}
        rest = {**own, "help": self.get_help_option(ctx)}
        for section, names in NAMES.items():
            listed = [rest.pop(name) for name in names if name in rest]
            records = [record for one in listed if one and (record := one.get_help_record(ctx))]
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)
        with formatter.section("Other"):
            others = (one.get_help_record(ctx) for one in rest.values() if one is not None)
            formatter.write_dl([record for record in others if record is not None])


def _made(options: Iterable[_Option]) -> click.Command:
    @click.command()
    def command() -> None: ...

    for option in options:
        option(command)
    return command


NAMES = {
    section: tuple(param.name or "" for param in _made(options).params)
    for section, options in SECTIONS.items()
}
#: Defaults of options that a command does not have; the first two are arguments of ``ding train``.
DEFAULTS: Config = {
    "env_id": None,
    "policy": None,
    **_made(one for options in SECTIONS.values() for one in options).make_context("", []).params,
}


def run_options(*names: str, without: Collection[str] = ()) -> Callable[[_Command], _Command]:
    """Decorator: add options of runs to a command.

    Args:
        names: Names of sections or of single options; by default all.
        without: Names of options to leave out.
    """

    def add(command: _Command) -> _Command:
        for section, options in reversed(SECTIONS.items()):
            is_whole = not names or section in names
            for name, option in reversed([*zip(NAMES[section], options)]):
                if (is_whole or name in names) and name not in without:
                    command = option(command)
        return command

    return add


#: Modes of parts that are started by hand, without that of their config.
_PARTS = tuple(f"dist -M {module}" for module in MODULES if module != "config")
_OF_COLLECTORS = "dist", "dist -M collector"
_OF_LEARNERS = "dist", "dist -M learner", "dist -M learner_aggregator"
#: For options, where they apply, as text and as modes; ``None`` is the mode that a config implies.
_USES: tuple[tuple[str, tuple[str | None, ...], tuple[str, ...]], ...] = (
    ("-m eval", ("eval",), ("replay_path",)),
    ("-m parallel", (None, "parallel"), ("engine", "address")),
    (
        "-m parallel and -m dist",
        ("parallel", "dist", *_PARTS),
        ("coordinator_host", "coordinator_port"),
    ),
    (
        "-m dist",
        ("dist", *_PARTS),
        (
            *("module", "module_name", "learner_host", "learner_port"),
            *("collector_host", "collector_port"),
        ),
    ),
    ("-M config and -M collector", _OF_COLLECTORS, ("collector_host", "collector_port")),
    ("-M config and -M learner", _OF_LEARNERS, ("learner_host",)),
    (
        "-M config, -M learner and -M spawn_learner",
        (*_OF_LEARNERS, "dist -M spawn_learner"),
        ("learner_port",),
    ),
    (
        "training",
        (None, *_SERIAL, "parallel", "dist", "dist -M coordinator"),
        ("train_iter", "env_step", "resume"),
    ),
    (
        "configs, which -M config compiles for all parts",
        (None, *_SERIAL, "eval", "parallel", "dist"),
        ("env_manager", "settings", "strict", "exp_name"),
    ),
    ("one process", (None, *_SERIAL, "eval"), ("load_path",)),
    ("runs that one command starts", (None, *_SERIAL, "parallel"), ("jobs", "dry_run")),
)


def check_usage(options: Settings) -> None:
    """Reject options that do not apply in the mode, or cannot be combined.

    Raises:
        click.UsageError: For the first such option.
    """
    mode, module = options["mode"], options["module"]
    place = f"dist -M {module}" if mode == "dist" and module not in (None, "config") else mode
    given = {name for name in options if options[name] and (name, options[name]) != ("jobs", 1)}
    for where, modes, names in _USES:
        for name in names:
            if name in given and place not in modes:
                instead = "" if place is None else f", not -m {place}"
                flag = "set" if name == "settings" else name.replace("_", "-")
                raise click.UsageError(f"--{flag} is for {where}{instead}")
    if mode == "eval" and len(options["seeds"]) > 1:
        raise click.UsageError("-m eval takes one seed")
    for wrong, message in _combinations(mode, given):
        if wrong:
            raise click.UsageError(message)


def _combinations(mode: str | None, given: set[str]) -> Iterator[tuple[bool, str]]:
    """Options that exclude or need each other: whether they are violated, and the message.

    Args:
        given: Names of the options that were given.
    """
    is_dist = mode == "dist"
    yield "config" not in given and mode == "parallel", "-m parallel needs a config file (-c)"
    yield (
        not (is_dist or given & {"config", "env_id"}),
        "what to run? Give a config file (-c), or an environment: ding train ENV [POLICY]",
    )
    yield given >= {"plain", "quiet"}, "--plain and --quiet exclude each other"
    yield given >= {"jobs", "resume"}, "--jobs is for new runs, not --resume"
    yield (is_dist and "module" not in given, f"-m dist needs one of -M {'|'.join(MODULES)}")
    yield (
        "module" in given and "config" not in given,
        "-m dist needs a config file (-c); for parts, the one that -M config wrote",
    )
