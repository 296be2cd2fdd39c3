"""Environments that answer when they are ready, perhaps to an earlier action."""

import time

import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import create_env_manager
from ding.worker import (
    EpisodeSerialCollector,
    InteractionSerialEvaluator,
    SampleSerialCollector,
)
from tests.fakes import LineEnv, RowPolicy, StepPolicy


class UnevenEnv(LineEnv):
    """Takes longer the higher its number is."""

    def step(self, action):
        time.sleep(0.004 * self._cfg.number)
        return super().step(action)


@pytest.fixture
def envs():
    def make(number):
        return lambda: UnevenEnv({"number": number})

    cfg = EasyDict(type="async_subprocess", wait_num=1)
    manager = create_env_manager(cfg, [make(i) for i in range(4)])
    yield manager
    manager.close()


def build(kind, envs, policy, mode, **cfg):
    config = kind.default_config()
    config.update(cfg)
    return kind(config, envs, getattr(policy, mode), exp_name="exp")


def assert_paired(rows):
    for row in rows:
        obs, following = np.asarray(row["obs"]), np.asarray(row["next_obs"])
        assert obs[0] == following[0]
        assert following[1] == obs[1] + 1
        assert int(row["action"]) == int(obs[1] % 2)


@pytest.mark.parametrize("policy", [StepPolicy, RowPolicy])
def test_samples_pair_what_belongs_together(envs, policy):
    collector = build(SampleSerialCollector, envs, policy(), "collect_mode")
    for _ in range(8):
        rows = collector.collect(n_sample=8)
        assert len(rows) == 8
        assert_paired(rows)
        if policy is StepPolicy:
            collector.reset_policy()  # actions are under way
    collector.close()


def test_episodes_are_whole(envs):
    collector = build(EpisodeSerialCollector, envs, StepPolicy(), "collect_mode")
    for _ in range(3):
        episodes = collector.collect(n_episode=3)
        assert [len(episode) for episode in episodes] == [5, 5, 5]
        for episode in episodes:
            assert_paired(episode)
    collector.close()


def test_evaluation_counts_each_environments_share(envs):
    evaluator = build(
        InteractionSerialEvaluator, envs, StepPolicy(), "eval_mode", n_episode=8, stop_value=1e9
    )
    rows = []
    evaluator.on_episode = lambda *row: rows.append(row)
    for train_iter in (0, 1):
        _, info = evaluator.eval(None, train_iter)
        assert info["eval_episode_return"] == [15.0] * 8
    assert sorted(row[1] for row in rows[:8]) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert {row[3] for row in rows} == {5}
    evaluator.close()
