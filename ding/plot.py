"""Returns of runs over their seeds, as a picture and a table.

Runs whose configs differ in seed and folder alone are one group. A group's curve is the
interquartile mean over its seeds with a bootstrap interval, as Agarwal et al. advise in "Deep
Reinforcement Learning at the Edge of the Statistical Precipice" (2021): few seeds say little, and
the interval says how little.
"""

import html
import io
import os
from collections.abc import Iterator, Sequence
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
#: Distinct also to those who see few colours; the page of runs has the same.
COLOURS = ("#3b6ef5", "#e8710a", "#12a36d", "#c2438f", "#8559e0", "#0f9fb5", "#d43f3a", "#9a7d0a")
_AXIS_TITLES = {"envstep": "environment steps", "iter": "updates", "time": "time (minutes)"}
_POINTS = 101
_BOOTSTRAPS = 2000
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class ReturnCurve:
    """The returns of the runs of one config.

    Attributes:
        name: Of the config.
        folders: Of the runs, one per seed.
        x: ``[points]``, in the unit of the axis.
        mean: Interquartile mean of the runs' returns, ``[points]``.
        low: Lower end of its 95 % bootstrap interval, ``[points]``; ``mean`` itself for one run.
        high: Likewise the upper end.
        last: Of each run the mean return of its last five evaluations, ``[runs]``.
        best: Of each run the best evaluation, ``[runs]``.
    """

    name: str
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Draw the curves into a file.

        Args:
            path: Ends with ``.png``, ``.pdf``, ``.svg`` or ``.html`` (with the table, in one file).

        Raises:
            ConfigError: Another ending, or matplotlib is not installed.
        """
        path = os.fspath(path)
        ending = os.path.splitext(path)[1].lower()
        if ending not in FORMATS:
            raise ConfigError(f"cannot draw into {path!r}: expected a name with {_or(FORMATS)}")
        if ending == ".html":
            self._save_html(path)
        else:
            self._save_picture(path, ending[1:])

    def _save_picture(self, file: str | IO[bytes], format: str) -> None:
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ConfigError("pictures need matplotlib: pip install 'ding[plot]'") from error
        figure = Figure(figsize=(7.5, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for curve, colour in self._coloured():
            axes.plot(curve.x, curve.mean, color=colour, linewidth=2, label=curve.label)
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
        axes.set_xlabel(_AXIS_TITLES[self.axis])
        axes.set_ylabel(self._title)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        figure.savefig(file, dpi=150, format=format)

    def _save_html(self, path: str) -> None:
        """A page with the picture and the table, in one file."""
        picture = io.BytesIO()
        self._save_picture(picture, "svg")
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

    def _coloured(self) -> Iterator[tuple[ReturnCurve, str]]:
        for i, curve in enumerate(self.curves):
            yield curve, COLOURS[i % len(COLOURS)]


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
    curves, names = [], set[str]()
    for members in sorted(groups.values(), key=lambda members: members[0][0].name):
        name, number = members[0][0].name, 2
        while name in names:
            name, number = f"{members[0][0].name} (config {number})", number + 1
        names.add(name)
        curves.append(_curve(name, members))
    return ReturnPlot(tuple(curves), x)


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
    return ReturnCurve(
        name,
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
