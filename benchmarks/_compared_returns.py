"""Returns next to those of others, for ``returns.py``: SB3's, and published ones.

A run's return at a step is the mean of its evaluations in the tenth of the steps before.
"""

import json
from pathlib import Path
from statistics import mean, median
from typing import Any

PEER_HEADER = """\
| config | at env step | ours: interquartile mean [min .. max] of seeds | SB3: the same | \
not below SB3's interval |
|---|---|---|---|---|"""
GOAL_HEADER = """\
| config | goal | ours: median of env steps [min .. max] of seeds | SB3: the same | ratio | \
at most 1 |
|---|---|---|---|---|---|"""
PUBLISHED_HEADER = """\
| config | at env step | ours: interquartile mean [min .. max] of seeds | published: the same | \
ratio | at least 0.9 |
|---|---|---|---|---|---|"""
#: ``source``, ``url``, and by config the ``step`` and the returns of ``seeds``.
PUBLISHED = json.loads(Path(__file__).with_name("published_returns.json").read_text())


def peer_table(results: list[dict[str, Any]]) -> str:
    """A row for each config that a peer trained, too, at the last step that all runs reached.

    Configs whose every run reaches the goal are those of `goal_table`.
    """
    rows = []
    for result, peer in _with_peer(results):
        if _all_converge(result):
            continue
        step = min(_last_step(run) for run in [*result["runs"], *peer["runs"]])
        ours, theirs = _returns_at(step, result["runs"]), _returns_at(step, peer["runs"])
        reached = "yes" if interquartile_mean(ours) >= theirs[0] else "**no**"
        settings = sorted({setting for run in peer["runs"] for setting in run["settings"]})
        cells = [f"{step:,}", _words(ours), "; ".join([_words(theirs), *settings]), reached]
        rows.append(_row(result["config"], cells))
    return "\n".join([PEER_HEADER, *rows])


def goal_table(results: list[dict[str, Any]]) -> str:
    """Env steps to the goal of each config that a peer trained, too, and that always reaches it."""
    rows = []
    for result, peer in _with_peer(results):
        if not _all_converge(result):
            continue
        sides = [[run["env_steps"] for run in one["runs"]] for one in (result, peer)]
        ratio = median(sides[0]) / median(sides[1])
        cells = [
            f"{median(steps):,.0f} [{min(steps):,} .. {max(steps):,}], {len(steps)}"
            for steps in sides
        ]
        if not _all_converge(peer):
            reached = sum(run["status"] == "converged" for run in peer["runs"])
            cells[1] += f", {reached} of them at the goal"
        verdict = "yes" if ratio <= 1 else "**no**"
        rows.append(
            _row(result["config"], [f"{result['goal']:g}", *cells, f"{ratio:.2f}", verdict])
        )
    return "\n".join([GOAL_HEADER, *rows])


def _with_peer(results: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Our results and a peer's of the same config."""
    peers = {result["config"]: result for result in results if result.get("peer")}
    ours = (result for result in results if not result.get("peer"))
    return [(one, peers[one["config"]]) for one in ours if one["config"] in peers]


def _all_converge(result: dict[str, Any]) -> bool:
    return all(run["status"] == "converged" for run in result["runs"])


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
