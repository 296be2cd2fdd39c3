"""``ding sweep``: look for good settings with Optuna (Akiba et al. 2019).

A study is in a journal file of the folder, or in a database. Any number of processes may work on
it: each takes the next trial until there are enough. A process that is killed leaves a running
trial; the next process that looks for work marks it as failed, and its settings are tried again.
"""

import math
import os
import shlex
import statistics
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import click
import numpy as np

from ding.board.run_list import Curve, Run
from ding.entry.cli_runs import check_settings
from ding.entry.seed_runs import Commands
from ding.entry.sweep_space import Space, Value, read_space
from ding.plot import return_points
from ding.utils.console import table
from ding.utils.errors import ConfigError, DingError, RunError
from ding.utils.lock_helper import FcntlContext
from ding.utils.processes import process_identity, still_runs
from ding.utils.seed_statistics import final_return, interquartile_mean
from ding.utils.types import Settings

if TYPE_CHECKING:
    import optuna

JOURNAL = "sweep.journal"
METRICS = ("last", "best", "area")
SAMPLERS = ("tpe", "random", "grid", "gp", "cmaes", "qmc")
PRUNERS = ("median", "hyperband", "halving", "none")
#: How the returns of a trial's seeds become one value.
AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "iqm": lambda values: float(interquartile_mean(np.array(values))),
    "mean": statistics.fmean,
    "median": statistics.median,
    "worst": min,
}
#: Packages that a sampler needs in addition to Optuna.
_NEEDS = {"gp": "scipy", "cmaes": "cmaes", "qmc": "scipy"}
#: This number of failures without one success is attributed to the config.
MAX_FAILURES = 3
#: Trials are compared after each of these parts of their env steps.
RUNGS = 20
#: Least distance between the steps of two seeds where trials are compared after each evaluation.
_EVALUATIONS = 10_000
_LOOK = 1.0
#: Seconds between signs of life of a trial, and after which one without is taken for dead.
BEAT, DEAD = 30.0, 300.0
_SHOWN = 10


@dataclass(frozen=True)
class Plan:
    """What all trials of a study share; it is stored in the study.

    Attributes:
        args: The command line of a run, without seed and folder.
        seeds: Each trial is a run for each of them.
        metric: Of a run: ``last`` is the mean of its last five evaluations (of a converged run the
            last one), ``best`` the best evaluation, ``area`` the mean of its curve over env steps.
        over_seeds: How the metrics of a trial's runs become its value: see `AGGREGATES`.
        env_step: Env steps after which a run ends, ``None`` if it is not limited so.
    """

    args: Sequence[str]
    seeds: Sequence[int] = (0,)
    metric: str = "last"
    over_seeds: str = "iqm"
    env_step: int | None = None


def run_sweep(options: Settings) -> str:
    """Do what the options of ``ding sweep`` say; returns the report.

    Every choice and both ends of every range are tried in the config before the first trial.

    Raises:
        ConfigError: As `sweep`, or the space is wrong, or a key in it.
    """
    space = plan = None
    if options["space"] is not None:
        space = read_space(options["space"])
    if not options["resume"]:
        assert space is not None
        config, env_id, policy = (options[name] for name in ("config", "env_id", "policy"))
        for values in space.examples():
            settings = [*options["settings"], *(f"{k}={v!r}" for k, v in values.items())]
            try:
                check_settings(config, env_id, policy, settings)
            except DingError as error:
                raise ConfigError(f"{options['space']}: {error}") from error
        args = ["-c", config] if config else ["-e", env_id, "-p", policy]
        for setting in options["settings"]:
            args += ["--set", setting]
        for name in ("train_iter", "env_step"):
            if options[name] is not None:
                args += [f"--{name.replace('_', '-')}", str(options[name])]
        seeds = options["seeds"] or [0]
        metric, over_seeds = options["metric"], options["over_seeds"]
        plan = Plan(args, seeds, metric, over_seeds, options["env_step"])
    return sweep(
        *(space, plan, options["folder"], options["trials"], options["jobs"]),
        *(options["sampler"], options["pruner"], options["storage"]),
    )


