"""Start-up: seconds from the start of a process to its first update, and to ``ding --help``."""

import os
import subprocess
import sys
import tempfile

from _timing import HERE, Figure, command_line, seconds_of

#: Runs the CartPole config and leaves at the first update.
FIRST_UPDATE = """
import os, sys
sys.path.insert(0, {configs!r})
from ding.worker import BaseLearner
train = BaseLearner.train
def train_once(self, *args, **kwargs):
    train(self, *args, **kwargs)
    os._exit(0)
BaseLearner.train = train_once
from cartpole_dqn_config import main_config, create_config
from ding.entry import serial_pipeline
serial_pipeline((main_config, create_config), 0)
"""
HELP_LIMIT = 0.3


def measure(rounds: int, seconds: float) -> list[Figure]:
    os.chdir(tempfile.mkdtemp())
    configs = str(HERE.parent / "configs" / "cartpole")
    commands = {
        "ding": [sys.executable, "-c", FIRST_UPDATE.format(configs=configs)],
        "torch": [sys.executable, "-c", "import torch"],
        "help": [sys.executable, "-m", "ding", "--help"],
    }
    times = seconds_of(commands, rounds, {"PYTHONPATH": str(HERE.parent)})
    first, torch = times["ding"], times["torch"]
    limit = [HELP_LIMIT] * rounds
    return [
        Figure("start to first update", first, torch, "import torch", 1.3, "s", True),
        Figure("ding --help", times["help"], limit, "limit", 1.0, "s", True),
    ]


def unwanted_imports() -> list[str]:
    """Modules that a first update has no use for, yet are imported by then."""
    code = FIRST_UPDATE.replace("os._exit(0)", "print(*sys.modules, flush=True); os._exit(0)")
    run = subprocess.run(
        [sys.executable, "-c", code.format(configs=str(HERE.parent / "configs" / "cartpole"))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        cwd=tempfile.mkdtemp(),
    )
    heavy = {"torch._dynamo", "sympy", "flask", "requests", "tensorboardX", "matplotlib"}
    return sorted(heavy & set(run.stdout.split()))


if __name__ == "__main__":
    print("imported by the first update, among the heavy:", unwanted_imports() or "none")
    command_line(__doc__, {}, measure)
