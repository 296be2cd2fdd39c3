"""The command ``ding``. Until the command line is parsed, only modules for parsing are imported."""

import contextlib
import difflib
import os
import signal
import sys
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ding import __version__
from ding.entry.cli_options import (
    DEFAULTS,
    FILE,
    MODES,
    NAMES,
    Sectioned,
    check_usage,
    run_options,
)
from ding.entry.run.signals import StopNow, StopSignal
from ding.utils.ending import Ending
from ding.utils.errors import CallbackError, ConfigError, DingError, EnvError, RunError

if TYPE_CHECKING:
    from ding.plot import Axis
    from ding.worker.messages import Kind

_EXAMPLES = """
\b
Examples:
  ding train CartPole-v1 dqn                            train without a config file
  ding init my_config.py -e CartPole-v1 -p dqn          write a config file
  ding -m serial -c cartpole_dqn_config.py -s 0         train from a config file
  ding -c cartpole_dqn_config.py -s 0,1,2               three runs, one after the other
  ding -c cartpole_dqn_config.py -s 0-4 --jobs 2        five runs, two at a time
  ding -c cartpole_dqn_config.py --set policy.learn.batch_size=32
  ding resume exp/run                                   continue a run
  ding -m parallel -c parallel_config.py -s 0           coordinator, learners and collectors
  ding -m dist -M config -c parallel_config.py          the same, each started by hand
  ding worker --join host:7000 --run exp/run            one more collector, on any host
  ding status exp/run                                   progress of a run
  ding board exp                                        a web page of all runs below a folder
  ding plot exp -o returns.png                          returns over seeds, grouped by config
  ding eval exp/run --replay-path videos                returns of its best policy, and videos
  ding eval zoo:cartpole_dqn                            a bundled policy; zoo: lists them
  ding -q policy                                        list what is registered

\b
Exit status: 0 converged or finished, 1 failed, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM.
"""


#: Keys of the given command line, and of the flag to show tracebacks of errors.
_ARGS, _DEBUG = "ding.args", "ding.debug"
#: The commands, as ``ding -h`` lists them.
_COMMANDS = {
    "Training": ("train", "init", "resume", "worker", "sweep"),
    "Results": ("status", "board", "plot", "eval"),
}


