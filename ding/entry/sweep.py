"""``ding sweep``: hyperparameter search with Optuna (Akiba et al. 2019).

The study is stored in a journal file in the folder. Any number of processes may work on it, and the
same command continues it. A trial whose process was killed does not count.
"""

import difflib
import itertools
import json
import math
import os
import re
import shlex
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np
import optuna
import yaml
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import FrozenTrial, TrialState

from ding.board.run_list import Curve, Run
from ding.config.read import parse_yaml
from ding.entry.cli_runs import check_settings
from ding.entry.seed_runs import Commands
from ding.plot import return_points
from ding.utils.console import say, table
from ding.utils.errors import ConfigError, DingError, RunError
from ding.utils.seed_statistics import final_return, interquartile_mean
from ding.utils.types import Json, Settings

#: Distributions by the path of a key. Choices are stored as JSON, since Optuna does not support
#: lists and dicts.
Space: TypeAlias = dict[str, BaseDistribution]
JOURNAL = "sweep.journal"
_TRIAL = re.compile(r"trial\d")
#: After this number of failures without a success, the config is considered the cause.
MAX_FAILURES = 3
#: Number of comparisons of a trial, at equal parts of its env steps.
RUNGS = 20
_LOOK = 1.0
_SHOWN = 10
_WORDS = ("low", "high", "log", "step", "choices")
#: Keys that the sweep sets itself, and the option to use instead.
_OWN = {"seed": "-s, for example -s 0-2", "exp_name": "--folder"}


@dataclass(frozen=True)
class Plan:
    """Facts that all trials of a study share; stored in the study.

    Attributes:
        args: The command line of a run, without seed and folder.
        seeds: A trial runs once per seed; its value is the interquartile mean of the runs' last
            returns.
        env_step: Env steps after which a run ends, ``None`` for no such limit.
    """

    args: Sequence[str]
    seeds: Sequence[int] = (0,)
    env_step: int | None = None


def run_sweep(options: Settings) -> str:
    """Run a sweep with the options of ``ding sweep``; returns the report.

    Before the first trial, every choice and both ends of every range are checked with the config.

    Raises:
        ConfigError: As in `sweep`, or the space or a key in it is invalid.
    """
    space = read_space(options["space"])
    config, env_id, policy = (options[name] for name in ("config", "env_id", "policy"))
    for values in examples(space):
        settings = [*options["settings"], *(f"{k}={v!r}" for k, v in values.items())]
        try:
            check_settings(config, env_id, policy, settings)
        except DingError as error:
            raise ConfigError(f"{options['space']}: {error}") from error
    args = ["-c", config] if config else ["train", env_id, policy]
    for setting in options["settings"]:
        args += ["--set", setting]
    for name in ("train_iter", "env_step"):
        if options[name] is not None:
            args += [f"--{name.replace('_', '-')}", str(options[name])]
    plan = Plan(args, options["seeds"] or [0], options["env_step"])
    return sweep(
        *(space, plan, options["folder"], options["trials"], options["jobs"]),
        *(options["sampler"], options["pruner"]),
    )