def sweep(
    space: Space | None,
    plan: Plan | None,
    folder: str,
    trials: int,
    jobs: int = 1,
    sampler: str | None = None,
    pruner: str | None = None,
    storage: str | None = None,
) -> str:
    """Train with the most promising settings until the study has `trials` trials.

    Each trial is one run, or one for each seed, below the folder. It is ended early if the pruner
    finds it worse than earlier trials.

    Args:
        space: What is tried; ``None`` for that of the study, which is continued.
        plan: What all trials share; ``None`` for that of the study.
        folder: Where runs and the study's journal are.
        jobs: Trials at a time.
        sampler: One of `SAMPLERS`; ``None`` for the study's, ``tpe`` at first.
        pruner: One of `PRUNERS`; ``None`` for the study's, ``median`` at first.
        storage: A database's URL, or another journal file.

    Returns:
        A report: the best trials, and how much each setting matters.

    Raises:
        ConfigError: Optuna, or what a sampler needs, is not installed; the study cannot be opened,
            or was made for other runs.
        RunError: No trial works.
    """
    with Commands(jobs) as commands:
        found = _open(folder, storage, plan is None)
        space, plan = _settled(found, space, plan, folder)
        study = _Study(found, space, plan, folder, trials)
        study.prepare(sampler, pruner)
        outputs: list[str] = []

        def try_next() -> bool:
            if len(outputs) >= MAX_FAILURES and not study.ended():
                return False
            claimed = study.claim()
            if claimed is None:
                return False
            trial, values = claimed
            try:
                value = _Trial(trial, values, study).train(commands, outputs)
            except BaseException as error:
                study.fail(trial.number, again=commands.is_ending)
                if isinstance(error, RunError):
                    return True
                raise
            study.finish(trial, value)
            return True

        commands.work(try_next)
        if not study.ended():
            cause = f"; the last one said: {outputs[-1][-2000:].strip()}" if outputs else ""
            raise RunError(f"no trial worked{cause}")
        return study.report()


