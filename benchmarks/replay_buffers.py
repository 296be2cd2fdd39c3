"""Replay buffers side by side: this project, a hand-written floor, and peers.

    python benchmarks/replay_buffers.py --peer-python PEERS/bin/python

Each side runs in a process of its own; all take turns, case by case and round by round, so that
what else the machine does meets all alike. Printed are medians in items/s, and for the goals the
ratio of medians with the least and the greatest ratio of a single round. ``--setup-peers`` makes
the peers' virtual environment beside this file.
"""

import argparse
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
PEERS = HERE / ".peers" / "buffers"
REQUIREMENTS = ["cpprb", "stable-baselines3", "tianshou", "torchrl"]

CASES = [
    *("cartpole/push/1", "cartpole/push/64", "cartpole/sample/64", "cartpole/sample/512"),
    *("cartpole/per_push/64", "cartpole/per_sample/64", "cartpole/per_sample/512"),
    *("cartpole/per_update/64", "cartpole/per_update/512"),
    *("atari/push/64", "atari/sample/64"),
]
OWN = ["ding", "ding advanced", "ding rows", "ding rows+collate", "ding array rows", "floor"]
PEER = ["cpprb", "sb3", "tianshou", "torchrl"]

#: Case, this project's side, the side to compare with, the least ratio wanted.
GOALS = [
    ("cartpole/sample/64", "ding", "cpprb", 1.5),
    ("cartpole/sample/64", "ding advanced", "cpprb", 1.5),
    ("cartpole/per_sample/64", "ding", "cpprb", 1.0),
    ("cartpole/per_sample/512", "ding", "cpprb", 2.0),
    ("cartpole/push/64", "ding", "cpprb", 3.0),
    ("cartpole/push/64", "ding advanced", "cpprb", 3.0),
    ("cartpole/push/1", "ding array rows", "sb3", 1.0),
    ("cartpole/push/1", "ding", "sb3", 1.0),
    ("atari/sample/64", "ding", "floor", 0.9),
]


class Worker:
    """A side in its own process."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
        if name in OWN:
            env["PYTHONPATH"] = str(HERE.parent)
        self.process = subprocess.Popen(
            [python, str(HERE / "_buffer_sides.py"), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )

    def measure(self, case: str, seconds: float) -> float | None:
        """Items per second; None if the side does not have this, or is not installed."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{case} {seconds}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        answer = self._line()
        while answer and answer != "-" and not answer[0].isdigit():
            answer = self._line()
        return float(answer) if answer and answer != "-" else None

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def measure(names: list[str], python: str, cases: list[str], rounds: int, seconds: float) -> dict:
    """``{case: {side: [items per second of each round]}}``."""
    workers = [Worker(name, sys.executable if name in OWN else python) for name in names]
    results: dict = {}
    try:
        for case in cases:
            rows: dict = {worker.name: [] for worker in workers}
            for worker in workers:
                worker.measure(case, 0.01)  # builds and fills the buffer
            for _ in range(rounds):
                for worker in workers:
                    speed = worker.measure(case, seconds)
                    if speed is not None:
                        rows[worker.name].append(speed)
            results[case] = {name: speeds for name, speeds in rows.items() if speeds}
    finally:
        for worker in workers:
            worker.close()
    return results


def print_table(results: dict, names: list[str]) -> None:
    print(f"{'items/s':26}" + "".join(f"{name:>19}" for name in names))
    for case, rows in results.items():
        cells = [f"{median(rows[n]):19,.0f}" if n in rows else f"{'-':>19}" for n in names]
        print(f"{case:26}" + "".join(cells))


def print_goals(results: dict) -> None:
    print(f"\n{'goal':64}{'ratio':>7}  [min, max]")
    for case, own, other, least in GOALS:
        rows = results.get(case, {})
        if own in rows and other in rows:
            ratio = median(rows[own]) / median(rows[other])
            single = [a / b for a, b in zip(rows[own], rows[other])]
            verdict = "" if ratio >= least else "  MISSED"
            goal = f"{case}: {own} at least {least:g} x {other}"
            print(f"{goal:64}{ratio:7.2f}  [{min(single):.2f}, {max(single):.2f}]{verdict}")


MEMORY = """
import resource, sys
sys.path.insert(0, {here!r})
from _buffer_sides import transitions
import numpy as np
from easydict import EasyDict
from ding.data import Columns
from ding.worker import NaiveReplayBuffer
import torch
kind, n = {kind!r}, {n}
def rows(at):
    columns = transitions(kind, step, at)
    columns["obs"][0] = last[0] if last else columns["obs"][0]
    last[:] = [columns["next_obs"][-1]]
    return Columns({{k: v if k == "done" else torch.from_numpy(v) for k, v in columns.items()}})
step, last = 100, []
raw = sum(v.nbytes for k, v in transitions(kind, step).items() if {once} == 0 or k == "obs")
NaiveReplayBuffer(EasyDict(replay_buffer_size=step)).push(rows(0), 0)
last.clear()
rows(0)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
before = resident()
buffer = NaiveReplayBuffer(EasyDict(replay_buffer_size=n))
for at in range(n // step):
    buffer.push(rows(at), 0)
print(resident() - before, raw * (n // step))
"""


def print_memory(atari: int) -> None:
    """Growth of resident memory while a buffer fills, against the raw bytes of what it holds."""
    print(f"\n{'memory':52}{'MB':>9}{'raw MB':>9}{'ratio':>7}")
    for kind, n, once, what, most in (
        ("cartpole", 1_000_000, 0, "all columns", 1.2),
        ("atari", atari, 1, "one copy of each frame", 1.15),
    ):
        code = MEMORY.format(here=str(HERE), kind=kind, n=n, once=once)
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent)}
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
        )
        used, raw = map(int, run.stdout.split()[-2:])
        verdict = "" if used / raw <= most else "  MISSED"
        label = f"{n:,} {kind} transitions / {what}"
        print(f"{label:52}{used / 1e6:9,.0f}{raw / 1e6:9,.0f}{used / raw:7.2f}{verdict}")


def setup_peers() -> str:
    """Make the peers' environment; what cannot be installed is left out of the table."""
    python = str(PEERS / "bin" / "python")
    if not PEERS.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
        for requirement in REQUIREMENTS:
            subprocess.run([python, "-m", "pip", "install", "-q", requirement], check=False)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="Python of an environment that has the peers")
    parser.add_argument("--setup-peers", action="store_true", help="make that environment")
    parser.add_argument("--sides", nargs="*", help="only these")
    parser.add_argument("--cases", nargs="*", default=CASES, help="only these")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    parser.add_argument("--atari", type=int, default=100_000, help="transitions; 0: no memory test")
    parser.add_argument("--json", help="file for all measurements")
    args = parser.parse_args()
    python = setup_peers() if args.setup_peers else args.peer_python
    names = args.sides or [*OWN, *(PEER if python else [])]
    results = measure(names, python or sys.executable, args.cases, args.rounds, args.seconds)
    print_table(results, names)
    print_goals(results)
    if args.atari:
        print_memory(args.atari)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
