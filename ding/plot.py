"""Returns of runs over their seeds, as a picture and a table.

Runs whose configs differ in seed and folder alone are one group. A group's curve is the
interquartile mean over its seeds with a bootstrap interval, as Agarwal et al. advise in "Deep
Reinforcement Learning at the Edge of the Statistical Precipice" (2021): few seeds say little, and
the interval says how little.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ding.board.run_list import Run, RunList, add_newest, best_group, returns_of
from ding.utils.console import printable, table
from ding.utils.errors import ConfigError
from ding.utils.pictures import (
    draw_line,
    legend_height,
    listed,
    save_picture,
    shared_legend,
    tidy,
)
from ding.utils.seed_statistics import (
    averaged,
    bootstrap_interval,
    final_return,
    interquartile_mean,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ReturnCurve", "ReturnPlot", "interquartile_mean", "returns"]

Axis = Literal["envstep", "iter", "time"]
#: Configs in a picture, unless more are asked for: more lines are hard to distinguish.
MOST = 12
_PANELS_IN_A_ROW = 3
_AXIS_TITLES = {"envstep": "environment steps", "iter": "updates", "time": "time (minutes)"}
#: Keys that a name may hold, and characters of a value in it.
_NAMED, _SHOWN = 3, 24
#: Keys whose values follow from others, or say nothing about the training.
_SILENT = ("exp_name", "seed", "cfg_type", "save_replay_path", "replay_path")
_NUMBER = re.compile(r"\d+$")


@dataclass(frozen=True)
class ReturnCurve:
    """The returns of the runs of one config.

    Attributes:
        name: Of the config, with what differs from others of the same name.
        env: Id or type of its environment, empty if its config does not say.
        folders: Of the runs, one per seed.
        x: ``[points]``, in the unit of the axis.
        mean: Interquartile mean of the runs' returns, ``[points]``.
        low: Lower end of its 95 % bootstrap interval, ``[points]``; ``mean`` itself for one run.
        high: Likewise the upper end.
        last: Of each run the mean return of its last five evaluations, of one that has converged
            the last evaluation, ``[runs]``.
        best: Of each run the best evaluation, ``[runs]``.
        goal: The config's ``stop_value``, ``None`` if it has none.
    """

    name: str
    env: str
    folders: tuple[str, ...]
    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    last: np.ndarray
    best: np.ndarray
    goal: float | None

    @property
    def label(self) -> str:
        """Name and number of seeds."""
        count = len(self.folders)
        return f"{self.name} ({count} {'seed' if count == 1 else 'seeds'})"

    @property
    def final(self) -> float:
        """Interquartile mean of the runs' last returns, by which configs are ranked."""
        return float(interquartile_mean(self.last))


