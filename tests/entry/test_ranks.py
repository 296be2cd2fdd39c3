"""A serial training in several processes."""

import os
import subprocess
import sys
from pathlib import Path

import torch

SCRIPT = Path(__file__).with_name("ranks.py")


def test_processes_learn_the_same_from_environments_of_their_own(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[2]), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen([sys.executable, str(SCRIPT), str(tmp_path), rank, "2"], env=env)
        for rank in "01"
    ]
    try:
        assert [process.wait(120) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait(10)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
