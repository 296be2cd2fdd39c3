"""Returns next to those of a peer with equal hyperparameters, for ``returns.py``."""

from pathlib import Path
from statistics import mean
from typing import Any

HEADER = """\
| config | at env step | ours: interquartile mean [min .. max] of seeds | SB3: the same | \
not below SB3's interval |
|---|---|---|---|---|"""


def table(results: list[dict[str, Any]]) -> str:
    """A row for each config that a peer trained, too.

    Both are read at the last step that all runs of both reached; a run's return there is the mean
    of its evaluations in the tenth of the steps before.
    """
    peers = {result["config"]: result["runs"] for result in results if result.get("peer")}
    rows = []
    for result in results:
        config = result["config"]
        if result.get("peer") or config not in peers:
            continue
        step = min(_last_step(run) for run in [*result["runs"], *peers[config]])
        ours = sorted(_return_at(step, run) for run in result["runs"])
        theirs = sorted(_return_at(step, run) for run in peers[config])
        name = f"[{Path(config).stem.removesuffix('_config')}](../{config})"
        reached = "yes" if interquartile_mean(ours) >= theirs[0] else "**no**"
        settings = sorted({setting for run in peers[config] for setting in run["settings"]})
        cells = [name, f"{step:,}", _words(ours), "; ".join([_words(theirs), *settings]), reached]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join([HEADER, *rows])


def interquartile_mean(values: list[float]) -> float:
    """Mean without the quarter of the least and of the greatest (Agarwal et al. 2021).

    Args:
        values: Sorted; of fewer than four all count.
    """
    cut = len(values) // 4
    return mean(values[cut : len(values) - cut])


def _last_step(run: dict[str, Any]) -> int:
    return run["evaluations"]["env_step"][-1]


def _return_at(step: int, run: dict[str, Any]) -> float:
    evaluations = run["evaluations"]
    pairs = zip(evaluations["env_step"], evaluations["return"], strict=True)
    before = [(at, value) for at, value in pairs if at <= step]
    late = [value for at, value in before if at > 0.9 * step]
    return mean(late or [before[-1][1]])


def _words(values: list[float]) -> str:
    interval = f"[{values[0]:,.0f} .. {values[-1]:,.0f}]"
    return f"{interquartile_mean(values):,.0f} {interval}, {len(values)}"
