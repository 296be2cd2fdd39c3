"""Parallel mode's data path: samples from two collectors to a learner's batches, policies back.

Real runs (coordinator, learner, two collectors) of an environment and a policy that cost next to
nothing, see `_feed.py`. No sample is used twice. Counted are the rows and bytes of the learner's
batches; and how long it takes from asking a policy for its weights until a collector uses them,
when there are new weights about once a second.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from _timing import HERE, Figure, table

#: Rounds at most: each takes half a minute.
MOST_ROUNDS = 3
#: Seconds that a run has to come up in.
START_LIMIT = 60.0
#: Seconds of training that are not counted, and the fewest that are counted by `run_all.py`.
WARM_UP, LEAST_SECONDS = 2.0, 5.0
#: Seconds between two looks for a new policy, and what may come on top.
UPDATE_SECONDS, SLACK = 0.5, 0.05


@dataclass(frozen=True)
class Case:
    """A run's settings: what is sent, how long an update takes, and how often weights leave."""

    kind: str
    seconds: float
    send_policy_freq: int
    capacity: int
    batch: int


CASES = {
    "cartpole": Case("cartpole", 0.0, 100, 20_000, 256),
    "atari": Case("atari", 0.0, 100, 4_000, 64),
    "policy": Case("cartpole", 0.01, 100, 20_000, 256),
}


def measure(rounds: int, seconds: float, least: float = LEAST_SECONDS) -> list[Figure]:
    """Figures of up to ``rounds`` runs of each case, each over ``seconds`` (``least`` at least)."""
    rounds = min(rounds, MOST_ROUNDS)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in CASES}
    for _ in range(rounds):
        for name in CASES:
            found[name].append(watch(name, max(seconds, least)))
            print(name, found[name][-1], file=sys.stderr, flush=True)
    cartpole, atari = ([one[key] for one in found[name]] for name, key in _KEYS)
    late = [max(one["age"] - UPDATE_SECONDS, 1e-3) for one in found["policy"]]
    name = "two collectors to batches"
    return [
        Figure(f"{name}, CartPole-size", cartpole, [20_000.0] * rounds, "limit", 1, "samples/s"),
        Figure(f"{name}, 84x84x4", atari, [300.0] * rounds, "limit", 1, "MB/s"),
        Figure(
            "policy published to used, beyond update_policy_second",
            *(late, [SLACK] * rounds, "limit", 1, "s", True),
        ),
    ]


_KEYS = (("cartpole", "rows"), ("atari", "mb"))


def watch(name: str, seconds: float, engine: str = "flask_fs") -> dict[str, float]:
    """Run a case on an engine; rows and MB per second, 95th percentile of the policies' ages."""
    with tempfile.TemporaryDirectory(prefix="feed_") as folder:
        log = Path(folder) / "log.jsonl"
        env = {
            **os.environ,
            "FEED_LOG": str(log),
            "BENCH_ENGINE": engine,
            "OMP_NUM_THREADS": "1",
            "DING_CONSOLE": "plain",
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)]),
        }
        with (Path(folder) / "out").open("w") as out:
            child = subprocess.Popen(
                [sys.executable, __file__, "--serve", name],
                cwd=folder,
                env=env,
                stdout=out,
                stderr=out,
            )
            try:
                lines = _collect(child, log, seconds)
            finally:
                child.send_signal(signal.SIGTERM)
                child.wait(30)
        if not lines:
            raise RuntimeError((Path(folder) / "out").read_text()[-2000:])
    return _rates(lines)


def _collect(child: subprocess.Popen, log: Path, seconds: float) -> list[dict[str, float]]:
    """The lines of the time that counts; none if training did not begin."""
    deadline = time.monotonic() + START_LIMIT
    while not (log.exists() and '"rows"' in log.read_text()):
        if child.poll() is not None or time.monotonic() > deadline:
            return []
        time.sleep(0.1)
    begin = time.monotonic() + WARM_UP
    time.sleep(WARM_UP + seconds + 0.6)
    deadline = time.monotonic() + START_LIMIT
    while True:
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        counted = [line for line in lines if line["time"] >= begin]
        # Rates need two counts, which a busy machine may not reach in a short measurement.
        if sum("rows" in line for line in counted) > 1 or time.monotonic() > deadline:
            return counted
        time.sleep(0.1)


def _rates(lines: list[dict[str, float]]) -> dict[str, float]:
    counts = [line for line in lines if "rows" in line]
    ages = sorted(line["age"] for line in lines if "age" in line) or [float("nan")]
    span = counts[-1]["time"] - counts[0]["time"]
    return {
        "rows": (counts[-1]["rows"] - counts[0]["rows"]) / span,
        "mb": (counts[-1]["bytes"] - counts[0]["bytes"]) / span / 1e6,
        "age": ages[int(0.95 * (len(ages) - 1))],
        "median_age": median(ages),
        "policies": len(ages),
    }


def serve(case: Case) -> None:
    from _feed import configs
    from _parallel_sides import engine_section
    from easydict import EasyDict

    from ding.entry import parallel_pipeline

    main, create, system = configs(case, UPDATE_SECONDS)
    system["engine"] = engine_section()
    parallel_pipeline(tuple(EasyDict(part) for part in (main, create, system)), seed=0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--serve", metavar="CASE", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    args = parser.parse_args()
    if args.serve:
        serve(CASES[args.serve])
    else:
        print(table(measure(args.rounds, args.seconds, least=0.0)))