def sweep(
    space: Space,
    plan: Plan,
    folder: str,
    trials: int,
    jobs: int = 1,
    sampler: str = "tpe",
    pruner: str = "median",
) -> str:
    """Train with the most promising settings until the study has `trials` trials.

    A trial is one run, or one per seed, in the folder. It is ended early if the pruner considers
    its first seed worse than those of earlier trials.

    Args:
        folder: Folder of the runs and the study's journal.
        jobs: Number of concurrent trials.
        sampler: ``tpe``, ``random``, or ``grid``, which tries each combination of choices once.
        pruner: ``median`` or ``none``.

    Returns:
        A report: the best trials, and the importance of each setting.

    Raises:
        ConfigError: The study cannot be opened, or belongs to other runs.
        RunError: All trials fail.
    """
    study = _open(space, plan, folder, sampler, pruner)
    if sampler == "grid":
        trials = min(trials, len(_grid(space)))
    lock, running, outputs = threading.Lock(), 0, list[str]()
    with Commands(jobs) as commands:

        def try_next() -> bool:
            nonlocal running
            with lock:
                # Under the same lock as `ask`: two threads must not both begin the last trial.
                left = trials - len(_ended(study)) - running
                if left <= 0 or (len(outputs) >= MAX_FAILURES and not _ended(study)):
                    return False
                try:
                    trial = study.ask(space)
                except ValueError as error:
                    raise ConfigError(
                        f"earlier trials in {folder} had other choices or another kind of values; "
                        f"only the ends of a range may change, choose another --folder: {error}"
                    ) from error
                running += 1
            try:
                value = _train(study, trial, plan, folder, commands, outputs)
            except RunError:
                study.tell(trial, state=TrialState.FAIL)
            else:
                pruned = value is None
                study.tell(trial, value, TrialState.PRUNED if pruned else TrialState.COMPLETE)
            finally:
                with lock:
                    running -= 1
            return True

        commands.work(try_next)
    if not _ended(study):
        cause = f"; the last one said: {outputs[-1][-2000:].strip()}" if outputs else ""
        raise RunError(f"no trial worked{cause}")
    return _report(study, space, plan, folder)


def _open(space: Space, plan: Plan, folder: str, sampler: str, pruner: str) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = os.path.join(folder, JOURNAL)
    try:
        os.makedirs(folder, exist_ok=True)
        storage = JournalStorage(JournalFileBackend(path))
        # One study per journal, whatever path its folder has.
        names = optuna.get_all_study_names(storage) or ["sweep"]
        study = optuna.create_study(
            storage=storage, study_name=names[0], direction="maximize", load_if_exists=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"the study in {path} cannot be opened: {error}") from error
    if not study.get_trials(deepcopy=False) and any(map(_TRIAL.match, os.listdir(folder))):
        raise ConfigError(
            f"{folder} holds trials that {JOURNAL} does not know: their results would be taken for "
            "those of new trials, choose another --folder"
        )
    facts = json.loads(json.dumps(asdict(plan)))
    known = study.user_attrs.get("plan", facts)
    if changed := [
        f"{k} {known.get(k)!r}, now {v!r}" for k, v in facts.items() if known.get(k) != v
    ]:
        raise ConfigError(
            f"the sweep in {folder} has {'; '.join(changed)}: its trials cannot be compared with "
            "these, choose another --folder"
        )
    study.set_user_attr("plan", facts)
    if sampler == "grid":
        for values in _grid(space):
            study.enqueue_trial(values, skip_if_exists=True)
    # Without a seed: processes with the same seed would try the same settings.
    samplers = optuna.samplers
    study.sampler = samplers.TPESampler() if sampler == "tpe" else samplers.RandomSampler()
    # Not after the first evaluation, at which the policy has not learned yet.
    median = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1)
    study.pruner = median if pruner == "median" else optuna.pruners.NopPruner()
    return study