@dataclass(frozen=True)
class ReturnPlot:
    """What `returns` found.

    Attributes:
        curves: One for each config, by name.
        axis: What ``x`` of the curves counts.
    """

    curves: tuple[ReturnCurve, ...]
    axis: Axis

    @property
    def envs(self) -> tuple[str, ...]:
        """The environments of the curves, sorted."""
        return tuple(sorted({curve.env for curve in self.curves}))

    def table(self) -> str:
        """A line for each config: by environment, the best at the top by their last returns."""
        several = len(self.envs) > 1
        title = ("config", "seeds", "last return", "95 % interval", "worst", "best ever")
        rows = [("env", *title) if several else title]
        for curve in sorted(self.curves, key=lambda curve: (curve.env, -curve.final)):
            low, high = bootstrap_interval(curve.last[:, None])
            many = len(curve.folders) > 1
            row = (
                *(curve.name, str(len(curve.folders)), f"{curve.final:.4g}"),
                f"{low[0]:.4g} to {high[0]:.4g}" if many else "-",
                *(f"{curve.last.min():.4g}", f"{curve.best.max():.4g}"),
            )
            rows.append((curve.env, *row) if several else row)
        return "\n".join(table(rows))

    def save(self, path: str | os.PathLike[str], most: int = MOST) -> None:
        """Draw the curves into a file, in one panel for each environment.

        Args:
            path: Ends with ``.png``, ``.pdf`` or ``.svg``.
            most: Number of curves in a panel at most, the best by their last returns.

        Raises:
            ConfigError: Another ending, or matplotlib is not installed.
        """
        save_picture(path, lambda figure: self._draw(figure, most))

    def _draw(self, figure: "Figure", most: int) -> None:
        panels = {env: self._best(env, most) for env in self.envs}
        # A config has one colour in all panels and one line in their legend.
        names = sorted({curve.name for curves in panels.values() for curve in curves})
        columns = 2 if len(panels) == 4 else min(len(panels), _PANELS_IN_A_ROW)
        rows = -(-len(panels) // columns)
        width = 7.5 if len(panels) == 1 else 4.4 * columns
        # Panels keep their size however long the legend is.
        figure.set_size_inches(width, 4.0 * rows + legend_height(names, width))
        drawn = []
        for i, (env, curves) in enumerate(panels.items()):
            axes = figure.add_subplot(rows, columns, i + 1)
            drawn.append(axes)
            for curve in curves:
                label = curve.name if len(panels) > 1 else curve.label
                number = names.index(curve.name)
                draw_line(axes, number, curve.x, curve.mean, curve.low, curve.high, label)
            for goal in {curve.goal for curve in curves if curve.goal is not None}:
                axes.axhline(goal, color="#777777", linewidth=1, linestyle=(0, (2, 3)))
            count = sum(curve.env == env for curve in self.curves)
            axes.set_title(env + (f" (the best {most} of {count})" if count > most else ""))
            axes.set_xlabel(_AXIS_TITLES[self.axis])
            if i % columns == 0:
                axes.set_ylabel(self._title)
            axes.xaxis.set_major_formatter(_thousands)
            tidy(axes)
        shared_legend(figure, drawn, width)

    def _best(self, env: str, most: int) -> list[ReturnCurve]:
        """The best curves of an environment by their last returns, in the order of all."""
        curves = [curve for curve in self.curves if curve.env == env]
        best = sorted(curves, key=lambda curve: -curve.final)[:most]
        return [curve for curve in curves if curve in best]

    @property
    def _title(self) -> str:
        one = all(len(curve.folders) == 1 for curve in self.curves)
        return "return" if one else "return (interquartile mean, 95 % interval)"


def returns(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], x: Axis = "envstep"
) -> ReturnPlot:
    """Learning curves of runs: their returns, grouped by config.

    Args:
        runs: Folders of runs, or folders that hold such.
        x: ``envstep``, ``iter`` (updates) or ``time`` (minutes since a run's first evaluation).

    Raises:
        ConfigError: There is no run with an evaluation, or no such axis.

    Example:

        >>> import ding
        >>> from ding.entry import serial_pipeline
        >>> from ding.entry.quick_config import quick_config
        >>> policy = serial_pipeline(quick_config("CartPole-v1", "dqn"), seed=0, max_env_step=16)
        >>> plot = ding.plot.returns(".")  # plot.save("returns.png"), print(plot.table())
        >>> plot.envs, len(plot.curves)
        (('CartPole-v1',), 1)
    """
    if x not in _AXIS_TITLES:
        raise ConfigError(f"x is {x!r}, expected {listed(tuple(_AXIS_TITLES))}")
    roots = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    groups: dict[str, list[tuple[Run, np.ndarray]]] = {}
    found = {run.folder: run for root in roots for run in RunList(os.fspath(root)).all()}
    for run in found.values():
        points = return_points(run.folder, x)
        if len(points):
            groups.setdefault(run.group, []).append((run, points))
    if not groups:
        raise ConfigError(
            f"no run with an evaluation in {', '.join(printable(str(root)) for root in roots)}"
        )
    ordered = sorted(groups.values(), key=lambda members: members[0][0].name)
    names = _names([members[0][0] for members in ordered])
    return ReturnPlot(tuple(_curve(*one) for one in zip(names, ordered, strict=True)), x)


def return_points(folder: str, x: Axis = "envstep") -> np.ndarray:
    """The evaluations of a run, ``[evaluations, 2]``: x and mean return, by x.

    Those of a resumed run take the place of earlier ones from the same step on; without
    evaluations, the returns in training.
    """
    found: dict[str, list[tuple[float, float, float]]] = {}
    start: float | None = None
    for group, step, now, value in returns_of(folder):
        start = now if start is None else start
        place = (now - start) / 60 if x == "time" else step
        add_newest(found.setdefault(group, []), (step, place, value))
    kind = "_iter" if x == "iter" else "_step"
    chosen = best_group([name for name in found if name.endswith(kind)] or list(found))
    points = [] if chosen is None else sorted(point[1:] for point in found[chosen])
    return np.array(points).reshape(-1, 2)


