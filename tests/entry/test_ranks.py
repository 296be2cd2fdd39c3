"""A serial training in several processes."""

from pathlib import Path

import torch

from tests.children import run_ranks

SCRIPT = Path(__file__).with_name("ranks.py")


def test_processes_learn_the_same_from_environments_of_their_own(tmp_path):
    run_ranks(SCRIPT, tmp_path)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
