"""All benchmarks, or those named, as one table.

    python benchmarks/run_all.py [collection learner ...] [--rounds N] [--seconds S]

Peers' virtual environments are made when they are first needed (minutes, and network).
"""

import argparse
import importlib
import sys

from _timing import HEADER

NAMES = [
    "pipelines",
    "env_managers",
    "replay_buffers",
    "startup",
    "run_log",
    "interaction",
    "coordinator",
    "data_plane",
    "tensor_files",
    "parallel_data",
    "parallel",
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    args = parser.parse_args()
    unknown = set(args.names) - set(NAMES) - {"memory"}
    if unknown:
        parser.error(f"no benchmark {sorted(unknown)}; there are {NAMES} and memory")
    missed = 0
    print(HEADER, flush=True)
    for name in args.names or NAMES:
        for figure in importlib.import_module(name).measure(args.rounds, args.seconds):
            missed += not figure.reached
            print(figure.row(), flush=True)
    print(f"\n{missed} missed" if missed else "\nall reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