class _Study:
    """A study of Optuna whose trials are shared by threads and processes."""

    def __init__(
        self, study: "optuna.Study", space: Space, plan: Plan, folder: str, trials: int
    ) -> None:
        from optuna.trial import TrialState

        self.space, self.plan, self.folder = space, plan, folder
        self._study, self._trials = study, trials
        self._states = TrialState
        self._threads = threading.Lock()
        self._is_grid = False

    def prepare(self, sampler: str | None, pruner: str | None) -> None:
        """Choose sampler and pruner; enqueue the trials of a grid."""
        with self._locked():
            known = self._study.user_attrs
            sampler = sampler or known.get("sampler", "tpe")
            pruner = pruner or known.get("pruner", "median")
            # A number for each process, since equal seeds would try the same settings twice.
            number = known.get("processes", 0)
            facts = {"sampler": sampler, "pruner": pruner, "processes": number + 1}
            for name, fact in facts.items():
                self._study.set_user_attr(name, fact)
            self._is_grid = sampler == "grid"
            self._study.sampler = _sampler("random" if self._is_grid else sampler, number)
            longest = len(self.plan.seeds) * (RUNGS + 1)
            self._study.pruner = _pruner(pruner, longest)
            if self._is_grid:
                for values in self.space.grid():
                    self._enqueue(values, skip_if_exists=True)

    def claim(self) -> "tuple[optuna.trial.Trial, dict[str, Value]] | None":
        """The next trial, ``None`` if there are enough."""
        with self._locked():
            self._fail_dead()
            left = self._trials - len(self.ended()) - len(self._in(self._states.RUNNING))
            if left <= 0 or (self._is_grid and not self._in(self._states.WAITING)):
                return None
            trial = self._study.ask()
            trial.set_user_attr("process", process_identity())
            beat(trial)
            return trial, self.space.suggest(trial)

    def finish(self, trial: "optuna.trial.Trial", value: float | None) -> None:
        """Store a trial's value; ``None`` if it was ended early."""
        state = self._states.PRUNED if value is None else self._states.COMPLETE
        with self._locked():
            # Another process may have taken it for dead, after this one was suspended for long.
            self._study.tell(trial, value, state, skip_if_finished=True)

    def fail(self, number: int, again: bool) -> None:
        """Store that a trial failed; `again` if its settings are to be tried again."""
        with self._locked():
            self._fail(number, again)

    def ended(self) -> "list[optuna.trial.FrozenTrial]":
        """Trials that count."""
        return self._in(self._states.COMPLETE, self._states.PRUNED)

    def report(self) -> str:
        """The best trials, how much each setting matters, and how to train the best one."""
        import optuna

        complete = self._in(self._states.COMPLETE)
        ranked = sorted(complete, key=lambda trial: -(trial.value or 0.0))
        several = len(self.plan.seeds) > 1
        metric = {"last": "last return", "best": "best return", "area": "mean return"}
        title = metric[self.plan.metric] + (f" ({self.plan.over_seeds})" if several else "")
        rows: list[tuple[str, ...]] = [
            ("trial", title, *(["worst seed"] if several else []), *_short(self.space), "folder")
        ]
        for trial in ranked[:_SHOWN]:
            shown = [_value(trial.value)]
            if several:
                shown.append(_value(min(trial.user_attrs.get("values", [math.nan]))))
            shown += [
                _value(entry.value(trial.params[key])) if key in trial.params else "-"
                for key, entry in self.space.items()
            ]
            name = os.path.join(self.folder, f"trial{trial.number}")
            rows.append((str(trial.number), *shown, name + ("_seed*" if several else "")))
        counts = (
            (f"{len(complete)} trials", complete),
            ("ended early", self._in(self._states.PRUNED)),
            ("failed", self._in(self._states.FAIL)),
            ("running in other processes", self._in(self._states.RUNNING)),
        )
        first, *more = counts
        words = [f"{len(found)} {name}" for name, found in more if found]
        lines = [*table(rows), "", ", ".join([first[0], *words])]
        if len(complete) > 1 and len({trial.value for trial in complete}) > 1:
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of settings that few trials have
                shares = optuna.importance.get_param_importances(self._study, evaluator=evaluator)
            lines += ["", "how much each setting matters:"]
            lines += [f"  {share:>4.0%}  {key}" for key, share in shares.items()]
        if ranked:
            best = {
                key: self.space[key].value(value)
                for key, value in ranked[0].params.items()
                if key in self.space
            }
            command = shlex.join(["ding", *self.plan.args, *settings_of(best)])
            lines += ["", f"train the best with more seeds:\n  {command} -s 0-4"]
        return "\n".join(lines)

    def _in(self, *states: "optuna.trial.TrialState") -> "list[optuna.trial.FrozenTrial]":
        return self._study.get_trials(deepcopy=False, states=states)

    def _fail_dead(self) -> None:
        for trial in self._in(self._states.RUNNING):
            if _is_dead(trial):
                click.echo(f"trial {trial.number}: its process has ended; it is tried again")
                self._fail(trial.number, again=True)

    def _fail(self, number: int, again: bool) -> None:
        self._study.tell(number, state=self._states.FAIL, skip_if_finished=True)
        if again:
            params = self._study.get_trials(deepcopy=False)[number].params
            self._study.enqueue_trial(params, skip_if_exists=False)

    def _enqueue(self, values: dict[str, Value], skip_if_exists: bool) -> None:
        stored = {key: self.space[key].stored(value) for key, value in values.items()}
        self._study.enqueue_trial(stored, skip_if_exists=skip_if_exists)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._threads, FcntlContext(os.path.join(self.folder, ".sweep.lock")):
            yield


@dataclass
class _Trial:
    """The runs of one trial."""

    trial: "optuna.trial.Trial"
    values: dict[str, Value]
    study: _Study
    #: For each seed so far, its returns at the points where trials are compared.
    reached: list[list[float]] = field(default_factory=list)

    def train(self, commands: Commands, outputs: list[str]) -> float | None:
        """Train each seed with these values.

        Args:
            outputs: Gets what a run that fails has printed, before its `RunError`.

        Returns:
            The value, ``None`` if the trial is ended early.
        """
        plan, number = self.study.plan, self.trial.number
        base = os.path.join(self.study.folder, f"trial{number}")
        settings = settings_of(self.values)
        pairs = zip(_short(self.values), map(_value, self.values.values()), strict=True)
        shown = ", ".join(f"{name}={value}" for name, value in pairs)
        found: list[float] = []
        for seed in plan.seeds:
            run = f"{base}_seed{seed}" if len(plan.seeds) > 1 else base
            watch = _Watch(self, run)
            own = ["--seed", str(seed), "--exp-name", run]
            status, output = commands.run([*plan.args, *own, *settings], watch.is_hopeless)
            if watch.hopeless:
                click.echo(f"trial {number}: ended early  {shown}")
                return None
            if commands.is_ending:
                raise RunError(f"trial {number} was interrupted")
            value = metric_of(run, plan.metric, plan.env_step)
            if status or value is None:
                outputs.append(output)
                click.echo(f"trial {number}: failed  {shown}")
                raise RunError(f"trial {number} ended with status {status}")
            found.append(value)
            watch.end()
        value = AGGREGATES[plan.over_seeds](found)
        self.trial.set_user_attr("values", found)
        click.echo(f"trial {number}: {value:.4g}  {shown}")
        return value


