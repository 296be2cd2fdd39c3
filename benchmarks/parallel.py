"""Parallel mode: wall time until CartPole is learned, and what a run leaves behind.

The run is that of ``configs/cartpole/parallel/cartpole_dqn_config.py`` (2 collectors, 1 learner),
in turns with DI-engine's parallel mode on the config that it ships and with this project's serial
mode. Times are those of the pipeline's call, without imports, to a mean return of 195.
"""

import argparse
import sys

from _parallel_runs import Run, run
from _peers import is_installed
from _timing import Figure, table

SIDES = ("parallel", "serial", "DI-engine")
#: Seconds on two cores within which the run is to end.
GOAL_SECONDS = 12.0
#: Seeds at most: the other side takes one or two minutes for each.
MOST_SEEDS = 5


def measure(rounds: int, seconds: float = 0.0) -> list[Figure]:
    """Figures over up to ``rounds`` seeds."""
    sides = [side for side in SIDES if side != "DI-engine" or is_installed("di-engine")]
    runs: dict[str, list[Run]] = {side: [] for side in sides}
    for seed in range(min(rounds, MOST_SEEDS)):
        for side in sides:
            runs[side].append(run(side, seed))
            print(runs[side][-1], file=sys.stderr, flush=True)
    return figures(runs)


def figures(runs: dict[str, list[Run]]) -> list[Figure]:
    ours, serial, theirs = (runs.get(side, []) for side in SIDES)
    name = f"parallel CartPole to 195, {len(ours)} seeds"
    times, limit = [one.pipeline for one in ours], [GOAL_SECONDS] * len(ours)
    missed, left = sum(not one.reached for one in ours), sum(one.processes for one in ours)
    rows = [
        _less(f"{name}, time", times, limit, "limit", 1, "s"),
        _less(f"{name}, time", times, [one.pipeline for one in serial], "serial mode", 1, "s"),
        _less(f"{name}, not converged", [missed], [1], "limit", 0, "runs"),
        _less(f"{name}, left behind", [left], [1], "limit", 0, "processes"),
    ]
    for what, attribute, goal, unit in (
        ("time", "pipeline", 0.1, "s"),
        ("left behind", "files", 0, "files"),
        ("left behind", "size", 0, "bytes"),
    ):
        own, others = ([getattr(one, attribute) for one in side] for side in (ours, theirs))
        if others and all(others):
            rows.append(_less(f"{name}, {what}", own, others, "DI-engine", goal, unit))
    return rows


def _less(
    name: str, ours: list[float], other: list[float], against: str, goal: float, unit: str
) -> Figure:
    return Figure(name, ours, other, against, goal, unit, smaller=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="seeds")
    print(table(measure(parser.parse_args().rounds)))
