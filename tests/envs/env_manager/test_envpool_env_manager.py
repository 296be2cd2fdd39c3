"""The manager over envpool, with a stand-in that answers as envpool does."""

import sys

import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import PoolEnvManager, create_env_manager
from ding.utils.errors import ConfigError, EnvError
from tests.envs.env_manager import fake_envpool


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", fake_envpool.module())


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_episodes_in_turn(pool, batch_size):
    manager = PoolEnvManager(
        dict(env_id="Count-v0", env_num=3, batch_size=batch_size, episode_num=2)
    )
    manager.seed(5)
    manager.launch()
    # A batch that two environments do not fill is waited for with the first actions.
    assert len(manager.ready_obs) == (2 if batch_size == 2 else 3)
    returns = {0: [], 1: [], 2: []}
    count = dict.fromkeys(returns, 0)
    for _ in range(100):
        for env_id, step in manager.step({i: np.array([1]) for i in manager.ready_obs_id}).items():
            assert step.obs[1] == count[env_id] + 1
            count[env_id] = 0 if step.done else step.obs[1]
            assert step.reward.shape == (1,)
            assert step.reward[0] == step.obs[1]
            if step.done:
                assert step.info["truncated"] is (env_id == 1)
                returns[env_id].append(step.info["eval_episode_return"])
        if manager.done:
            break
    first = {env_id: found[-1] for env_id, found in returns.items()}
    assert first == {0: 1 + 2, 1: 1 + 2 + 3, 2: 1 + 2 + 3 + 4}
    assert all(len(found) == 2 for found in returns.values())
    manager.reset()
    assert manager.ready_obs
    assert not manager.done
    manager.close()
    assert manager.closed


def test_columns_and_the_factory(pool):
    cfg = EasyDict(type="env_pool", env_id="Count-v0")
    manager = create_env_manager(cfg, [None] * 2)
    manager.launch()
    assert manager.supports_columns
    assert manager.in_lockstep
    played = []
    for _ in range(20):
        ids, obs = manager.ready_columns()
        before = obs[:, 1].copy()
        step = manager.step_columns(np.zeros(len(ids), np.int64), ids)
        assert step.env_ids.tolist() == ids.tolist()
        np.testing.assert_array_equal(step.obs[:, 1], before + 1)
        np.testing.assert_array_equal(step.truncated, step.done & (ids == 1))
        played += [info["eval_episode_return"] for info in step.infos.values()]
    assert set(played) == {3.0, 6.0}
    manager.reset()
    ids, _ = manager.ready_columns()
    step = manager.step_columns(np.zeros(1, np.int64), ids[1:])  # the other is stepped unasked
    assert step.env_ids.tolist() == [1]
    with pytest.raises(EnvError, match="cannot be reset alone"):
        manager.reset({0: None})
    manager.close()


def test_a_pool_of_one(pool):
    manager = PoolEnvManager(EasyDict(env_id="Count-v0", env_num=1, batch_size=1))
    manager.launch()
    for _ in range(6):
        assert manager.ready_obs_id == [0]
        manager.step({0: np.array([1])})
    manager.close()


def test_errors(monkeypatch, pool):
    with pytest.raises(ConfigError, match="env_id"):
        PoolEnvManager({})
    with pytest.raises(ConfigError, match="batch_size"):
        PoolEnvManager(dict(env_id="Count-v0", env_num=2, batch_size=3))
    manager = PoolEnvManager(dict(env_id="Count-v0", env_num=2, batch_size=2))
    with pytest.raises(EnvError, match="launch"):
        manager.step({})
    with pytest.raises(EnvError, match=r"env.manager.env_id='NoSuch-v0'.*NoSuch"):
        PoolEnvManager(dict(env_id="NoSuch-v0", env_num=2, batch_size=2)).launch()
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(EnvError, match=r"ding\[envpool\]"):
        manager.launch()
