"""Parallel CartPole to a mean return of 195 over several seeds, and what the runs leave behind.

    python benchmarks/parallel_learning.py                        # seeds 0 to 9
    python benchmarks/parallel_learning.py --seeds 3 7 --limit 60

Each seed is a run of its own, one after the other; the status is 1 if one did not converge or left
a file or process.
"""

import argparse
import sys
from statistics import median

from _parallel_runs import Run, run

HEADER = """\
| seed | converged | pipeline s | with imports s | env steps | iterations \
| files left | bytes left | processes left | end |
|---|---|---|---|---|---|---|---|---|---|"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for a run")
    args = parser.parse_args()
    print(HEADER, flush=True)
    runs = []
    for seed in args.seeds:
        runs.append(run("parallel", seed, args.limit))
        print(row(runs[-1]), flush=True)
    print(f"\n{summary(runs)}")
    return int(not all(one.reached and one.left_nothing for one in runs))


def row(one: Run) -> str:
    cells = [
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