def _train(
    study: optuna.Study,
    trial: optuna.Trial,
    plan: Plan,
    folder: str,
    commands: Commands,
    outputs: list[str],
) -> float | None:
    """Train each seed with a trial's values.

    Args:
        outputs: Receives the output of a run that fails, before its `RunError`.

    Returns:
        The trial's value, ``None`` if it was ended early.
    """
    values = _values(trial)
    shown = ", ".join(f"{name}={_text(values[key])}" for key, name in _short(values).items())
    found: list[float] = []
    for seed in plan.seeds:
        run = _folder_of(folder, trial.number, f"_seed{seed}" if len(plan.seeds) > 1 else "")
        watch = _Watch(trial, run, plan.env_step) if seed == plan.seeds[0] else None
        own = ["--seed", str(seed), "--exp-name", run]
        is_enough = watch.is_hopeless if watch else None
        status, output = commands.run([*plan.args, *own, *settings_of(values)], is_enough)
        if watch and watch.hopeless:
            say(f"trial {trial.number}: ended early  {shown}")
            return None
        if commands.is_ending:
            raise RunError(f"trial {trial.number} was interrupted")
        returns = return_points(run)[:, 1]
        if status or not len(returns):
            outputs.append(output)
            say(f"trial {trial.number}: failed  {shown}")
            raise RunError(f"trial {trial.number} ended with status {status}")
        if watch:
            watch.is_hopeless()  # report the last evaluations, for comparison with later trials
        found.append(final_return(returns, Run(run, "").status == "converged"))
    value = float(interquartile_mean(np.array(found)))
    trial.set_user_attr("worst", min(found))
    say(f"trial {trial.number}: {value:.4g}  {shown}")
    return value


class _Watch:
    """Compares a run with those of earlier trials while it is running: after each twentieth of its
    env steps, or, without a limit, after each evaluation."""

    def __init__(self, trial: optuna.Trial, run: str, env_step: int | None) -> None:
        self._trial, self._limit = trial, env_step
        self._curve = Curve(run, most=math.inf)  # without a limit, evaluations are numbered
        self._next, self.hopeless = 0, False

    def is_hopeless(self) -> bool:
        """Whether the pruner ends the trial; reads the run's new evaluations."""
        self._curve.read(time.monotonic() + _LOOK)
        for i, (step, value) in enumerate(self._curve.points):
            place = int(RUNGS * step / self._limit) if self._limit else i
            for rung in range(self._next, place + 1):
                self._trial.report(value, rung)
                self.hopeless = self.hopeless or self._trial.should_prune()
            self._next = max(self._next, place + 1)
        return self.hopeless


def _report(study: optuna.Study, space: Space, plan: Plan, folder: str) -> str:
    """The best trials, the importance of each setting, and the command to train the best one."""
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    ranked = sorted(complete, key=lambda trial: -(trial.value or 0.0))
    several = len(plan.seeds) > 1
    names = [name for key, name in _short(space).items()]
    title = ["last return (iqm)", "worst seed"] if several else ["last return"]
    rows = [["trial", *title, *names, "folder"]]
    for trial in ranked[:_SHOWN]:
        values = _values(trial)
        results = [trial.value, trial.user_attrs["worst"]] if several else [trial.value]
        shown = [_text(value) for value in (*results, *(values.get(key, "-") for key in space))]
        name = _folder_of(folder, trial.number, "_seed*" if several else "")
        rows.append([str(trial.number), *shown, name])
    early = len(_ended(study)) - len(complete)
    failed = len(study.get_trials(deepcopy=False, states=[TrialState.FAIL]))
    counts = ((len(complete), "trials"), (early, "ended early"), (failed, "failed"))
    lines = [*table(rows), "", ", ".join(f"{n} {what}" for n, what in counts if n)]
    if len({trial.value for trial in complete}) > 1:
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about settings that few trials have
            shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
        lines += ["", "how much each setting matters:"]
        lines += [f"  {share:>4.0%}  {key}" for key, share in shares.items()]
    if ranked:
        command = shlex.join(["ding", *plan.args, *settings_of(_values(ranked[0]))])
        lines += ["", f"train the best with more seeds:\n  {command} -s 0-4"]
    return "\n".join(lines)


def settings_of(values: Mapping[str, Json]) -> list[str]:
    """Options of the command line that set values of a config."""
    return [word for key, value in values.items() for word in ("--set", f"{key}={value!r}")]


