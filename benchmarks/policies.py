"""Updates per second of each policy, sampling included, against SB3 and tianshou.

    python benchmarks/policies.py [sac td3 ...] [--rounds N] [--seconds S]

All sides have the same networks and batch sizes, see ``_policy_sides.py``.
"""

import argparse
import sys
from functools import partial
from statistics import median

import _policy_sides as sides
from _peers import peer_python
from _timing import Figure, in_turns, serve, table

#: Which peers have which policy.
PEERS = {
    "sb3": ("sac", "td3", "ddpg", "dqn", "ppo", "a2c"),
    "tianshou": tuple(sides.SETTINGS),
}


def measure(rounds: int, seconds: float, names: tuple[str, ...] = ()) -> list[Figure]:
    """A figure for each policy, against the better of the peers that have it."""
    figures = []
    for name in names or sides.SETTINGS:
        peers = [peer for peer, policies in PEERS.items() if name in policies]
        pythons: dict[str, str | None] = {f"ding {name}": None}
        pythons |= {f"{peer} {name}": peer_python("peers") for peer in peers}
        ours, *others = in_turns(__file__, pythons, rounds, seconds).items()
        if ours[0] == f"ding {name}" and others:
            best, speeds = max(others, key=lambda other: median(other[1]))
            title = f"{name}, batch {sides.SETTINGS[name][1]}"
            figures.append(Figure(title, ours[1], speeds, best.partition(" ")[0], 1.0))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(sides.SETTINGS)}")
    parser.add_argument("--serve", metavar="SIDE", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    args = parser.parse_args()
    if args.serve:
        side, _, name = args.serve.partition(" ")
        serve(partial(getattr(sides, side), name))
        return
    if unknown := set(args.names) - set(sides.SETTINGS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    figures = measure(args.rounds, args.seconds, tuple(args.names))
    print(table(figures))
    if figures:
        print(f"\nmedian of the ratios: {median(figure.ratio for figure in figures):.3g}")


if __name__ == "__main__":
    sys.exit(main())