class _Group(Sectioned, click.Group):
    """Prints errors without a traceback, and accepts ``--exp_name`` as ``--exp-name``."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            with StopSignal() as stop:
                result = super().invoke(ctx)
            if stop.number is not None:  # another handler has caught and dropped the exception
                raise StopNow(stop.number)
            return result
        except DingError as error:
            if ctx.meta.get(_DEBUG) and not (isinstance(error, RunError) and error.printed):
                raise
            lines = [] if error.printed else [f"{click.style('error:', fg='red')} {error}"]
            is_own = error.__cause__ is not None and not isinstance(error.__cause__, DingError)
            if isinstance(error, EnvError | CallbackError) and is_own:
                lines.append("(--debug shows where in its code)")
            if lines:
                click.echo("\n".join(lines), err=True)
            sys.exit(1)
        except KeyboardInterrupt as error:
            ending = error.ending if isinstance(error, StopNow) else Ending.by_signal(signal.SIGINT)
            click.echo(ending.reason, err=True)
            sys.exit(ending.exit_status)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # --exp_name is --exp-name.
        split = [(arg, *arg.partition("=")) for arg in args]
        args = [
            name.replace("_", "-") + equals + value if arg.startswith("--") else arg
            for arg, name, equals, value in split
        ]
        ctx.meta[_ARGS] = list(args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            name = args[0]
            near = difflib.get_close_matches(name, self.commands, n=1)
            if name.endswith((".py", ".yaml", ".yml")):
                cure = f"for a config, ding -c {name}"
            elif os.path.isdir(name):
                cure = f"for a run's folder, such as ding status {name} or ding resume {name}"
            elif near:
                cure = f"did you mean ding {near[0]}?"
            else:
                cure = f"to train in an environment, ding train {name}; ding -h lists the commands"
            raise click.UsageError(f"no such command {name!r}: {cure}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in _COMMANDS.items():
            with formatter.section(section):
                rows = [(name, self.commands[name].get_short_help_str(80)) for name in names]
                formatter.write_dl(rows)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        Sectioned.format_options(self, ctx, formatter)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EXAMPLES,
    no_args_is_help=True,
    invoke_without_command=True,
    subcommand_metavar="",
)
@run_options()
@click.option("-q", "--query", is_flag=False, flag_value="all", metavar="[REGISTRY]",
              help="List a registry's types; alone, the registries.")  # fmt: skip
@click.version_option(
    __version__, "-v", "--version", prog_name="ding", message="%(prog)s %(version)s"
)
@click.pass_context
def main(ctx: click.Context, query: str | None, **options: object) -> None:
    """Train and evaluate reinforcement-learning policies."""
    ctx.meta[_DEBUG] = options["debug"]
    if ctx.invoked_subcommand is None and query is not None:
        _list_types(query)
    elif ctx.invoked_subcommand is None:
        _start(ctx, **options)
    else:
        for param in ctx.command.params:
            source = ctx.get_parameter_source(param.name or "")
            if source is ParameterSource.COMMANDLINE and param.name != "debug":
                raise click.UsageError(
                    f"{max(param.opts, key=len)} before the command {ctx.invoked_subcommand!r} has "
                    f"no effect: write it after, if ding {ctx.invoked_subcommand} -h lists it"
                )


def _start(ctx: click.Context, **options: object) -> None:
    """Run with options; those that the command does not have get defaults."""
    options = {**DEFAULTS, **options, "args": ctx.meta[_ARGS]}
    ctx.meta[_DEBUG] = ctx.meta.get(_DEBUG) or options["debug"]
    check_usage(options)
    if options["plain"] or options["quiet"]:
        os.environ["DING_CONSOLE"] = "quiet" if options["quiet"] else "plain"
    sys.path.insert(0, os.getcwd())  # as for scripts
    # Torch is only imported here, so that help is fast.
    from ding.entry.cli_runs import run

    sys.exit(run(options))


#: Sections of options that all runs have; and options that a run in a folder has already.
_COMMON = ("What to run", "How long and where", "Seeds", "Display")
_OF_NEW_RUNS = (
    *("config", "mode", "resume", "exp_name", "dry_run", "replay_path"),
    *NAMES["Seeds"],
)


@main.command(cls=Sectioned)
@click.argument("env_id", metavar="ENV")
@click.argument("policy", required=False)
@run_options(*_COMMON, without=("config", "mode", "replay_path"))
@click.pass_context
def train(ctx: click.Context, env_id: str, policy: str | None, **options: object) -> None:
    """Train a policy in an environment without a config file.

    ENV is an id of gymnasium, or a type of ding -q env. POLICY is a type of ding -q policy; by
    default ppo, and sac for continuous actions. Its settings are those of the package's configs;
    ding init writes them to a file.
    """
    _start(ctx, env_id=env_id, policy=policy, **options)


@main.command(cls=Sectioned)
@click.argument("path", metavar="FILE")
@click.option("-e", "--env", "env_id", metavar="ID", help="[default: one that suits the policy]")
@click.option("-p", "--policy", metavar="TYPE", help="Of ding -q policy. [default: ppo or sac]")
@click.option("--debug", is_flag=True, help="Show tracebacks of all errors.")
@click.pass_context
def init(
    ctx: click.Context, path: str, env_id: str | None, policy: str | None, debug: bool
) -> None:
    """Write a config FILE that explains each key."""
    from ding.entry.new_config import write_new_config

    ctx.meta[_DEBUG] = ctx.meta.get(_DEBUG) or debug
    if not os.path.splitext(path)[1]:
        path = f"{path}.py"
    click.echo(f"{path}: train with  {write_new_config(path, env_id, policy)}")


@main.command(cls=Sectioned)
@click.argument("run", type=click.Path())
@run_options(*_COMMON, without=_OF_NEW_RUNS)
@click.pass_context
def resume(ctx: click.Context, run: str, **options: object) -> None:
    """Continue the run in the folder RUN.

    It continues in its mode and from its newest saved state, also after a crash.
    """
    from ding.utils.run_files import read_record, why_no_run

    config = os.path.join(run, "formatted_total_config.py")
    if not os.path.isfile(config):
        raise ConfigError(why_no_run(run, os.path.basename(config)))
    with contextlib.suppress(FileNotFoundError):
        if (mode := read_record(run).facts.get("mode")) in MODES:
            options["mode"] = mode
    _start(ctx, config=config, resume=True, **options)


@main.command("eval", cls=Sectioned)
@click.argument("name", metavar="RUN|zoo:NAME")
@click.option("-s", "--seed", default=0, type=click.IntRange(0, (1 << 32) - 1), show_default=True)
@click.option(
    "--episodes", type=click.IntRange(1), help="Number of episodes. [default: the config's]"
)
@run_options("replay_path", "settings")
def evaluate(
    name: str, seed: int, episodes: int | None, replay_path: str | None, settings: tuple[str, ...]
) -> None:
    """Evaluate a run's best policy, or one of the zoo.

    RUN is a folder; ding eval zoo: lists the policies of the package.
    """
    from ding.entry.cli_runs import evaluate_trained, list_zoo

    sys.path.insert(0, os.getcwd())
    if name == "zoo:":
        list_zoo()
    else:
        evaluate_trained(name, seed, episodes, replay_path, settings)


@main.command(cls=Sectioned)
@click.argument("exp", metavar="EXP_NAME")
@click.option("--json", "as_json", is_flag=True, help="All facts, as JSON.")
def status(exp: str, as_json: bool) -> None:
    """Show the progress of a run, or how it ended."""
    from ding.entry.run.status import report

    click.echo(report(exp, as_json))


@main.command(cls=Sectioned)
@click.option("--join", "address", required=True, metavar="HOST:PORT",
              help="The coordinator's address; ding status shows it.")  # fmt: skip
@click.option("--kind", type=click.Choice(["collector", "learner"]), default="collector",
              show_default=True)  # fmt: skip
@click.option("--name", help="Name, such as collector7. [default: an unused one]")
@click.option("--run", "folder", default=".", type=click.Path(exists=True, file_okay=False),
              help="The run's folder, for its key, if that is not in DING_RUN_KEY.")  # fmt: skip
def worker(address: str, kind: "Kind", name: str | None, folder: str) -> None:
    """Add a worker to a parallel run, on any host with its folder."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise click.BadParameter(f"{address!r} is not HOST:PORT", param_hint="--join")
    from ding.entry.dist_entry import join

    sys.path.insert(0, os.getcwd())  # the run's modules may be there
    join(host, int(port), kind, name, folder)


