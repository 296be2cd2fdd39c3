"""The manager over envpool, with a stand-in that answers as envpool does."""

import sys
import types
from collections import deque

import numpy as np
import pytest
from gymnasium import spaces

from ding.envs import PoolEnvManager
from ding.utils.errors import ConfigError, EnvError


class FakePool:
    """Environments that count their steps, of 2, 3, ... steps; the step after an end resets."""

    observation_space = spaces.Box(-9, 9, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, task_id, env_type, num_envs, batch_size, seed=None, **kwargs):
        assert env_type == "gymnasium"
        self.num, self.batch, self.seed, self.kwargs = num_envs, batch_size, seed, kwargs
        self.answers = deque()

    def async_reset(self):
        self.t = np.zeros(self.num, int)
        self.ended = np.zeros(self.num, bool)
        self.answers.clear()
        for i in range(self.num):
            self.answers.append((i, 0, 0.0, False))

    def send(self, actions, ids):
        assert actions.shape == (len(ids),)
        assert actions.dtype == np.int64
        for i in ids.tolist():
            if self.ended[i]:
                self.t[i], self.ended[i] = 0, False
                self.answers.append((i, 0, 0.0, False))
            else:
                self.t[i] += 1
                self.ended[i] = self.t[i] == i + 2
                self.answers.append((i, self.t[i], float(self.t[i]), self.ended[i]))

    def recv(self):
        got = [self.answers.popleft() for _ in range(min(self.batch, len(self.answers)))]
        assert got
        ids, t, reward, done = map(np.array, zip(*got))
        obs = np.stack([ids, t], 1).astype(np.float32)
        return obs, reward, done, np.zeros(len(ids), bool), {"env_id": ids}


@pytest.fixture
def pool(monkeypatch):
    module = types.ModuleType("envpool")
    module.make = FakePool
    monkeypatch.setitem(sys.modules, "envpool", module)


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_episodes_in_turn(pool, batch_size):
    manager = PoolEnvManager(
        dict(env_id="Count-v0", env_num=3, batch_size=batch_size, episode_num=2)
    )
    manager.seed(5)
    manager.launch()
    assert set(manager.ready_obs) == {0, 1, 2}
    returns = {0: [], 1: [], 2: []}
    for _ in range(100):
        for env_id, step in manager.step({i: np.array([1]) for i in manager.ready_obs_id}).items():
            assert step.obs[0] == env_id
            assert step.reward.shape == (1,)
            assert step.reward[0] == step.obs[1]
            if step.done:
                returns[env_id].append(step.info["eval_episode_return"])
        if manager.done:
            break
    # 1 + 2, 1 + 2 + 3, 1 + 2 + 3 + 4; what ends first may go on for a while
    assert {env_id: set(found) for env_id, found in returns.items()} == {0: {3}, 1: {6}, 2: {10}}
    assert min(map(len, returns.values())) == 2
    manager.reset()
    assert not manager.done
    manager.close()
    assert manager.closed


def test_errors(monkeypatch, pool):
    with pytest.raises(ConfigError, match="env_id"):
        PoolEnvManager({})
    with pytest.raises(ConfigError, match="batch_size"):
        PoolEnvManager(dict(env_id="Count-v0", env_num=2, batch_size=3))
    manager = PoolEnvManager(dict(env_id="Count-v0", env_num=2, batch_size=2))
    with pytest.raises(EnvError, match="launch"):
        manager.step({})
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(EnvError, match="pip install envpool"):
        manager.launch()
