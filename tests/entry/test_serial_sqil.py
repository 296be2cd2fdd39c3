"""Imitation by Q-learning with constant rewards (SQIL)."""

import json

import numpy as np
import pytest
import torch
from easydict import EasyDict
from torch import nn

from ding.data import Columns
from ding.entry import serial_pipeline_sqil
from ding.entry.run.serial import SerialRun
from ding.utils import save_file
from ding.utils.errors import ConfigError
from tests.entry.runs import WalkEnv
from tests.entry.test_serial_dqfd import CREATE, ENV, Leaning, with_expert


def configs(folder, type_="dqn", **policy):
    small = dict(
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16]),
        nstep=3,
        expert_random_collect_size=40,
        learn={**dict(batch_size=8, update_per_collect=2), **policy.pop("learn", {})},
        collect=dict(n_sample=8, **policy.pop("collect", {})),
    )
    return with_expert(folder, type_, {**small, **policy})


@pytest.fixture
def batches(monkeypatch):
    """The rewards of all batches that were learned from."""
    seen, learn = [], SerialRun.learn

    def spy(self, batch):
        seen.append(np.asarray(batch.columns["reward"]))
        learn(self, batch)

    monkeypatch.setattr(SerialRun, "learn", spy)
    return seen


def run(folder, max_train_iter, **policy):
    main, expert = configs(folder, **policy)
    serial_pipeline_sqil(main, expert, expert_model=Leaning(), max_train_iter=max_train_iter)
    return json.loads((folder / "run.json").read_text())


def test_a_naive_buffer_is_replaced(tmp_path, batches):
    main, expert = configs(tmp_path / "run")
    main[1].replay_buffer = dict(type="naive")
    serial_pipeline_sqil(main, expert, expert_model=Leaning(), max_train_iter=2)
    assert {0.0, 1.0} <= set(np.unique(batches))
    end = json.loads((tmp_path / "run" / "run.json").read_text())
    assert any("demonstrations need 'advanced'" in line for line in end["adapted"])


def test_half_of_each_batch_is_rewarded(tmp_path, batches):
    run(tmp_path / "run", 8)
    assert len(batches) == 8
    for reward in batches:
        assert reward.shape == (8, 3)
        assert (reward[4:] == 0).all()
        assert (reward[:4, 0] == 1).all()


def test_steps_after_an_episodes_end_are_not_rewarded(tmp_path, batches):
    """A sample of three steps that ends after k of them has k rewards of 1."""
    rows = [step(i, done=i == 3) for i in range(4)]
    path = str(tmp_path / "episode.pkl")
    save_file(path, rows)
    run(tmp_path / "run", 12, collect=dict(data_path=path), learn=dict(batch_size=4))
    found = {tuple(row) for reward in batches for row in reward[:2]}
    assert found == {(1, 1, 1), (1, 1, 0), (1, 0, 0)}


def step(i, done=False, **other):
    row = {"obs": np.full(4, i, np.float32), "next_obs": np.full(4, i + 1, np.float32)}
    return {**row, "action": np.array([i % 2]), "reward": np.array([7.0]), "done": done, **other}


class RepeatedWalkEnv(WalkEnv):
    """Every episode is the same: it does not matter that a resumed run begins with new ones."""

    def reset(self):
        self._rng = np.random.default_rng(0)
        return super().reset()


class Ones(nn.Module):
    """Takes action 1, the one that is rewarded."""

    def forward(self, x):
        return {"logit": torch.tensor([[0.0, 1.0]]).expand(len(x), 2)}


def test_an_expert_of_the_zoo_brings_its_config(tmp_path, batches):
    main, _ = configs(tmp_path / "run", collect=dict(model_path="zoo:cartpole_ppo"))
    serial_pipeline_sqil(main, max_train_iter=2)
    assert len(batches) == 2
    script = (tmp_path / "run" / "formatted_total_config.py").read_text()
    assert "serial_pipeline_sqil([main_config" in script  # runs the same again
    checkpoint = tmp_path / "a.pth.tar"
    main, _ = configs(tmp_path / "other", collect=dict(model_path=str(checkpoint)))
    with pytest.raises(ConfigError, match="does not exist: train the expert first"):
        serial_pipeline_sqil(main)
    checkpoint.touch()
    with pytest.raises(ConfigError, match="pass expert_cfg"):
        serial_pipeline_sqil(main)


def test_sac_imitates(tmp_path):
    env = dict(ENV, env_id="Pendulum-v1", act_scale=True)
    path = str(tmp_path / "demonstrations.pkl")
    obs = np.random.default_rng(0).normal(size=(41, 3)).astype(np.float32)
    columns = {"obs": obs[:-1], "next_obs": obs[1:], "done": np.zeros(40, bool)}
    columns["action"] = np.zeros((40, 1), np.float32)
    save_file(path, list(Columns(columns)))
    policy = dict(
        expert_random_collect_size=40,
        random_collect_size=8,
        model=dict(obs_shape=3, action_shape=1),
        learn=dict(batch_size=8),
        collect=dict(n_sample=8, data_path=path),
    )
    main = EasyDict(exp_name=str(tmp_path / "run"), env=env, policy=policy)
    serial_pipeline_sqil((main, EasyDict(CREATE, policy=dict(type="sqil_sac"))), max_train_iter=2)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["train_iter"] == 2
