"""A serial training in several processes."""

import json
from pathlib import Path

import torch

from tests.children import run_ranks

SCRIPT = Path(__file__).with_name("ranks.py")


def test_processes_learn_the_same_from_environments_of_their_own(tmp_path):
    run_ranks(SCRIPT, tmp_path)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_callback_of_the_first_process_ends_all_of_them(tmp_path):
    (tmp_path / "end_early").touch()
    run_ranks(SCRIPT, tmp_path)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["reason"] == "Ending.on_collect asked for the end"
    assert record["train_iter"] == 4  # the round was finished
    assert (tmp_path / "told_by_0").read_text().split() == ["0", "2"]
    assert not (tmp_path / "told_by_1").exists()
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
