"""Environments of old gym, whose spaces can be neither copied nor pickled once they are seeded."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.envs import BaseEnv, BaseEnvTimestep, DingEnvWrapper, create_env_manager
from ding.policy import PolicyFactory
from ding.worker import SampleSerialCollector
from tests.fakes import StepPolicy


class OldGenerator:
    """As gym 0.25's: a subclass of numpy's generator that newer numpy cannot rebuild."""

    def __reduce__(self):
        raise TypeError("RandomNumberGenerator._generator_ctor() takes from 0 to 1 arguments")

    def __deepcopy__(self, memo):
        self.__reduce__()


class OldSpace:
    def __init__(self):
        self.np_random = OldGenerator()


class Discrete(OldSpace):
    shape, dtype, n = (), np.dtype(np.int64), 2

    def sample(self):
        return np.random.randint(2)


class Box(OldSpace):
    low, high = np.full(2, -9.0, np.float32), np.full(2, 9.0, np.float32)
    shape, dtype = (2,), np.dtype(np.float32)


class OldGame:
    """gym before 0.26: four values, or five and an info, by `fields`."""

    def __init__(self, fields):
        self.fields, self.observation_space, self.action_space = fields, Box(), Discrete()

    def reset(self, seed=None, **kwargs):
        self.t = 0
        obs = np.zeros(2, np.float32)
        return obs if self.fields == 4 else (obs, {})

    def step(self, action):
        self.t += 1
        obs = np.array([0, self.t], np.float32)
        ends = [self.t == 3] if self.fields == 4 else [self.t == 3, False]
        return obs, 1.0, *ends, {}

    def close(self):
        pass


class UserEnv(BaseEnv):
    """Hands out the spaces of the game that it holds."""

    def __init__(self, fields):
        self._env = OldGame(fields)
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space
        self.reward_space = Box()

    def seed(self, seed, dynamic_seed=True):
        pass

    def reset(self):
        obs = self._env.reset()
        return obs if self._env.fields == 4 else obs[0]

    def step(self, action):
        obs, reward, *ends, info = self._env.step(int(action))
        done = any(ends)
        info = {"eval_episode_return": 3.0} if done else info
        return BaseEnvTimestep(obs, np.array([reward], np.float32), done, info)

    def close(self):
        pass


MAKERS = {"user": UserEnv, "wrapped": lambda fields: DingEnvWrapper(OldGame(fields))}


def test_the_stand_in_is_as_bad():
    with pytest.raises(TypeError, match="_generator_ctor"):
        copy.deepcopy(Discrete())
    with pytest.raises(TypeError, match="_generator_ctor"):
        pickle.dumps(Box())


@pytest.mark.parametrize("fields", [4, 5])
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("kind", ["base", "subprocess", "async_subprocess", "gym_vector"])
def test_they_run_in_every_manager_and_at_random(kind, maker, fields, tmp_path):
    env = create_env_manager(EasyDict(type=kind), [partial(MAKERS[maker], fields)] * 2)
    collector = SampleSerialCollector(
        SampleSerialCollector.default_config(),
        env,
        StepPolicy().collect_mode,
        exp_name=str(tmp_path),
    )
    assert env.action_space == spaces.Discrete(2)
    assert len(collector.collect(n_sample=8)) == 8
    mode = PolicyFactory.get_random_policy(StepPolicy().collect_mode, env.action_space)
    collector.reset_policy(mode)
    assert len(collector.collect(n_sample=8)) == 8
    collector.close()


def test_a_random_policy_of_an_old_space():
    mode = PolicyFactory.get_random_policy(StepPolicy().collect_mode, Discrete())
    assert int(mode.forward({0: np.zeros(2)})[0]["action"]) in (0, 1)
