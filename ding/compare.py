"""Algorithms over several environments, compared as Agarwal et al. advise (2021).

A run's score is its last return on a scale of its environment, 0 for an untrained policy and 1 for
the goal. Aggregates over all runs, performance profiles and probabilities of improvement have 95 %
intervals by the stratified bootstrap.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ding.plot import MOST, ReturnCurve, ReturnPlot
from ding.utils.console import table
from ding.utils.errors import ConfigError
from ding.utils.pictures import (
    draw_line,
    legend_height,
    line_style,
    save_picture,
    shared_legend,
    tidy,
)
from ding.utils.seed_statistics import (
    iqm_of_scores,
    mean_of_scores,
    median_of_scores,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    stratified_interval,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Comparison", "compare"]

_AGGREGATES: dict[str, Callable[..., np.ndarray]] = {
    "interquartile mean": iqm_of_scores,
    "median": median_of_scores,
    "mean": mean_of_scores,
    "optimality gap": optimality_gap,
}
_THRESHOLDS = 101
#: Characters of a name that a title can hold.
_TITLE = 16


@dataclass(frozen=True)
class Comparison:
    """Scores of algorithms in the same environments.

    Attributes:
        envs: The environments.
        scales: For each environment the returns that are score 0 and score 1.
        scores: By algorithm, the best interquartile mean first: for each environment the scores of
            its runs, ``[runs]``.
        left_out: Algorithms without runs in some environment, which are not compared.
    """

    envs: tuple[str, ...]
    scales: Mapping[str, tuple[float, float]]
    scores: Mapping[str, Sequence[np.ndarray]]
    left_out: tuple[str, ...]

    def table(self) -> str:
        """The scales, the aggregates with their intervals, and who is likely to beat whom."""
        rows: list[tuple[str, ...]] = [("env", "score 0", "score 1")]
        rows += [(env, *(f"{end:.4g}" for end in self.scales[env])) for env in self.envs]
        lines = [*table(rows), ""]
        rows = [("algorithm", "runs", *_AGGREGATES)]
        for name, scores in self.scores.items():
            cells = []
            for statistic in _AGGREGATES.values():
                low, high = stratified_interval(statistic, scores)
                cells.append(f"{statistic(scores):.2f} ({low:.2f} to {high:.2f})")
            rows.append((name, str(sum(map(len, scores))), *cells))
        lines += table(rows)
        if len(self.scores) > 1:
            names = list(self.scores)
            rows = [("probability that a run beats one of", *names)]
            for name in names:
                chances = (f"{self._improvement(name, other):.2f}" for other in names)
                rows.append((name, *chances))
            lines += ["", *table(rows)]
        if self.left_out:
            lines += ["", f"left out, without runs in each env: {', '.join(self.left_out)}"]
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Draw aggregates, performance profiles and probabilities of improvement into a file.

        Args:
            path: Ends with ``.png``, ``.pdf``, ``.svg`` or ``.html`` (with the tables, in one
                file).

        Raises:
            ConfigError: Another ending, or matplotlib is not installed.
        """
        save_picture(path, "Comparison", self.table(), self._draw)

    def _draw(self, figure: "Figure") -> None:
        names = list(self.scores)
        # A row of aggregates, and below it the profiles and the probabilities.
        height = 0.9 + 0.25 * len(names)
        width = 9.5
        figure.set_size_inches(width, height + 3.7 + legend_height(names, width))
        grid = figure.add_gridspec(2, 1, height_ratios=(height, 4))
        upper, lower = figure.add_subfigure(grid[0]), figure.add_subfigure(grid[1])
        self._draw_aggregates(upper.subplots(1, len(_AGGREGATES), sharex=True))
        profiles, *others = lower.subplots(1, min(len(names), 2), squeeze=False)[0]
        self._draw_profiles(profiles)
        for axes in others:
            self._draw_improvements(axes)
        shared_legend(lower, [profiles], width)

    def _draw_aggregates(self, panels: Sequence["Axes"]) -> None:
        for i, (title, statistic) in enumerate(_AGGREGATES.items()):
            rows = [
                (float(statistic(scores)), stratified_interval(statistic, scores))
                for scores in self.scores.values()
            ]
            _draw_intervals(panels[i], rows, [""] * len(rows) if i else list(self.scores))
            panels[i].set_title(title, fontsize="medium")
            panels[i].set_xlabel("lower is better" if title == "optimality gap" else "score")
            panels[i].tick_params(axis="y", length=0)

    def _draw_profiles(self, axes: "Axes") -> None:
        largest = max(float(np.max(task)) for scores in self.scores.values() for task in scores)
        thresholds = np.linspace(0, max(1.0, largest), _THRESHOLDS)

        def profile(scores: Sequence[np.ndarray]) -> np.ndarray:
            return performance_profile(scores, thresholds)

        for i, (name, scores) in enumerate(self.scores.items()):
            low, high = stratified_interval(profile, scores)
            draw_line(axes, i, thresholds, profile(scores), low, high, name)
        axes.set_title("performance profile", fontsize="medium")
        axes.set_xlabel("score τ")
        axes.set_ylabel("share of runs with a score above τ")
        axes.set_ylim(-0.02, 1.02)
        tidy(axes)

    def _draw_improvements(self, axes: "Axes") -> None:
        first, *others = self.scores
        rows = [
            (
                self._improvement(first, name),
                stratified_interval(
                    probability_of_improvement, self.scores[first], self.scores[name]
                ),
            )
            for name in others
        ]
        _draw_intervals(axes, rows, others, start=1)
        axes.axvline(0.5, color="#777777", linewidth=1, linestyle=(0, (2, 3)))
        axes.set_xlim(-0.02, 1.02)
        title = first if len(first) <= _TITLE else "the best"
        axes.set_title(f"probability of improvement of {title}", fontsize="medium")
        axes.set_xlabel("P(one of its runs beats one of …)")

    def _improvement(self, name: str, other: str) -> float:
        return float(probability_of_improvement(self.scores[name], self.scores[other]))