def read_space(path: str) -> Space:
    """Read a sweep's YAML file: keys of the config, nested or as paths, with values to try.

    Raises:
        ConfigError: The file cannot be read, or is invalid; names the entry.
    """
    try:
        with open(path, encoding="utf-8") as file:
            source = parse_yaml(file.read())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(source, dict) or not source:
        raise ConfigError(f"{path} must map paths such as policy.nstep to values to try")
    space: Space = {}
    for key, value in _flat(source, ""):
        if key in space:
            raise ConfigError(f"{path}: {key} is given twice")
        if key in _OWN:
            raise ConfigError(f"{path}: {key} cannot be swept; it is set by {_OWN[key]}")
        try:
            space[key] = _distribution(value)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{path}: {key}: {error}") from error
    return space


def _flat(source: Mapping[str, object], before: str) -> Iterator[tuple[str, object]]:
    """Entries of a section and its subsections, by their full path."""
    for name, value in source.items():
        if isinstance(value, dict) and value and not value.keys() & {*_WORDS}:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _distribution(value: object) -> BaseDistribution:
    if isinstance(value, list):
        value = {"choices": value}
    if not isinstance(value, dict) or not ("choices" in value or {"low", "high"} <= value.keys()):
        raise TypeError(
            f"got {value!r}, expected a list of values such as [32, 64], or a range such as "
            "{low: 1e-5, high: 1e-2, log: true}"
        )
    for word in value.keys() - {*_WORDS}:
        near = difflib.get_close_matches(str(word), _WORDS, 1)
        raise TypeError(f"unknown word {word!r}; did you mean {(near or _WORDS)[0]}?")
    if "choices" in value:
        if len(value) > 1 or not isinstance(value["choices"], list):
            raise TypeError(f"got {value!r}, expected a list of choices and nothing else")
        return CategoricalDistribution([json.dumps(one) for one in value["choices"]])
    low, high, step = value["low"], value["high"], value.get("step")
    if type(low) is type(high) is int and not isinstance(step, float):
        return IntDistribution(low, high, value.get("log", False), step or 1)
    return FloatDistribution(float(low), float(high), value.get("log", False), step)


def examples(space: Space) -> Iterator[dict[str, Json]]:
    """Combinations of values in which each choice and each end of a range occurs at least once."""
    ends = {key: _ends(distribution) for key, distribution in space.items()}
    for i in range(max(map(len, ends.values()))):
        yield {key: values[min(i, len(values) - 1)] for key, values in ends.items()}


def _ends(distribution: BaseDistribution) -> list[Json]:
    if isinstance(distribution, CategoricalDistribution):
        return [json.loads(str(choice)) for choice in distribution.choices]
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    return [distribution.low, distribution.high]


def _grid(space: Space) -> list[dict[str, Json]]:
    """Each combination of choices, as Optuna stores them.

    Raises:
        ConfigError: The space contains a range.
    """
    choices = []
    for key, distribution in space.items():
        if not isinstance(distribution, CategoricalDistribution):
            raise ConfigError(f"{key}: a grid needs a list of values")
        choices.append(distribution.choices)
    return [dict(zip(space, values)) for values in itertools.product(*choices)]


def _values(trial: optuna.Trial | FrozenTrial) -> dict[str, Json]:
    """A trial's values in the form of the config."""
    kinds = trial.distributions
    return {
        key: json.loads(value) if isinstance(kinds[key], CategoricalDistribution) else value
        for key, value in trial.params.items()
    }


def _ended(study: optuna.Study) -> list[FrozenTrial]:
    """Completed and pruned trials, which count."""
    return study.get_trials(deepcopy=False, states=[TrialState.COMPLETE, TrialState.PRUNED])


def _folder_of(folder: str, number: int, suffix: str) -> str:
    return os.path.join(folder, f"trial{number}{suffix}")


def _short(keys: Mapping[str, object]) -> dict[str, str]:
    """The last part of each key, or the full key if the last parts are equal."""
    last = [key.rpartition(".")[2] for key in keys]
    return {key: name if last.count(name) == 1 else key for key, name in zip(keys, last)}


def _text(value: Json) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
