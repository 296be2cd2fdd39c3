"""Parallel CartPole to a mean return of 195 over several seeds, and what the runs leave behind.

    python benchmarks/parallel_learning.py                        # seeds 0 to 9
    python benchmarks/parallel_learning.py --seeds 3 7 --limit 60
    python benchmarks/parallel_learning.py small_batches_free small_batches --csv curves.csv
    python benchmarks/parallel_learning.py --draw curves.svg --csv curves.csv --seeds

Several sides (see `_parallel_sides.py`) take turns: the first seed of each, then the second.
``--csv`` stores every evaluation next to the stored ones of other sides and seeds; ``--draw``
draws them all (needs matplotlib). Each seed is a separate run, one after the other; the status is
1 if one did not converge or left a file or process.
"""

import argparse
import csv
import sys
from pathlib import Path
from statistics import median

from _parallel_runs import Run, run

HEADER = """\
| side | seed | converged | pipeline s | with imports s | env steps | iterations \
| files left | bytes left | processes left | end |
|---|---|---|---|---|---|---|---|---|---|---|"""


COLUMNS = ("side", "seed", "seconds", "envstep", "train_iter", "return")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sides", nargs="*", default=["parallel"])
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(10)))
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for a run")
    parser.add_argument("--csv", type=Path, help="where evaluations are stored")
    parser.add_argument("--draw", type=Path, help="picture of what --csv holds")
    args = parser.parse_args()
    if args.seeds:
        print(HEADER, flush=True)
    runs: dict[str, list[Run]] = {side: [] for side in args.sides}
    for seed in args.seeds:
        for side in args.sides:
            runs[side].append(run(side, seed, args.limit))
            print(row(runs[side][-1]), flush=True)
            if args.csv is not None:
                store(runs[side][-1], args.csv)
    for side, mine in runs.items():
        if mine:
            print(f"\n{side}: {summary(mine)}")
    if args.draw is not None:
        draw(args.csv, args.draw)
    return int(not all(one.reached and one.left_nothing for mine in runs.values() for one in mine))


def store(one: Run, path: Path) -> None:
    """Put the evaluations of a run in place of those of its side and seed."""
    rows = [row for row in read(path) if (row["side"], row["seed"]) != (one.side, str(one.seed))]
    for values in one.evaluations:
        rows.append(dict(zip(COLUMNS, (one.side, str(one.seed), *map(str, values)))))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def draw(source: Path, target: Path) -> None:
    """Returns over seconds and over env steps: a line for each run, a row for each side."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ding"  # the same picture from the same figures
    import matplotlib.pyplot as plt

    rows = read(source)
    sides = list(dict.fromkeys(row["side"] for row in rows))
    figure, axes = plt.subplots(
        len(sides), 2, figsize=(9, 2.6 * len(sides)), sharey=True, sharex="col", squeeze=False
    )
    for side, pair in zip(sides, axes):
        for seed in dict.fromkeys(row["seed"] for row in rows if row["side"] == side):
            mine = [row for row in rows if (row["side"], row["seed"]) == (side, seed)]
            for axis, column in zip(pair, ("seconds", "envstep")):
                axis.plot(
                    [float(row[column]) for row in mine],
                    [float(row["return"]) for row in mine],
                    marker=".",
                    linewidth=0.8,
                )
        pair[0].set_ylabel("mean return")
        pair[0].set_title(side, loc="left", fontsize=9)
    axes[-1][0].set_xlabel("seconds")
    axes[-1][1].set_xlabel("env steps")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


def row(one: Run) -> str:
    cells = [
        one.side,
        f"{one.seed}",
        "yes" if one.reached else "**no**",
        f"{one.pipeline:.1f}",
        f"{one.wall:.1f}",
        f"{one.envstep:,}",
        f"{one.train_iter:,}",
        f"{one.files}",
        f"{one.size:,}",
        f"{one.processes}",
        one.reason.replace("\n", " "),
    ]
    return "| " + " | ".join(cells) + " |"


def summary(runs: list[Run]) -> str:
    seconds = [one.pipeline for one in runs]
    steps = [one.envstep for one in runs]
    return (
        f"{sum(one.reached for one in runs)} of {len(runs)} converged; "
        f"{median(seconds):.1f} s [{min(seconds):.1f} .. {max(seconds):.1f}], "
        f"{median(steps):,.0f} env steps [{min(steps):,} .. {max(steps):,}]; "
        f"{sum(one.files for one in runs)} files and {sum(one.processes for one in runs)} "
        "processes left"
    )


if __name__ == "__main__":
    sys.exit(main())
