"""Replay buffers: items per second, and memory.

Sides that come with a case's name in the form ``side:kind/verb/size``. This project's own are
`ding` (columns, the naive buffer), `advanced` (columns, the pipelines' default), `rows` (lists of
dicts, collated), `dicts` (single dicts of arrays).
"""

import os
import subprocess
import sys
from pathlib import Path

from _buffer_sides import SIDES, work
from _peers import peer_python
from _timing import Figure, Work, command_line, in_turns

HERE = Path(__file__).resolve().parent
OWN = {"ding", "advanced", "rows", "dicts", "floor"}

#: Case; sides of this project; floor or peer and the least ratio wanted.
GOALS: list[tuple[str, list[str], dict[str, float]]] = [
    ("cartpole/sample/64", ["ding", "advanced"], {"cpprb": 1.5, "sb3": 1.5, "tianshou": 1.5}),
    ("cartpole/sample/512", ["ding", "advanced"], {"cpprb": 1.0, "floor": 0.3}),
    ("cartpole/push/64", ["ding", "advanced"], {"cpprb": 3.0}),
    ("cartpole/push/1", ["dicts", "ding"], {"sb3": 1.0}),
    ("cartpole/per_sample/64", ["advanced"], {"cpprb": 1.0}),
    ("cartpole/per_sample/512", ["advanced"], {"cpprb": 2.0}),
    ("cartpole/per_update/64", ["advanced"], {"tianshou": 1.0}),
    ("atari/sample/64", ["ding", "advanced"], {"floor": 0.9}),
    ("atari/push/64", ["ding"], {"floor": 0.3}),
    # Columns against what DI-engine has, then rows against the same.
    ("cartpole/push/64", ["ding", "advanced", "rows"], {"di-engine": 1.0}),
    ("cartpole/sample/64", ["ding", "advanced", "rows"], {"di-engine": 1.0}),
    ("cartpole/per_sample/64", ["advanced", "rows"], {"di-engine": 1.0}),
    ("cartpole/per_update/64", ["advanced"], {"di-engine": 1.0}),
]
#: Wanted of columns against DI-engine; rows must only not be slower.
TIMES_DI_ENGINE = 30.0


def measure(rounds: int, seconds: float, names: tuple[str, ...] = ()) -> list[Figure]:
    """Figures of the cases of these names; without any, of all cases and of memory."""
    figures = []
    for case, own, others in GOALS:
        if names and case not in names:
            continue
        sides = {f"{name}:{case}": None for name in own}
        for name in others:
            env = "di-engine" if name == "di-engine" else "peers"
            sides[f"{name}:{case}"] = None if name in OWN else peer_python(env)
        speeds = in_turns(__file__, sides, rounds, seconds)
        for name in own:
            for other, goal in others.items():
                ours, theirs = speeds.get(f"{name}:{case}"), speeds.get(f"{other}:{case}")
                if other == "di-engine" and name != "rows":
                    goal = TIMES_DI_ENGINE
                if ours and theirs:
                    figures.append(Figure(f"{case}, {name}", ours, theirs, other, goal))
    return figures if names else [*figures, *measure_memory(min(1.0, seconds))]


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


def measure_memory(share: float = 1.0) -> list[Figure]:
    """Growth of resident memory while a buffer fills, against the raw bytes of what it holds.

    Args:
        share: Of the full number of transitions.
    """
    figures = []
    for kind, n, once, what, most in (
        ("cartpole", 1_000_000, 0, "all columns", 1.2),
        ("atari", 100_000, 1, "one copy of each frame", 1.15),
    ):
        n = max(1000, round(share * n))
        code = MEMORY.format(here=str(HERE), kind=kind, n=n, once=once)
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent)}
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
        )
        used, raw = (int(field) / 1e6 for field in run.stdout.split()[-2:])
        name = f"{n:,} {kind} transitions"
        figures.append(Figure(name, [used], [raw], what, most, "MB", smaller=True))
    return figures


WORKS: dict[str, Work] = {
    f"{name}:{case}": work(name, case) for name in SIDES for case, _, _ in GOALS
}

if __name__ == "__main__":
    command_line(__doc__, WORKS, measure, dict.fromkeys(case for case, _, _ in GOALS))
