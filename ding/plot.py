"""Returns of runs over their seeds, as a picture and a table.

Runs whose configs differ in seed and folder alone are one group. A group's curve is the
interquartile mean over its seeds with a bootstrap interval, as Agarwal et al. advise in "Deep
Reinforcement Learning at the Edge of the Statistical Precipice" (2021): few seeds say little, and
the interval says how little.
"""

import html
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np

from ding.board.run_list import LAST, Run, RunList, best_group, returns_of
from ding.utils.console import printable, table
from ding.utils.errors import ConfigError

__all__ = ["ReturnCurve", "ReturnPlot", "interquartile_mean", "returns"]

Axis = Literal["envstep", "iter", "time"]
#: Where a picture can go.
FORMATS = (".png", ".pdf", ".svg", ".html")
#: Ten colours and four kinds of lines, as on the board: twenty pairs that also differ in grey.
COLOURS = (
    *("#3b6ef5", "#e8710a", "#12a36d", "#c2438f", "#8559e0"),
    *("#0f9fb5", "#d43f3a", "#9a7d0a", "#5f6f81", "#7a4a21"),
)
LINES = ("-", "--", ":", "-.")
#: Configs in a picture, unless more are asked for: more lines are hard to distinguish.
MOST = 12
_PANELS_IN_A_ROW = 3
_AXIS_TITLES = {"envstep": "environment steps", "iter": "updates", "time": "time (minutes)"}
_POINTS = 101
_BOOTSTRAPS = 2000
_CONFIDENCE = 0.95
#: Keys that a name may hold.
_NAMED = 3


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
        last: Of each run the mean return of its last five evaluations, ``[runs]``.
        best: Of each run the best evaluation, ``[runs]``.
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

    @property
    def label(self) -> str:
        """Name and number of seeds."""
        count = len(self.folders)
        return f"{self.name} ({count} {'seed' if count == 1 else 'seeds'})"


@dataclass(frozen=True)
class ReturnPlot:
    """What `returns` found.

    Attributes:
        curves: One for each config, by name.
        axis: What ``x`` of the curves counts.
    """

    curves: tuple[ReturnCurve, ...]
    axis: Axis

    def table(self) -> str:
        """A line for each config, the best at the top by the returns at the end of its runs."""
        rows = [("config", "seeds", "last return", "95 % interval", "worst", "best ever")]
        ranked = sorted(self.curves, key=lambda curve: -interquartile_mean(curve.last))
        for curve in ranked:
            low, high = bootstrap_interval(curve.last[:, None])
            many = len(curve.folders) > 1
            rows.append(
                (
                    *(curve.name, str(len(curve.folders))),
                    f"{interquartile_mean(curve.last):.4g}",
                    f"{low[0]:.4g} to {high[0]:.4g}" if many else "-",
                    *(f"{curve.last.min():.4g}", f"{curve.best.max():.4g}"),
                )
            )
        return "\n".join(table(rows))

    def save(self, path: str | os.PathLike[str], most: int = MOST) -> None:
        """Draw the curves into a file, in one panel for each environment.

        Args:
            most: Number of curves in a panel at most, the best by their last returns.
            path: Ends with ``.png``, ``.pdf``, ``.svg`` or ``.html`` (with the table, in one file).

        Raises:
            ConfigError: Another ending, or matplotlib is not installed.
        """
        path = os.fspath(path)
        ending = os.path.splitext(path)[1].lower()
        if ending not in FORMATS:
            raise ConfigError(f"cannot draw into {path!r}: expected a name with {_or(FORMATS)}")
        if ending == ".html":
            self._save_html(path, most)
        else:
            self._save_picture(path, ending[1:], most)

    def _save_picture(self, file: str | IO[bytes], format: str, most: int) -> None:
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ConfigError("pictures need matplotlib: pip install 'ding[plot]'") from error
        envs = sorted({curve.env for curve in self.curves})
        columns = min(len(envs), _PANELS_IN_A_ROW)
        rows = -(-len(envs) // columns)
        figure = Figure(figsize=(7.5 if columns == 1 else 5 * columns, 4.8 * rows))
        figure.set_layout_engine("constrained")
        for place, env in enumerate(envs, 1):
            axes = figure.add_subplot(rows, columns, place)
            curves = [curve for curve in self.curves if curve.env == env]
            best = sorted(curves, key=lambda curve: -interquartile_mean(curve.last))[:most]
            for i, curve in enumerate(curve for curve in curves if curve in best):
                colour, line = COLOURS[i % len(COLOURS)], LINES[i % len(LINES)]
                axes.plot(curve.x, curve.mean, line, color=colour, linewidth=2, label=curve.label)
                axes.fill_between(
                    curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0
                )
            left_out = f" (the best {most} of {len(curves)})" if len(curves) > most else ""
            axes.set_title(env + left_out)
            axes.set_xlabel(_AXIS_TITLES[self.axis])
            axes.set_ylabel(self._title)
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
            # Below the panel, where it hides no curve.
            axes.legend(
                frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.15)
            )
        figure.savefig(file, dpi=150, format=format)

    def _save_html(self, path: str, most: int) -> None:
        """A page with the picture and the table, in one file."""
        picture = io.BytesIO()
        self._save_picture(picture, "svg", most)
        svg = picture.getvalue().decode()
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                '<!doctype html>\n<meta charset="utf-8">\n<title>Returns</title>\n'
                f"{svg[svg.index('<svg') :]}\n<pre>{html.escape(self.table())}</pre>\n"
            )

    @property
    def _title(self) -> str:
        one = all(len(curve.folders) == 1 for curve in self.curves)
        return "return" if one else "return (interquartile mean, 95 % interval)"