class _Watch:
    """Compares a run with those of earlier trials while it runs.

    Trials are compared after each twentieth of their env steps, or, without a limit, after each
    evaluation. A trial's return there is that over its seeds so far at the same place; the seeds
    follow each other, so the second seed of a trial is compared with second seeds.
    """

    def __init__(self, trial: _Trial, run: str) -> None:
        plan = trial.study.plan
        self.hopeless = False
        self._trial, self._run, self._plan = trial.trial, run, plan
        self._before = list(trial.reached)
        self._reached: list[float] = []
        trial.reached.append(self._reached)
        self._start = len(self._before) * (RUNGS + 1 if plan.env_step else _EVALUATIONS)
        self._curve = Curve(run)
        self._seen = -math.inf
        self._beat = time.monotonic()

    def is_hopeless(self) -> bool:
        """Whether the pruner ends the trial; reads the run's new evaluations."""
        if time.monotonic() - self._beat > BEAT:
            beat(self._trial)
            self._beat = time.monotonic()
        self._curve.read(time.monotonic() + _LOOK)
        for step, value in self._curve.points:
            if step > self._seen:
                self._seen = step
                limit = self._plan.env_step
                place = int(RUNGS * step / limit) if limit else len(self._reached)
                self._reach(min(place, RUNGS) if limit else place, value)
        return self.hopeless

    def end(self) -> None:
        """Read the rest; a run that has converged keeps its return until the limit."""
        self.is_hopeless()
        if self._plan.env_step and self._reached and Run(self._run, "").status == "converged":
            self._reach(RUNGS, self._curve.points[-1][1])

    def _reach(self, place: int, value: float) -> None:
        for i in range(len(self._reached), place + 1):
            # Between two evaluations it is that of the first.
            self._reached.append(value if i == place or not self._reached else self._reached[-1])
            others = [seed[min(i, len(seed) - 1)] for seed in self._before if seed]
            over = AGGREGATES[self._plan.over_seeds]([*others, self._reached[-1]])
            self._trial.report(over, self._start + i)
            self.hopeless = self.hopeless or self._trial.should_prune()


def settings_of(values: dict[str, Value]) -> list[str]:
    """Options of the command line that set values of a config."""
    return [word for key, value in values.items() for word in ("--set", f"{key}={value!r}")]


def metric_of(run: str, metric: str, env_step: int | None) -> float | None:
    """A run's metric (see `Plan`), ``None`` if it has no evaluation."""
    points = return_points(run)
    if not len(points):
        return None
    returns, converged = points[:, 1], Run(run, "").status == "converged"
    if metric == "best":
        return float(returns.max())
    if metric == "last":
        return final_return(returns, converged)
    # A run that has converged keeps its return until the limit.
    end = max(points[-1, 0], env_step or 0) if converged else points[-1, 0]
    x = np.linspace(points[0, 0], end, 1001)
    return float(np.interp(x, points[:, 0], returns).mean())


def beat(trial: "optuna.trial.Trial") -> None:
    """A sign of life."""
    trial.set_user_attr("beat", time.time())


def _is_dead(trial: "optuna.trial.FrozenTrial") -> bool:
    process = trial.user_attrs.get("process")
    if process is None:  # it is being claimed, or was claimed by other code
        started = trial.datetime_start
        return started is not None and time.time() - started.timestamp() > DEAD
    is_silent = time.time() - trial.user_attrs.get("beat", 0) > DEAD
    return is_silent or still_runs(process) is False


