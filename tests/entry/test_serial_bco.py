"""Cloning an expert from its observations."""

import json

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.entry import serial_pipeline_bco
from ding.entry.serial_entry_bco import InverseDynamics
from ding.reward_model import Shapes
from ding.utils.errors import ConfigError
from tests.entry.test_serial_dqfd import CREATE, ENV

BCO = dict(learn=dict(idm_train_epoch=2), model=dict(idm_encoder_hidden_size_list=[8]), alpha=0.5)


def config(folder, type_="bc", **collect):
    policy = dict(
        expert_random_collect_size=40,
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16]),
        learn=dict(batch_size=20, train_epoch=2),
        collect=dict(n_sample=16, **({"model_path": "zoo:cartpole_ppo"} | collect)),
    )
    main = EasyDict(exp_name=str(folder), env=ENV, policy=policy, bco=BCO)
    return main, EasyDict(CREATE, policy=dict(type=type_))


def model(discrete):
    torch.manual_seed(0)
    np.random.seed(0)
    return InverseDynamics(InverseDynamics.default_config(), Shapes(2, 2, discrete), "cpu")


def test_losses_by_hand():
    predicted = torch.log(torch.tensor([[0.2, 0.8], [0.5, 0.5]]))
    loss = model(True)._loss(predicted, np.array([[1], [0]]))
    assert loss.item() == pytest.approx(-(np.log(0.8) + np.log(0.5)) / 2)
    predicted = torch.atanh(torch.tensor([[0.5, 0.0]]))
    loss = model(False)._loss(predicted, np.array([[0.25, 0.5]], np.float32))
    assert loss.item() == pytest.approx((0.25**2 + 0.5**2) / 2)


@pytest.mark.parametrize("discrete", [True, False])
def test_labels_are_what_leads_to_the_next_observation(discrete, learned):
    mine, rng = model(discrete), np.random.default_rng(learned.seed)
    torch.manual_seed(learned.seed)
    obs = rng.normal(size=(500, 2)).astype(np.float32)
    action = rng.integers(2, size=(500, 1)) if discrete else rng.uniform(-0.9, 0.9, (500, 2))
    next_obs = (obs + 2 * action - 1).astype(np.float32)
    mine.collected({"obs": obs, "next_obs": next_obs, "action": action}, np.array([500]))
    for _ in range(10):
        mine.train(0, 0)
    found = mine.label(obs, next_obs)
    assert found.shape == action.shape
    learned.at_most(float(np.abs(found - action).mean()), 0.1, "mean error of the labels")


def test_trains_after_random_steps(tmp_path):
    serial_pipeline_bco(config(tmp_path / "run"), max_train_iter=8)
    end = json.loads((tmp_path / "run" / "run.json").read_text())
    assert end["train_iter"] == 8  # two epochs of two batches in each of two rounds
    assert end["envstep"] >= 64  # 32 random ones, and 16 in each round
    assert "unknown_keys" not in end
    assert "reward_model_iter/loss" in (tmp_path / "run" / "metrics.jsonl").read_text()


def test_episodes(tmp_path):
    """Four random ones, and two in the round."""
    main, create = config(tmp_path / "run")
    del main.policy.collect["n_sample"]
    main.policy.collect.n_episode = 2
    serial_pipeline_bco((main, EasyDict(create, collector=dict(type="episode"))), max_train_iter=1)
    end = json.loads((tmp_path / "run" / "run.json").read_text())
    assert end["train_iter"] >= 1


def test_other_settings_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="trains 'bc'"):
        serial_pipeline_bco(config(tmp_path / "run", "dqn"))
    main, create = config(tmp_path / "run")
    main.bco = dict(alpha=0)
    with pytest.raises(ConfigError, match=r"bco\.alpha is 0"):
        serial_pipeline_bco((main, create))