def compare(
    found: ReturnPlot,
    scales: Mapping[str, tuple[float, float]] | None = None,
    most: int = MOST,
) -> Comparison:
    """Compare the algorithms that have runs in each environment.

    An algorithm is what `ding.plot.returns` gives one name in all environments.

    Args:
        found: What `ding.plot.returns` found.
        scales: By environment, the returns that are score 0 and score 1. Of others, score 0 is the
            mean return of the runs' first evaluations, before they have learned; score 1 is the
            config's ``stop_value``, or the best last return of any run if there is none.
        most: Number of algorithms at most, the best ones.

    Raises:
        ConfigError: A scale of no such environment, or without a range; no algorithm has runs in
            each environment.
    """
    scales = dict(scales or {})
    envs = found.envs
    for env in scales:
        if env not in envs:
            raise ConfigError(f"--scale {env}: there are runs in {', '.join(envs)}")
    for env in envs:
        curves = [curve for curve in found.curves if curve.env == env]
        low, high = scales.setdefault(env, _scale(curves))
        if not low < high:
            raise ConfigError(
                f"{env}: the return of score 0, {low:.4g}, is not below that of score 1, "
                f"{high:.4g}; set both with --scale {env}=LOW:HIGH"
            )
    by_name: dict[str, dict[str, np.ndarray]] = {}
    for curve in found.curves:
        low, high = scales[curve.env]
        by_name.setdefault(curve.name, {})[curve.env] = (curve.last - low) / (high - low)
    scores = {
        name: [tasks[env] for env in envs]
        for name, tasks in by_name.items()
        if len(tasks) == len(envs)
    }
    if not scores:
        raise ConfigError(
            f"no algorithm has runs in each of {', '.join(envs)}: configs are matched by the names "
            f"of their folders without the environment, which are {', '.join(sorted(by_name))}"
        )
    ranked = sorted(scores, key=lambda name: -float(iqm_of_scores(scores[name])))
    return Comparison(
        *(envs, scales, {name: scores[name] for name in ranked[:most]}),
        left_out=tuple(sorted(by_name.keys() - scores.keys())),
    )


def _scale(curves: Sequence[ReturnCurve]) -> tuple[float, float]:
    goals = [curve.goal for curve in curves if curve.goal is not None]
    high = max(goals) if goals else max(float(curve.last.max()) for curve in curves)
    return float(np.mean(np.concatenate([curve.first for curve in curves]))), high


def _draw_intervals(
    axes: "Axes",
    rows: Sequence[tuple[float, tuple[np.ndarray, np.ndarray]]],
    names: Sequence[str],
    start: int = 0,
) -> None:
    """A bar from the low to the high end of each interval, and a line at the estimate."""
    for place, (value, (low, high)) in enumerate(rows):
        colour = line_style(start + place)["color"]
        axes.barh(place, high - low, 0.6, left=low, color=colour, alpha=0.55)
        axes.vlines(value, place - 0.3, place + 0.3, color="black", linewidth=1.5)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), 3) - 0.4, -0.6)
    tidy(axes)
    axes.grid(False, axis="y")