@main.command(cls=Sectioned)
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False))
@click.option("--port", default=6007, type=click.IntRange(0, 65535), show_default=True)
def board(folder: str, port: int) -> None:
    """Show all runs below FOLDER on a local web page.

    The page is updated while runs train. Ctrl-C ends the server.
    """
    from ding.board.server import BoardServer, serve_until_signal
    from ding.entry.run.status import live_status

    server = BoardServer(folder, live_status, port)
    click.echo(f"runs below {os.path.abspath(folder)}: {server.url}  (Ctrl-C ends it)")
    serve_until_signal(server)


@main.command(cls=Sectioned)
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("-o", "--output", default="returns.png", show_default=True,
              help="File to draw into: .png, .pdf or .svg.")  # fmt: skip
@click.option("-x", default="envstep", type=click.Choice(["envstep", "iter", "time"]),
              show_default=True, help="Environment steps, updates, or minutes.")  # fmt: skip
@click.option("--groups", default=12, type=click.IntRange(1), show_default=True,
              help="Maximum number of configs in a panel; the best ones are drawn.")  # fmt: skip
def plot(runs: tuple[str, ...], output: str, x: "Axis", groups: int) -> None:
    """Draw the returns of RUNS, grouped by config, and rank them.

    RUNS are folders; files among them, such as pictures that a pattern matches, are left out.
    """
    from ding.plot import returns

    found = returns([run for run in runs if os.path.isdir(run)], x)
    click.echo(found.table())
    try:
        found.save(output, groups)
    except OSError as error:
        raise ConfigError(f"cannot draw into {output!r}: {error.strerror or error}") from error
    click.echo(f"\n{os.path.abspath(output)}")


