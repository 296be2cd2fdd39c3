"""Checkpoints and saving at a break-off."""

import os
import signal
from pathlib import Path

import pytest
import torch
from torch import nn

from ding.torch_utils import CountVar, auto_checkpoint, build_checkpoint_helper
from ding.utils.errors import CheckpointError


def test_round_trip(tmp_path: Path) -> None:
    path = str(tmp_path / "ckpt.pth.tar")
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    helper = build_checkpoint_helper({})
    helper.save(path, model, optimizer, last_iter=CountVar(7), last_epoch=CountVar(2))
    other = nn.Linear(2, 2)
    restored = torch.optim.Adam(other.parameters())
    last_iter, last_epoch = CountVar(0), CountVar(0)
    helper.load(path, other, restored, last_iter=last_iter, last_epoch=last_epoch)
    assert torch.equal(other.weight, model.weight)
    assert (last_iter.val, last_epoch.val) == (7, 2)
    assert restored.state_dict()["state"].keys() == optimizer.state_dict()["state"].keys()


def test_prefix_and_mask(tmp_path: Path) -> None:
    path = str(tmp_path / "ckpt.pth.tar")
    helper = build_checkpoint_helper({})
    inner = nn.Sequential(nn.Linear(2, 2))
    helper.save(path, inner, prefix_op="add", prefix="module.")
    target = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(CheckpointError, match="does not fit"):
        helper.load(path, target)
    helper.load(path, target, prefix_op="remove", prefix="module.")
    assert torch.equal(target[0].weight, inner[0].weight)
    masked = nn.Sequential(nn.Linear(2, 2))
    before = masked[0].bias.detach().clone()
    helper.load(path, masked, prefix_op="remove", prefix="module.", state_dict_mask=["0.bias"])
    assert torch.equal(masked[0].weight, inner[0].weight)
    assert torch.equal(masked[0].bias, before)
    with pytest.raises(ValueError, match="'drop'"):
        helper.load(path, target, prefix_op="drop", prefix="x")


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "ckpt.pth.tar")
    helper = build_checkpoint_helper({})
    helper.save(path, nn.Linear(2, 2))
    with pytest.raises(CheckpointError, match="no 'last_iter'"):
        helper.load(path, nn.Linear(2, 2), last_iter=CountVar(0))


def test_count_var() -> None:
    count = CountVar(3)
    count.add(2)
    assert count.val == 5
    count.update(1)
    assert count.val == 1


class Owner:
    def __init__(self, save_fails: bool = False) -> None:
        self.saved = 0
        self.save_fails = save_fails

    def save_checkpoint(self) -> None:
        self.saved += 1
        if self.save_fails:
            raise OSError("disk full")

    @auto_checkpoint
    def run(self, act) -> str:
        """Docs."""
        act()
        return "done"


def interrupt() -> None:
    raise KeyboardInterrupt


def fail() -> None:
    raise ZeroDivisionError


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()


@pytest.mark.parametrize(
    ("act", "error"),
    [(fail, ZeroDivisionError), (interrupt, KeyboardInterrupt), (terminate, SystemExit)],
)
def test_saves_at_a_break_off(act, error) -> None:
    owner = Owner()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(error):
        owner.run(act)
    assert owner.saved == 1
    assert signal.getsignal(signal.SIGTERM) is before


def test_does_not_save_at_the_end() -> None:
    owner = Owner()
    assert owner.run(lambda: None) == "done"
    assert owner.saved == 0
    assert Owner.run.__doc__ == "Docs."


def test_a_failing_save_does_not_hide_the_error() -> None:
    with pytest.raises(ZeroDivisionError):
        Owner(save_fails=True).run(fail)


def test_leaves_a_handler_of_others_in_place() -> None:
    def handler(signum, frame) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGTERM, handler)
    try:
        owner = Owner()
        with pytest.raises(InterruptedError):
            owner.run(terminate)
        assert owner.saved == 1
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
