"""Checkpoints from DI-engine in whole runs."""

import pytest
import torch

import ding
from ding.entry import eval, serial_pipeline
from ding.utils.errors import CheckpointError
from tests.entry.runs import cartpole_config

MODEL = dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[8])
NAMES = {
    "encoder.init": (8, 4),
    "head.A.0.0": (8, 8),
    "head.A.1.0": (2, 8),
    "head.V.0.0": (8, 8),
    "head.V.1.0": (1, 8),
}


def configs(**hook):
    learn = dict(batch_size=8, update_per_collect=1, learner=dict(hook=hook))
    return cartpole_config(env=dict(max_episode_steps=20), collect=dict(n_sample=8), learn=learn)


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A policy that always goes left: every episode takes 8 to 12 steps."""
    monkeypatch.chdir(tmp_path)
    state = {}
    for name, shape in NAMES.items():
        state |= {f"{name}.weight": torch.zeros(shape), f"{name}.bias": torch.zeros(shape[0])}
    torch.save({"model": state, "target_model": state, "last_iter": 3, "last_step": 4}, "old.tar")
    return "old.tar"


def test_old_checkpoints_are_evaluated(old):
    assert 8 <= eval(configs(), seed=0, load_path=old) <= 12


def test_old_checkpoints_are_trained_on(old, caplog):
    cfg = configs(load_ckpt_before_run=old, save_ckpt_after_run=True)
    serial_pipeline(cfg, seed=0, max_train_iter=5)
    assert "the optimizer starts from scratch" in caplog.text
    state = torch.load("run/ckpt/iteration_5.pth.tar", weights_only=True)
    assert state["last_iter"] == 5
    assert state["model"].keys() == {f"{n}.{k}" for n in NAMES for k in ("weight", "bias")}


def test_a_checkpoint_of_something_else_is_refused_in_one_message(old):
    main, create = configs()
    main["policy"]["model"]["dueling"] = False
    with pytest.raises(CheckpointError, match=r"old\.tar.*head\.Q\.0\.0"):
        eval((main, create), seed=0, load_path=old)


def bdq_and_iqn():
    """A policy that goes right in its old form, and left in ours."""
    state = {}
    for part in ("head.V", "head.branches.0"):
        state |= {f"{part}.0.0.weight": torch.eye(4), f"{part}.0.0.bias": torch.zeros(4)}
    encoder = {"encoder.init.weight": torch.zeros(4, 4), "encoder.init.bias": torch.ones(4)}
    # Left is worth 1 of each unit, right 2.5: in the old form the units are half as large.
    branch = {
        "head.branches.0.1.0.weight": torch.tensor([[1.0] * 4, [0.0] * 4]),
        "head.branches.0.1.0.bias": torch.tensor([0.0, 2.5]),
        "head.V.1.0.weight": torch.zeros(1, 4),
        "head.V.1.0.bias": torch.zeros(1),
    }
    model = dict(num_branches=1, action_bins_per_branch=2, layer_num=1)
    yield "bdq", {**encoder, **state, **branch}, model
    # cos(π i τ) is 1 for i = 0 alone, and as often above as below 0 for others.
    yield (
        "iqn",
        {
            **encoder,
            "head.iqn_fc.weight": torch.tensor([[1.0, 0.0]] * 4),
            "head.iqn_fc.bias": torch.zeros(4),
            "head.Q.0.0.weight": torch.eye(4),
            "head.Q.0.0.bias": torch.zeros(4),
            "head.Q.1.0.weight": torch.tensor([[1.0] * 4, [0.0] * 4]),
            "head.Q.1.0.bias": torch.tensor([0.0, 2.5]),
        },
        dict(action_shape=2, quantile_embedding_size=2),
    )


@pytest.mark.parametrize(("kind", "state", "model"), list(bdq_and_iqn()), ids=["bdq", "iqn"])
def test_old_forms_act_as_they_did(tmp_path, monkeypatch, kind, state, model):
    monkeypatch.chdir(tmp_path)
    torch.save({"model": state, "target_model": state}, "old.tar")
    main, create = configs(load_ckpt_before_run="old.tar", save_ckpt_after_run=True)
    main["policy"]["model"] = dict(obs_shape=4, encoder_hidden_size_list=[4], **model)
    main["policy"]["learn"]["learning_rate"] = 1e-30
    create["policy"]["type"] = kind
    serial_pipeline((main, create), seed=0, max_train_iter=1)
    obs = torch.zeros(4)
    for checkpoint in ("old.tar", "run/ckpt/iteration_1.pth.tar"):
        assert ding.load("run", checkpoint).act(obs) == 1
    # Each episode that always goes the same way has as many steps.
    assert eval((main, create), seed=0, load_path="old.tar") == pytest.approx(9.5, abs=1.5)