@main.command(cls=Sectioned)
@run_options("config", "settings", "train_iter", "env_step", "seeds")
@click.option("-e", "--env", "env_id", metavar="ID",
              help="Environment, instead of a config file; with -p.")  # fmt: skip
@click.option("-p", "--policy", metavar="TYPE", help="Policy for -e.")
@click.option("--space", type=FILE, required=True, metavar="FILE",
              help="YAML file with the search space (docs/sweeps.md).")  # fmt: skip
@click.option("--trials", default=50, type=click.IntRange(1), show_default=True)
@click.option(
    "--jobs", default=1, type=click.IntRange(1), help="Number of trials at the same time."
)
@click.option("--folder", default="exp/sweep", show_default=True,
              help="Folder of the runs; a sweep in it is continued.")  # fmt: skip
@click.option("--sampler", default="tpe", type=click.Choice(["tpe", "random", "grid"]),
              show_default=True, help="Method that suggests settings.")  # fmt: skip
@click.option("--pruner", default="median", type=click.Choice(["median", "none"]),
              show_default=True, help="Method that ends bad trials early.")  # fmt: skip
def sweep(**options: object) -> None:
    """Search for the settings of a config with the highest returns."""
    if (options["config"] is None) == (options["env_id"] is None):
        raise click.UsageError("expected -c FILE, or -e ID with -p TYPE")
    if (options["env_id"] is None) != (options["policy"] is None):
        raise click.UsageError("-e and -p go together")
    try:
        from ding.entry.sweep import run_sweep
    except ImportError as error:
        raise ConfigError("a sweep needs Optuna: pip install 'ding[sweep]'") from error

    sys.path.insert(0, os.getcwd())
    click.echo("\n" + run_sweep(options))


def _list_types(name: str) -> None:
    from ding.utils.builtin_types import BUILTIN_TYPES
    from ding.utils.console import table
    from ding.utils.registry_factory import registries

    if name == "all":
        click.echo("\n".join(f"{key}: {len(list(registries[key].query()))}" for key in registries))
        return
    if name not in registries:
        raise click.BadParameter(
            f"{name!r} is no registry; there are {', '.join(registries)}", param_hint="-q"
        )
    rows: list[tuple[str, ...]] = []
    if name == "policy":
        rows = [("type", "actions", "paper", "module")]
    elif name == "env":
        rows = [("type", "needs", "module", "what")]
    for key in sorted(registries[name].query()):
        if name not in ("policy", "env"):
            rows.append((key, BUILTIN_TYPES.get(name, {}).get(key, "")))
            continue
        cls = registries[name].get(key)
        if name == "env":
            simulator = getattr(cls, "needs", None)  # the extra of this package that it needs
            needs = "" if simulator is None else f"ding[{simulator.extra}]"
            if simulator is not None and not simulator.is_installed:
                needs += " (missing)"
            what = (cls.__doc__ or "").partition("\n")[0].replace("``", "")
            rows.append((key, needs, cls.__module__, what))
        elif not key.endswith("_command"):  # the pipelines choose command modes, not users
            actions = ", ".join(getattr(cls, "actions", ()))
            rows.append((key, actions, getattr(cls, "paper", ""), cls.__module__))
    click.echo("\n".join(table(rows)))


if __name__ == "__main__":
    main()
