"""Returns next to those of others, for ``returns.py``: SB3's, and published ones.

A run's return at a step is the mean of its evaluations in the tenth of the steps before.
"""

import json
from pathlib import Path
from statistics import mean
from typing import Any

PEER_HEADER = """\
| config | at env step | ours: interquartile mean [min .. max] of seeds | SB3: the same | \
not below SB3's interval |
|---|---|---|---|---|"""
PUBLISHED_HEADER = """\
| config | at env step | ours: interquartile mean [min .. max] of seeds | published: the same | \
ratio | at least 0.9 |
|---|---|---|---|---|---|"""
#: ``source``, ``url``, and by config the ``step`` and the returns of ``seeds``.
PUBLISHED = json.loads(Path(__file__).with_name("published_returns.json").read_text())


def peer_table(results: list[dict[str, Any]]) -> str:
    """A row for each config that a peer trained, too, at the last step that all runs reached."""
    peers = {result["config"]: result["runs"] for result in results if result.get("peer")}
    rows = []
    for result in results:
        config = result["config"]
        if result.get("peer") or config not in peers:
            continue
        step = min(_last_step(run) for run in [*result["runs"], *peers[config]])
        ours, theirs = _returns_at(step, result["runs"]), _returns_at(step, peers[config])
        reached = "yes" if interquartile_mean(ours) >= theirs[0] else "**no**"
        settings = sorted({setting for run in peers[config] for setting in run["settings"]})
        cells = [f"{step:,}", _words(ours), "; ".join([_words(theirs), *settings]), reached]
        rows.append(_row(config, cells))
    return "\n".join([PEER_HEADER, *rows])


def published_table(results: list[dict[str, Any]]) -> str:
    """A row for each config with published returns whose runs reached their step."""
    rows = []
    for result in results:
        published = PUBLISHED["returns"].get(result["config"])
        if published is None or result.get("peer"):
            continue
        step, theirs = published["step"], sorted(published["seeds"])
        runs = [run for run in result["runs"] if run["env_steps"] >= step]
        if not runs:
            continue
        ours = _returns_at(max(map(_last_step, runs)), runs)
        ratio = interquartile_mean(ours) / interquartile_mean(theirs)
        reached = "yes" if ratio >= 0.9 else "**no**"
        cells = [f"{step:,}", _words(ours), _words(theirs), f"{ratio:.2f}", reached]
        rows.append(_row(result["config"], cells))
    return "\n".join([PUBLISHED_HEADER, *rows])


def interquartile_mean(values: list[float]) -> float:
    """Mean without the quarter of the least and of the greatest (Agarwal et al. 2021).

    Args:
        values: Sorted; of fewer than four all count.
    """
    cut = len(values) // 4
    return mean(values[cut : len(values) - cut])


def _last_step(run: dict[str, Any]) -> int:
    return run["evaluations"]["env_step"][-1]


def _returns_at(step: int, runs: list[dict[str, Any]]) -> list[float]:
    """Sorted."""
    return sorted(_return_at(step, run["evaluations"]) for run in runs)


def _return_at(step: int, evaluations: dict[str, list[float]]) -> float:
    pairs = zip(evaluations["env_step"], evaluations["return"], strict=True)
    before = [(at, value) for at, value in pairs if at <= step]
    late = [value for at, value in before if at > 0.9 * step]
    return mean(late or [before[-1][1]])


def _words(values: list[float]) -> str:
    interval = f"[{values[0]:,.0f} .. {values[-1]:,.0f}]"
    return f"{interquartile_mean(values):,.0f} {interval}, {len(values)}"


def _row(config: str, cells: list[str]) -> str:
    name = f"[{Path(config).stem.removesuffix('_config')}](../{config})"
    return "| " + " | ".join([name, *cells]) + " |"
