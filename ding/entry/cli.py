"""The command ``ding``. Only what parses the command line is imported before that is done."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from typing import Any

import click

from ding import __version__
from ding.entry.cli_options import MODES, check_usage, parallel_options
from ding.entry.run.signals import StopNow, StopSignal
from ding.utils.ending import Ending
from ding.utils.errors import CallbackError, ConfigError, DingError, EnvError, RunError

#: So that a slip does not start a million runs.
MAX_SEEDS = 1000

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
  ding status exp/run                                   how a parallel run is going
  ding board exp                                        a web page of all runs below a folder
  ding plot exp -o returns.png                          returns over seeds, grouped by config
  ding eval exp/run --replay-path videos                what it has learned, and films of it
  ding eval zoo:cartpole_dqn                            a bundled policy; zoo: lists them
  ding -q policy                                        list what is registered

\b
Exit status: 0 converged or finished, 1 failed, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM.
"""


def _seeds(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[int]:
    seeds: list[int] = []
    for text in ",".join(values).split(",") if values else ():
        match = re.fullmatch(r"\s*(-?\d+)(?:-(\d+))?\s*", text)
        if match is None:
            raise click.BadParameter(
                f"{text!r} is no whole number; expected such as 0, 0,1,2 or 0-4"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise click.BadParameter(f"{text} counts down: write {last}-{first}")
        if not 0 <= first <= last < 1 << 32:
            raise click.BadParameter(f"{text} is not between 0 and {(1 << 32) - 1}")
        if last - first >= MAX_SEEDS:
            raise click.BadParameter(f"{text} are more than {MAX_SEEDS} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        raise click.BadParameter(f"a seed is given twice: {seeds}")
    return seeds


def _scales(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, tuple[float, float]]:
    scales = {}
    for text in values:
        env, _, ends = text.rpartition("=")
        try:
            low, high = map(float, ends.split(":"))
        except ValueError:
            low = high = 0.0
        if not env or not low < high:
            raise click.BadParameter(f"{text!r}: expected ENV=LOW:HIGH such as CartPole-v1=0:500")
        scales[env] = (low, high)
    return scales


class _Count(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """A number of steps; ``1e6`` is one."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 1 <= number < float("inf"):
            self.fail(f"{value!r} is no number of at least 1", param, ctx)
        return int(number)


#: Where the command line is kept as it was given.
_ARGS = "ding.args"


class _Group(click.Group):
    """Prints errors without a traceback, and accepts ``--exp_name`` as ``--exp-name``."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with StopSignal() as stop:
                result = super().invoke(ctx)
            if stop.number is not None:  # the code that caught it has dropped it
                raise StopNow(stop.number)
            return result
        except DingError as error:
            if ctx.params["debug"] and not (isinstance(error, RunError) and error.printed):
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

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0].endswith((".py", ".yaml", ".yml")):
            raise click.UsageError(f"no such command {args[0]!r}: for a config, ding -c {args[0]}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Group,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
    epilog=_EXAMPLES,
    no_args_is_help=True,
    invoke_without_command=True,
    subcommand_metavar="",
)
@click.option("-m", "--mode", type=click.Choice(MODES), metavar="MODE",
              help=f"{', '.join(MODES)}; without it, train as the policy wants.")  # fmt: skip
@click.option("-c", "--config", type=click.Path(exists=True, dir_okay=False),
              help="Config file, .py or .yaml.")  # fmt: skip
@click.option("-s", "--seed", "seeds", multiple=True, callback=_seeds, metavar="N[,N...][,N-N]",
              help="Seed; several make one run each. [default: the config's, or 0]")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=1, metavar="N",
              help="Runs of several seeds at a time. [default: 1]")  # fmt: skip
@click.option("-e", "--env", "env_id", metavar="ID",
              help="Environment, instead of a config file; with -p.")  # fmt: skip
@click.option("-p", "--policy", metavar="TYPE", help="Policy for -e: dqn, ppo, sac or others.")
@click.option("--exp-name", metavar="FOLDER", help="Folder of the run.")
@click.option("--train-iter", type=_Count(), help="Updates after which to stop.")
@click.option("--env-step", type=_Count(), help="Environment steps after which to stop.")
@click.option("--load-path", type=click.Path(exists=True, dir_okay=False),
              help="Checkpoint to begin with, or to evaluate.")  # fmt: skip
@click.option("--replay-path", type=click.Path(file_okay=False),
              help="Folder for videos of the episodes (-m eval).")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE",
              help="Set a key of the config; may be given several times.")  # fmt: skip
@click.option("--strict", is_flag=True,
              help="Refuse keys of the config that are not known.")  # fmt: skip
@click.option("--dry-run", is_flag=True,
              help="Print the whole config as a run would have it, and run nothing.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with the run in the config's folder.")
@parallel_options
@click.option("--profile", type=click.Path(file_okay=False), metavar="FOLDER",
              help="Measure where the time goes; written to this folder.")  # fmt: skip
@click.option("--plain", is_flag=True, help="Plain lines instead of a live display.")
@click.option("--quiet", is_flag=True, help="No display.")
@click.option("--debug", is_flag=True, help="Show tracebacks of all errors.")
@click.option("-q", "--query", is_flag=False, flag_value="all", metavar="[REGISTRY]",
              help="List a registry's types; alone, the registries.")  # fmt: skip
@click.version_option(
    __version__, "-v", "--version", prog_name="ding", message="%(prog)s %(version)s"
)
@click.pass_context
def main(
    ctx: click.Context,
    query: str | None,
    profile: str | None,
    debug: bool,
    plain: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Train and evaluate reinforcement-learning policies."""
    if ctx.invoked_subcommand is not None:
        return
    if query is not None:
        _list_types(query)
        return
    options["args"] = ctx.meta[_ARGS]
    check_usage({**options, "plain": plain, "quiet": quiet, "profile": profile})
    if plain or quiet:
        os.environ["DING_CONSOLE"] = "quiet" if quiet else "plain"
    sys.path.insert(0, os.getcwd())  # where scripts find their modules, too
    with _profiled(profile):
        status = _run(options)
    sys.exit(status)


def _run(options: dict[str, Any]) -> int:
    # Torch and all are imported here: not for those who ask for help.
    from ding.entry.cli_runs import run, run_dist

    return run_dist(options) if options["mode"] == "dist" else run(options)


@contextlib.contextmanager
def _profiled(folder: str | None) -> Iterator[None]:
    """Write ``profile.prof`` (for ``pstats``) and a readable ``profile.txt`` into a folder."""
    if folder is None:
        yield
        return
    import cProfile
    import io
    import pstats

    from ding.utils.file_helper import replace_text, temporary_name

    os.makedirs(folder, exist_ok=True)
    profiler = cProfile.Profile()
    try:
        with profiler:
            yield
    finally:
        readable = io.StringIO()
        pstats.Stats(profiler, stream=readable).sort_stats("cumulative").print_stats(60)
        replace_text(os.path.join(folder, "profile.txt"), readable.getvalue())
        raw = os.path.join(folder, "profile.prof")
        part = temporary_name(raw)
        profiler.dump_stats(part)
        os.replace(part, raw)


#: Options of `ding` that a short command passes on.
_PASSED_ON = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}


@main.command(context_settings=_PASSED_ON)
@click.argument("env")
@click.argument("policy", default="ppo")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def train(ctx: click.Context, env: str, policy: str, options: tuple[str, ...]) -> None:
    """Train POLICY [default: ppo] in ENV without a config file: ding -e ENV -p POLICY."""
    # An option in the place of the policy: ding train CartPole-v1 -s 0
    named = [policy] if not policy.startswith("-") else ["ppo", policy]
    _again(ctx, ["-e", env, "-p", *named, *options])


@main.command(context_settings=_PASSED_ON)
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def resume(ctx: click.Context, run: str, options: tuple[str, ...]) -> None:
    """Continue the run in the folder RUN, in its mode: ding -m MODE -c ... --resume."""
    from ding.utils.run_files import read_record

    config = os.path.join(run, "formatted_total_config.py")
    if not os.path.isfile(config):
        raise ConfigError(f"no run in {run!r}: there is no {os.path.basename(config)}")
    with contextlib.suppress(FileNotFoundError):
        if (mode := read_record(run).facts.get("mode")) in MODES:
            options = ("-m", mode, *options)
    _again(ctx, ["-c", config, "--resume", *options])


def _again(ctx: click.Context, args: list[str]) -> None:
    """Run `ding` with other arguments, in its error handling."""
    with main.make_context("ding", args) as other:
        click.Group.invoke(main, other)


@main.command()
@click.argument("path", metavar="FILE")
@click.option("-e", "--env", "env_id", default="CartPole-v1", show_default=True)
@click.option("-p", "--policy", default="dqn", show_default=True)
def init(path: str, env_id: str, policy: str) -> None:
    """Write a new config FILE for an environment and a policy, with the meaning of each key."""
    from ding.entry.quick_config import write_new_config

    path = path if path.endswith(".py") else f"{path}.py"
    write_new_config(path, env_id, policy)
    click.echo(f"{path}: train with  ding -c {path} -s 0")


@main.command("eval")
@click.argument("name", metavar="RUN|zoo:NAME")
@click.option("-s", "--seed", default=0, type=click.IntRange(0, (1 << 32) - 1), show_default=True)
@click.option("--episodes", type=click.IntRange(1), help="How many. [default: the config's]")
@click.option("--replay-path", type=click.Path(file_okay=False),
              help="Folder for videos of the episodes.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE",
              help="Set a key of the config; may be given several times.")  # fmt: skip
def evaluate(
    name: str,
    seed: int,
    episodes: int | None,
    replay_path: str | None,
    settings: tuple[str, ...],
) -> None:
    """Evaluate the best policy of a run's folder, or one of the zoo (zoo: lists it)."""
    from ding.entry.cli_runs import evaluate_trained, list_zoo

    sys.path.insert(0, os.getcwd())
    if name == "zoo:":
        list_zoo()
    else:
        evaluate_trained(name, seed, episodes, replay_path, settings)


@main.command()
@click.argument("exp", metavar="EXP_NAME")
@click.option("--json", "as_json", is_flag=True, help="All facts, as JSON.")
def status(exp: str, as_json: bool) -> None:
    """Show how a parallel run is going, or how it ended."""
    from ding.entry.run.status import report

    click.echo(report(exp, as_json))


@main.command()
@click.option("--join", "address", required=True, metavar="HOST:PORT",
              help="The coordinator's address; ding status shows it.")  # fmt: skip
@click.option("--kind", type=click.Choice(["collector", "learner"]), default="collector",
              show_default=True)  # fmt: skip
@click.option("--name", help="Such as collector7. [default: one that no worker of the run has]")
@click.option("--run", "folder", default=".", type=click.Path(exists=True, file_okay=False),
              help="The run's folder, for its key, if that is not in DING_RUN_KEY.")  # fmt: skip
def worker(address: str, kind: Any, name: str | None, folder: str) -> None:
    """Run one more worker of a parallel run, on any host that shares the run's folder."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise click.BadParameter(f"{address!r} is not HOST:PORT", param_hint="--join")
    from ding.entry.dist_entry import join

    sys.path.insert(0, os.getcwd())  # where the run's modules may be
    join(host, int(port), kind, name, folder)


@main.command()
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False))
@click.option("--host", default="127.0.0.1", help="Where to listen; another asks for a token.")
@click.option("--port", default=6007, type=click.IntRange(0, 65535), show_default=True)
def board(folder: str, host: str, port: int) -> None:
    """Show all runs below FOLDER on a local web page, live, until Ctrl-C."""
    from ding.board.server import BoardServer, serve_until_signal
    from ding.entry.run.status import live_status

    server = BoardServer(folder, live_status, host, port)
    click.echo(f"runs below {os.path.abspath(folder)}: {server.url}  (Ctrl-C ends it)")
    serve_until_signal(server)


@main.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("-o", "--output", help="File to draw into: .png, .pdf, .svg or .html. "
              "[default: returns.png, or comparison.png]")  # fmt: skip
@click.option("-x", default="envstep", type=click.Choice(["envstep", "iter", "time"]),
              show_default=True, help="Environment steps, updates, or minutes.")  # fmt: skip
@click.option("--groups", default=12, type=click.IntRange(1), show_default=True,
              help="Configs in a panel at most, the best ones.")  # fmt: skip
@click.option("--compare", is_flag=True,
              help="Compare algorithms over all environments, by scores.")  # fmt: skip
@click.option("--scale", "scales", multiple=True, callback=_scales, metavar="ENV=LOW:HIGH",
              help="Returns of score 0 and 1. [default: untrained, and the goal]")  # fmt: skip
def plot(
    runs: tuple[str, ...],
    output: str | None,
    x: Any,
    groups: int,
    compare: bool,
    scales: dict[str, tuple[float, float]],
) -> None:
    """Draw the returns of RUNS over their seeds, grouped by config, and rank them.

    RUNS are folders; files among them, such as pictures that a pattern matches, are left out.
    """
    from ding import compare as comparison
    from ding.plot import returns

    if scales and not compare:
        raise click.UsageError("--scale is for --compare")
    found = returns([run for run in runs if os.path.isdir(run)], x)
    output = output or ("comparison.png" if compare else "returns.png")
    try:
        if compare:
            compared = comparison.compare(found, scales, groups)
            click.echo(compared.table())
            compared.save(output)
        else:
            click.echo(found.table())
            found.save(output, groups)
    except OSError as error:
        raise ConfigError(str(error)) from error
    click.echo(f"\n{os.path.abspath(output)}")


@main.command()
@click.option("-c", "--config", type=click.Path(exists=True, dir_okay=False),
              help="Config file.")  # fmt: skip
@click.option("-e", "--env", "env_id", metavar="ID",
              help="Environment, instead of a config file; with -p.")  # fmt: skip
@click.option("-p", "--policy", metavar="TYPE", help="Policy for -e.")
@click.option("--space", type=click.Path(exists=True, dir_okay=False),
              help="YAML file of what to try.")  # fmt: skip
@click.option("--trials", default=50, type=click.IntRange(1), show_default=True)
@click.option("--jobs", default=1, type=click.IntRange(1), help="Trials at a time.")
@click.option("--folder", default="exp/sweep", show_default=True,
              help="Of the runs; a sweep that it holds is continued.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Continue the sweep in the folder, as it was begun.")
@click.option("--storage", metavar="URL|FILE",
              help="Database or journal of the study. [default: in the folder]")  # fmt: skip
@click.option("-s", "--seed", "seeds", multiple=True, callback=_seeds, metavar="N[,N...][,N-N]",
              help="Seeds of each trial. [default: 0]")  # fmt: skip
@click.option("--metric", default="last", type=click.Choice(["last", "best", "area"]),
              show_default=True,
              help="Of a run: last return, best, or mean over its env steps.")  # fmt: skip
@click.option("--over-seeds", default="iqm", show_default=True,
              type=click.Choice(["iqm", "mean", "median", "worst"]),
              help="Of a trial's runs.")  # fmt: skip
@click.option("--sampler", type=click.Choice(["tpe", "random", "grid", "gp", "cmaes", "qmc"]),
              help="What suggests settings. [default: tpe]")  # fmt: skip
@click.option("--pruner", type=click.Choice(["median", "hyperband", "halving", "none"]),
              help="What ends trials early. [default: median]")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE",
              help="Set a key of the config in all trials.")  # fmt: skip
@click.option("--train-iter", type=_Count(), help="Updates after which a run stops.")
@click.option("--env-step", type=_Count(), help="Environment steps after which a run stops.")
@click.pass_context
def sweep(ctx: click.Context, **options: Any) -> None:
    """Look for the settings of a config that return most."""
    source = ctx.get_parameter_source
    default = click.core.ParameterSource.DEFAULT
    of_plan = (
        *("config", "env_id", "policy", "seeds", "metric", "over_seeds", "settings"),
        *("train_iter", "env_step"),
    )
    if options["resume"]:
        given = [name for name in of_plan if source(name) is not default]
        if given:
            raise click.UsageError("--resume takes these from the sweep: " + ", ".join(given))
    elif options["space"] is None:
        raise click.UsageError("--space FILE is missing: what to try (docs/sweeps.md)")
    elif (options["config"] is None) == (options["env_id"] is None):
        raise click.UsageError("expected -c FILE, or -e ID with -p TYPE")
    elif (options["env_id"] is None) != (options["policy"] is None):
        raise click.UsageError("-e and -p go together")
    from ding.entry.sweep import run_sweep

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
    types = sorted(registries[name].query())
    if name not in ("policy", "env"):
        for key in types:
            module = BUILTIN_TYPES.get(name, {}).get(key, "")
            click.echo(f"{key:<24} {module}".rstrip())
        return
    rows: list[tuple[str, ...]] = [("type", "actions", "paper", "module")]
    if name == "env":
        rows = [("type", "needs", "module", "what")]
    for key in types:
        cls: Any = registries[name].get(key)
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