def _open(folder: str, storage: str | None, is_resumed: bool) -> "optuna.Study":
    try:
        import optuna
        from optuna.storages import BaseStorage, JournalStorage, RDBStorage
        from optuna.storages.journal import JournalFileBackend
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as error:
        raise ConfigError("a sweep needs Optuna: pip install 'ding[sweep]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    is_url = storage is not None and "://" in storage
    path = storage or os.path.join(folder, JOURNAL)
    if is_resumed and not is_url and not os.path.isfile(path):
        raise ConfigError(f"--resume: there is no sweep in {folder!r}: {path} is missing")
    os.makedirs(folder, exist_ok=True)
    name = os.path.normpath(folder)
    try:
        kept: BaseStorage
        kept = RDBStorage(path) if is_url else JournalStorage(JournalFileBackend(path))
        if is_resumed:
            return optuna.load_study(study_name=name, storage=kept)
        return optuna.create_study(
            storage=kept, study_name=name, direction="maximize", load_if_exists=True
        )
    except KeyError as error:
        raise ConfigError(f"--resume: {storage} has no sweep of the folder {folder!r}") from error
    except (OSError, ImportError, ValueError, RuntimeError, SQLAlchemyError) as error:
        cause = str(error).partition("\n")[0]
        raise ConfigError(f"the study in {path} cannot be opened: {cause}") from error


def _settled(
    study: "optuna.Study", space: Space | None, plan: Plan | None, folder: str
) -> tuple[Space, Plan]:
    """Space and plan of the study, which are stored if they are given.

    Raises:
        ConfigError: The study was made for other runs, whose values cannot be compared with these.
    """
    from optuna.distributions import check_distribution_compatibility

    known = study.user_attrs.get("plan")
    if known is not None:
        stored = Plan(**known)
        differing = [
            f"{name} {getattr(stored, name)!r}, now {value!r}"
            for name, value in (asdict(plan) if plan else {}).items()
            if list_of(value) != list_of(getattr(stored, name))
        ]
        if differing:
            raise ConfigError(
                f"the sweep in {folder} has {'; '.join(differing)}: its trials cannot be compared "
                "with these. Continue with --resume alone, or choose another --folder"
            )
        plan = stored
    if plan is None:
        raise ConfigError(f"--resume: the sweep in {folder} has no plan; it was not made by ding")
    if space is None:
        space = Space(study.user_attrs["space"], "the space of the study")
    for key, entry in space.items():
        for trial in reversed(study.get_trials(deepcopy=False)):
            if (old := trial.distributions.get(key)) is not None:
                try:
                    check_distribution_compatibility(old, entry.distribution())
                except ValueError as error:
                    raise ConfigError(
                        f"{key}: earlier trials in {folder} had another kind of values, or other "
                        "choices; only the ends of a range may change. Choose another --folder"
                    ) from error
                break
    study.set_user_attr("plan", asdict(plan))
    study.set_user_attr("space", space.source)
    return space, plan


def list_of(value: object) -> object:
    """A sequence as JSON returns it."""
    return list(value) if isinstance(value, tuple) else value


def _sampler(name: str, seed: int) -> "optuna.samplers.BaseSampler":
    import optuna

    samplers = optuna.samplers
    if (package := _NEEDS.get(name)) is not None:
        try:
            __import__(package)
        except ImportError as error:
            raise ConfigError(f"--sampler {name} needs {package}: pip install {package}") from error
    if name == "tpe":
        return samplers.TPESampler(seed=seed)
    if name == "gp":
        return samplers.GPSampler(seed=seed)
    if name == "cmaes":
        return samplers.CmaEsSampler(seed=seed)
    # A quasi-random sequence is one for all processes.
    return samplers.QMCSampler(seed=0) if name == "qmc" else samplers.RandomSampler(seed=seed)


def _pruner(name: str, longest: int) -> "optuna.pruners.BasePruner":
    from optuna import pruners

    if name == "median":
        # None after the first evaluation, of a policy that has not learned.
        return pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1)
    if name == "hyperband":
        return pruners.HyperbandPruner(min_resource=2, max_resource=longest, reduction_factor=3)
    if name == "halving":
        return pruners.SuccessiveHalvingPruner(min_resource=2, reduction_factor=3)
    return pruners.NopPruner()


def _short(keys: Iterable[str]) -> list[str]:
    """The last parts of keys, or all where these are equal."""
    last = [key.rpartition(".")[2] for key in keys]
    return [name if last.count(name) == 1 else key for name, key in zip(last, keys, strict=True)]


def _value(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