def _curve(name: str, members: list[tuple[Run, np.ndarray]]) -> ReturnCurve:
    curves = [points for _, points in members]
    converged = [run.status == "converged" for run, _ in members]
    return ReturnCurve(
        name,
        _env(members[0][0]),
        tuple(run.folder for run, _ in members),
        *averaged(curves, converged),
        last=np.array(
            [final_return(points[:, 1], good) for points, good in zip(curves, converged)]
        ),
        best=np.array([points[:, 1].max() for points in curves]),
        goal=_goal(_config(members[0][0])),
    )


def _config(run: Run) -> Mapping[str, str]:
    """Its config by key; a parallel run's without the ``main.`` in front."""
    return {key.removeprefix("main."): value for key, value in run.config.items()}


def _env(run: Run) -> str:
    config = _config(run)
    return (config.get("env.env_id") or config.get("env.type") or "").strip("'")


def _goal(config: Mapping[str, str]) -> float | None:
    with_goal = config.get("env.stop_value", "")
    try:
        goal = float(with_goal)
    except ValueError:  # None, float('inf')
        return None
    return goal if abs(goal) < 1e9 else None  # that large means none


def _names(runs: Sequence[Run]) -> list[str]:
    """A name for the config of each run.

    With several environments it is without the environment, which a panel's title says: so the
    same algorithm has the same name in each. Where names are equal or differ in a number alone, as
    those of a sweep's trials, the keys that differ within an environment follow.
    """
    envs = [_env(run) for run in runs]
    names = [run.name for run in runs]
    if len(set(envs)) > 1:
        names = [_without(env, name) for env, name in zip(envs, names, strict=True)]
    stems = [_NUMBER.sub("", name) for name in names]
    for stem in set(stems):
        same = [i for i in range(len(runs)) if stems[i] == stem]
        if len({envs[i] for i in same}) == len(same):
            continue
        configs = [_config(runs[i]) for i in same]
        keys = _telling(configs, [envs[i] for i in same])
        short = [key.rpartition(".")[2] for key in keys]
        # Two parts of a path where one is not enough.
        titles = [
            ".".join(key.split(".")[-1 - (short.count(s) > 1) :]) for key, s in zip(keys, short)
        ]
        for i, config in zip(same, configs, strict=True):
            facts = [f"{title} {_shown(config.get(key))}" for title, key in zip(titles, keys)]
            names[i] = ", ".join([names[i], *facts])
    keyed = list(zip(envs, names, strict=True))
    return [
        f"{name} (config {keyed[: i + 1].count((env, name))})"
        if keyed.count((env, name)) > 1
        else name
        for i, (env, name) in enumerate(keyed)
    ]


def _without(env: str, name: str) -> str:
    """A run's name without the environment's id, or its first word, if something is left."""
    id = re.sub(r"[^\w.-]", "_", env)
    base = re.sub(r"-v\d+$", "", env.rpartition("/")[2])
    for part in (id, re.sub(r"-v\d+$", "", id), base, re.sub(r"NoFrameskip$", "", base)):
        found = re.search(rf"(?i)(^|[-_ .]){re.escape(part)}([-_ .]|$)", name) if part else None
        if found:
            rest = name[: found.start()] + found[1] + name[found.end() :]
            return rest.strip("-_ .") or name
    return name


def _telling(configs: Sequence[Mapping[str, str]], envs: Sequence[str]) -> list[str]:
    """At most three keys that distinguish configs of the same environment."""
    columns: dict[tuple[str | None, ...], str] = {}
    keys = {key: None for config in configs for key in config}
    for key in sorted(keys, key=lambda key: (key != "policy.type", key.count("."))):
        column = tuple(config.get(key) for config in configs)
        differs = len(set(zip(envs, column))) > len(set(envs))
        if differs and key.rpartition(".")[2] not in _SILENT:
            columns.setdefault(column, key)  # of those that go together, one
    if len(columns) <= _NAMED:
        return list(columns.values())

    def parts(*chosen: tuple[str | None, ...]) -> int:
        return len(set(zip(envs, *chosen)))

    chosen: list[tuple[str | None, ...]] = []
    while len(chosen) < _NAMED:
        best = max(columns, key=lambda column: parts(*chosen, column))
        if parts(*chosen, best) == parts(*chosen):
            break
        chosen.append(best)
    return [columns[column] for column in chosen]


def _shown(value: str | None) -> str:
    """A value of a config as a name holds it."""
    text = printable((value or "-").strip("'"))
    if re.fullmatch(r"-?\d*\.\d+(e-?\d+)?", text):
        text = f"{float(text):.4g}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _thousands(value: float, place: float = 0) -> str:
    """A tick: ``20k`` for 20000."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