def returns(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], x: Axis = "envstep"
) -> ReturnPlot:
    """The returns of runs, grouped by config.

    Args:
        runs: Folders of runs, or folders that hold such.
        x: ``envstep``, ``iter`` (updates) or ``time`` (minutes since a run's first evaluation).

    Raises:
        ConfigError: There is no run with an evaluation, or no such axis.
    """
    if x not in _AXIS_TITLES:
        raise ConfigError(f"x is {x!r}, expected {_or(tuple(_AXIS_TITLES))}")
    roots = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    groups: dict[str, list[tuple[Run, np.ndarray]]] = {}
    found = {run.folder: run for root in roots for run in RunList(os.fspath(root)).all()}
    for run in found.values():
        points = _points(run.folder, x)
        if len(points):
            groups.setdefault(run.group, []).append((run, points))
    if not groups:
        raise ConfigError(
            f"no run with an evaluation in {', '.join(printable(str(root)) for root in roots)}"
        )
    ordered = sorted(groups.values(), key=lambda members: members[0][0].name)
    names = _names([members[0][0] for members in ordered])
    return ReturnPlot(tuple(_curve(*one) for one in zip(names, ordered, strict=True)), x)


def _names(runs: Sequence[Run]) -> list[str]:
    """A name for the config of each run: with what differs where several have the same."""
    names = [run.name for run in runs]
    for name in {name for name in names if names.count(name) > 1}:
        same = [i for i, run in enumerate(runs) if run.name == name]
        configs = [runs[i].config for i in same]
        keys = [key for key in configs[0] if len({config.get(key) for config in configs}) > 1]
        keys = [key for key in keys if key.rpartition(".")[2] not in ("exp_name", "seed")]
        for number, (i, config) in enumerate(zip(same, configs, strict=True), 1):
            facts = [f"{key.rpartition('.')[2]} {config.get(key)}" for key in keys[:_NAMED]]
            names[i] = ", ".join([name, *facts]) if facts else f"{name} (config {number})"
    return names


def interquartile_mean(values: np.ndarray, axis: int = 0) -> Any:
    """The mean of the middle half along an axis; of fewer than four values the mean of all."""
    values = np.sort(values, axis=axis)
    cut = int(0.25 * values.shape[axis])
    return values.take(range(cut, values.shape[axis] - cut), axis=axis).mean(axis=axis)


def bootstrap_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % percentile interval of the interquartile mean over runs.

    Args:
        values: ``[runs, points]``.

    Returns:
        Its ends, ``[points]`` each; the same for the same values.
    """
    chosen = np.random.default_rng(0).integers(len(values), size=(_BOOTSTRAPS, len(values)))
    means = interquartile_mean(values[chosen], axis=1)
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


def averaged(
    curves: Sequence[np.ndarray], converged: Sequence[bool]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The interquartile mean of curves over a common axis, with its bootstrap interval.

    The axis ends where the first curve does; one that has converged keeps its last value until
    then, since it would not have become worse by being stopped.

    Args:
        curves: ``[points, 2]`` each, x and value, by x.
        converged: For each curve whether its run has converged.

    Returns:
        x, mean, and the ends of the interval, ``[101]`` each.
    """
    start = max(points[0, 0] for points in curves)
    ends = [points[-1, 0] for points, is_over in zip(curves, converged, strict=True) if not is_over]
    end = min(ends) if ends else max(points[-1, 0] for points in curves)
    x = np.linspace(start, max(start, end), _POINTS)
    values = np.stack([np.interp(x, points[:, 0], points[:, 1]) for points in curves])
    mean = interquartile_mean(values)
    low, high = bootstrap_interval(values) if len(curves) > 1 else (mean, mean)
    return x, mean, low, high


def _curve(name: str, members: list[tuple[Run, np.ndarray]]) -> ReturnCurve:
    curves = [points for _, points in members]
    config = members[0][0].config
    keys = ("env.env_id", "main.env.env_id", "env.type", "main.env.type")  # main: parallel runs
    env = next(filter(None, map(config.get, keys)), "")
    return ReturnCurve(
        name,
        env.strip("'"),
        tuple(run.folder for run, _ in members),
        *averaged(curves, [run.status == "converged" for run, _ in members]),
        last=np.array([points[-LAST:, 1].mean() for points in curves]),
        best=np.array([points[:, 1].max() for points in curves]),
    )


def _points(folder: str, x: Axis) -> np.ndarray:
    """``[evaluations, 2]``: x and mean return, by x; the newest where x is the same."""
    found: dict[str, dict[float, float]] = {}
    start: float | None = None
    for group, step, now, value in returns_of(folder):
        start = now if start is None else start
        place = (now - start) / 60 if x == "time" else step
        found.setdefault(group, {})[place] = value
    kind = "_iter" if x == "iter" else "_step"
    chosen = best_group([name for name in found if name.endswith(kind)] or list(found))
    return np.empty((0, 2)) if chosen is None else np.array(sorted(found[chosen].items()))


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
