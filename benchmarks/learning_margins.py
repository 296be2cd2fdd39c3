"""How far the tests of learning are from failing, over seeds and instruction sets.

    python benchmarks/learning_margins.py                                # 20 seeds, all sets
    python benchmarks/learning_margins.py --seeds 3 --capabilities avx2 -- tests/policy -k iqn
    python benchmarks/learning_margins.py --table                        # what was measured so far

Runs the tests that take the fixture ``learned`` (see tests/learned.py) with ``--learning-seed``
0, 1, ... and ``ATEN_CPU_CAPABILITY`` set, which chooses the vector instructions of torch's CPU
kernels and so the rounding of every sum. Each result leaves a margin: 1 is far from failing, 0 is
the limit, below it the test fails. Prints for each test the worst of them, where it was, and the
median. Margins are appended to ``benchmarks/results/learning_margins.jsonl``; pairs of seed and
instruction set that were measured are run again only with ``--again``.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "learning_margins.jsonl"
CAPABILITIES = ("default", "avx2", "avx512")
#: Below this margin a result is said to be close.
CLOSE = 0.2


def main() -> None:
    args = _arguments()
    failed = []
    if not args.table:
        args.results.parent.mkdir(parents=True, exist_ok=True)
        if args.again:
            args.results.unlink(missing_ok=True)
        rows = _read(args.results)
        done = {(row["capability"], row["seed"]) for row in rows if row["tests"] == args.tests}
        for seed in range(args.first, args.first + args.seeds):
            for capability in args.capabilities:
                if (capability, seed) not in done and not _run(args, seed, capability):
                    failed.append(f"seed {seed} with {capability}")
    _print_table(_read(args.results))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _run(args: argparse.Namespace, seed: int, capability: str) -> bool:
    """Run the tests once; returns whether all of them passed."""
    print(f"seed {seed}, {capability} ...", flush=True)
    margins = args.results.absolute().with_suffix(f".{os.getpid()}.part")
    margins.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "learns", "-n", str(args.jobs)]
    command += ["--learning-seed", str(seed), "--margins", str(margins), *args.tests]
    env = {**os.environ, "ATEN_CPU_CAPABILITY": capability, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE)
    if done.returncode not in (0, 1):
        sys.exit(f"pytest ended with {done.returncode}:\n{done.stdout}")
    if done.returncode:
        print(*[line for line in done.stdout.splitlines() if line.startswith("FAILED")], sep="\n")
    with args.results.open("a") as file:
        for line in margins.read_text().splitlines():
            row = {**json.loads(line), "capability": capability, "tests": args.tests}
            file.write(json.dumps(row) + "\n")
    margins.unlink()
    return done.returncode == 0


def _read(results: Path) -> list[dict]:
    lines = results.read_text().splitlines() if results.exists() else []
    return [json.loads(line) for line in lines]


def _print_table(results: list[dict]) -> None:
    """One line for each test, the one that is closest to failing first."""
    found = defaultdict(list)
    for row in results:
        found[row["test"].removeprefix("tests/")].append(row)
    if not found:
        sys.exit("nothing was measured yet")
    print(f"{'worst':>6} {'median':>6} {'runs':>4}  test (seed and instruction set of the worst)")
    for test, rows in sorted(found.items(), key=lambda item: min(r["margin"] for r in item[1])):
        worst = min(rows, key=lambda row: row["margin"])
        middle = median(row["margin"] for row in rows)
        where = f"{worst['seed']}, {worst['capability']}"
        print(f"{worst['margin']:6.2f} {middle:6.2f} {len(rows):4}  {test} ({where})")
    close = sum(min(r["margin"] for r in rows) < CLOSE for rows in found.values())
    print(f"{len(found)} tests, {close} of them with a worst margin below {CLOSE}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds (20)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--capabilities", nargs="+", default=CAPABILITIES, choices=CAPABILITIES)
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time (2)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of what was measured")
    parser.add_argument("--again", action="store_true", help="drop what was measured so far")
    parser.add_argument("--table", action="store_true", help="print what was measured so far")
    parser.add_argument("tests", nargs="*", help="paths and options of pytest, after --")
    return parser.parse_args()


if __name__ == "__main__":
    main()
