"""Updates per second with networks as they are, compiled by torch, and as CUDA graphs.

    python benchmarks/compile.py [sac dqn ppo ...] [--cuda] [--frames] [--rounds N] [--seconds S]

Networks and batches are those of ``policies.py``. A side compiles before it is measured, which
takes up to a minute. CUDA graphs (``learn.compile='reduce-overhead'``) are for ``--cuda`` alone.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable

import _policy_sides as sides
from _timing import Figure, in_turns, serve, table

MODES: dict[str, bool | str] = {"eager": False, "compiled": True, "graphs": "reduce-overhead"}
#: Updates before the first measurement: each form of input is compiled at its first call.
WARM_UP = 30


def build(side: str) -> Callable[[], int]:
    """The updates of a side, ``POLICY MODE DEVICE SHAPE``."""
    name, mode, device, shape = side.split()
    os.chdir(tempfile.mkdtemp())
    frames = shape == "frames"
    main, create = sides.frames_config(name) if frames else sides.ding_config(name)
    main["policy"]["cuda"] = device == "cuda"
    main["policy"]["learn"]["compile"] = MODES[mode]
    act = sides.updates(main, create, name, frames)
    updates = 0
    while updates < WARM_UP:
        updates += act()
    return act


def measure(names: list[str], args: argparse.Namespace) -> list[Figure]:
    device, shape = "cuda" if args.cuda else "cpu", "frames" if args.frames else "vectors"
    modes = MODES if args.cuda else [mode for mode in MODES if mode != "graphs"]
    figures = []
    for name in names:
        labels = {f"{name} {mode} {device} {shape}": None for mode in modes}
        speeds = in_turns(__file__, labels, args.rounds, args.seconds)
        eager = f"{name} eager {device} {shape}"
        figures += [
            Figure(label, values, speeds[eager], "eager", 1.0)
            for label, values in speeds.items()
            if label != eager
        ]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=["sac", "dqn", "ppo"])
    parser.add_argument("--cuda", action="store_true", help="on a GPU")
    parser.add_argument("--frames", action="store_true", help="84x84x4 observations: dqn, ppo")
    parser.add_argument("--serve", metavar="SIDE", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    args = parser.parse_args()
    if args.serve:
        serve(lambda: build(args.serve))
    else:
        print(table(measure(args.names, args)))


if __name__ == "__main__":
    sys.exit(main())
