"""``ding sweep``: look for good settings with Optuna (Akiba et al. 2019)."""

import json
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click
import yaml

from ding.board.run_list import Curve
from ding.config.read import parse_yaml
from ding.entry.seed_runs import Commands
from ding.utils.console import table
from ding.utils.errors import ConfigError, RunError

STORAGE = "sweep.db"
#: This number of failures without one success is attributed to the config.
MAX_FAILURES = 3
_LOOK = 1.0
_NUMBER_KEYS = {"low", "high", "log", "step"}


def read_space(path: str) -> dict[str, Any]:
    """A sweep's YAML file: by path in the config, a list of values or a range to try.

    Raises:
        ConfigError: The file is wrong; names the entry.
    """
    try:
        with open(path, encoding="utf-8") as file:
            space = parse_yaml(file.read())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(space, dict) or not space:
        raise ConfigError(f"{path} must map paths such as policy.nstep to values to try")
    for key, entry in space.items():
        is_range = isinstance(entry, dict) and {"low", "high"} <= set(entry) <= _NUMBER_KEYS
        if isinstance(entry, list) and entry:
            continue
        if not (
            is_range
            and all(type(entry[name]) in (int, float) for name in ("low", "high"))
            and entry["low"] < entry["high"]
        ):
            raise ConfigError(
                f"{path}: {key} is {entry!r}, expected a list of values, or low and high "
                "(low < high), and perhaps log: true or step"
            )
    return space


def sweep(
    space: Mapping[str, Any], args: Sequence[str], folder: str, trials: int, jobs: int = 1
) -> str:
    """Train with the most promising settings until the folder has `trials` trials.

    Each trial is a run below the folder. It is ended early if its evaluations are worse than the
    median of earlier trials at that step. Its value is the mean return of its last five
    evaluations.

    Args:
        space: See `read_space`.
        args: The command line of a run, without its folder.
        folder: Where runs and the study's database are.
        jobs: Trials at a time.

    Returns:
        A report: the best trials, and how much each setting matters.

    Raises:
        ConfigError: Optuna is not installed.
        RunError: No trial works.
    """
    with Commands(jobs) as commands:
        try:
            import optuna
        except ImportError as error:
            raise ConfigError("a sweep needs Optuna: pip install 'ding[sweep]'") from error
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        os.makedirs(folder, exist_ok=True)
        study = optuna.create_study(
            storage=f"sqlite:///{os.path.abspath(os.path.join(folder, STORAGE))}",
            study_name="sweep",
            direction="maximize",
            sampler=optuna.samplers.TPESampler(seed=0, multivariate=False),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
            load_if_exists=True,
        )
        states = optuna.trial.TrialState
        ended = (states.COMPLETE, states.PRUNED)
        left = trials - len(study.get_trials(states=ended))
        lock = threading.Lock()
        outputs: list[str] = []

        def try_next() -> bool:
            nonlocal left
            with lock:
                if len(outputs) >= MAX_FAILURES and not study.get_trials(states=ended):
                    return False
                if left <= 0:
                    return False
                left -= 1
                trial = study.ask()
                values = {key: _suggest(trial, key, entry) for key, entry in space.items()}
            run = os.path.join(folder, f"trial{trial.number}")
            try:
                value = _train(trial, values, [*args, "--exp-name", run], run, commands, outputs)
            except BaseException as error:
                study.tell(trial, state=states.FAIL)
                if isinstance(error, RunError):
                    return True
                raise
            study.tell(trial, value, states.PRUNED if value is None else states.COMPLETE)
            return True

        commands.work(try_next)
        if not study.get_trials(states=ended):
            raise RunError(f"no trial worked; the last one said: {outputs[-1][-2000:].strip()}")
        return _report(optuna, study, list(space), folder)


def _train(
    trial: Any,
    values: Mapping[str, Any],
    args: Sequence[str],
    run: str,
    commands: Commands,
    outputs: list[str],
) -> float | None:
    """Train with these values; the mean of the last returns, ``None`` if it is ended early.

    Args:
        outputs: Gets what a run that fails has printed, before its `RunError`.
    """
    curve = Curve(run)
    reported, hopeless = -math.inf, False

    def is_hopeless() -> bool:
        nonlocal reported, hopeless
        curve.read(time.monotonic() + _LOOK)
        for step, value in curve.points:
            if step > reported:
                trial.report(value, int(step))
                reported = step
        hopeless = bool(trial.should_prune())
        return hopeless

    settings = [word for key, value in values.items() for word in ("--set", f"{key}={value!r}")]
    status, output = commands.run([*args, *settings], is_hopeless)
    curve.read()
    value = curve.last_return
    shown = ", ".join(f"{key}={_shown(value)}" for key, value in values.items())
    if hopeless:
        click.echo(f"trial {trial.number}: ended early  {shown}")
        return None
    if commands.is_ending:
        raise RunError(f"trial {trial.number} was interrupted")
    if status or value is None:
        outputs.append(output)
        click.echo(f"trial {trial.number}: failed  {shown}")
        raise RunError(f"trial {trial.number} ended with status {status}")
    click.echo(f"trial {trial.number}: {value:.4g}  {shown}")
    return value


def _report(optuna: Any, study: Any, keys: list[str], folder: str) -> str:
    complete = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    ranked = sorted(complete, key=lambda trial: -trial.value)[:10]
    rows = [("trial", "last return", *keys, "folder")]
    for trial in ranked:
        values = (_shown(trial.params.get(key, "-")) for key in keys)
        name = os.path.join(folder, f"trial{trial.number}")
        rows.append((str(trial.number), f"{trial.value:.4g}", *values, name))
    lines = table(rows)
    if len(complete) > 1 and len({trial.value for trial in complete}) > 1:
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
        lines += ["", "how much each setting matters:"]
        lines += [f"  {share:>4.0%}  {key}" for key, share in shares.items()]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _suggest(trial: Any, key: str, entry: Any) -> Any:
    if isinstance(entry, list):
        # Lists and dicts are no values to Optuna: their text is.
        return json.loads(trial.suggest_categorical(key, [json.dumps(value) for value in entry]))
    low, high, step = entry["low"], entry["high"], entry.get("step")
    log = bool(entry.get("log"))
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(key, low, high, log=log, step=1 if step is None else int(step))
    return trial.suggest_float(key, low, high, log=log, step=step)
