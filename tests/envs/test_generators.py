"""Random generators of environments go on where they were, wherever the environments run."""

import random

import gymnasium
import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.envs import BaseEnv, BaseEnvTimestep, DingEnvWrapper, create_env_manager
from ding.envs.seeds import generator_states, load_generator_states


class OwnRandom(BaseEnv):
    """Seeded once; each observation is drawn from the generator that ``kind`` names."""

    def __init__(self, kind):
        self.kind = kind
        self.observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.reward_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self._rng = np.random.default_rng(5)
        self.old = np.random.RandomState(5)
        self.python = random.Random(5)
        self.torch = torch.Generator().manual_seed(5)

    def seed(self, seed, dynamic_seed=True):
        self.first_seed = seed

    def _draw(self):
        if self.kind == "numpy":
            return self._rng.random()
        if self.kind == "old":
            return self.old.rand()
        if self.kind == "python":
            return self.python.random()
        if self.kind == "torch":
            return float(torch.rand(1, generator=self.torch))
        return np.random.rand() + random.random() / 2  # the process's own

    def reset(self):
        return np.array([self._draw()])

    def step(self, action):
        return BaseEnvTimestep(self.reset(), np.zeros(1, np.float32), False, {})

    def close(self):
        pass


class Inner(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([self.np_random.random()]), {}

    def step(self, action):
        return np.array([self.np_random.random()]), 0.0, False, False, {}


class Noisy(gymnasium.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.noise = np.random.default_rng(1)

    def step(self, action):
        obs, *rest = self.env.step(action)
        return obs + self.noise.random(), *rest


def play(manager, steps=5):
    seen = []
    for _ in range(steps):
        manager.step({i: np.array([0]) for i in manager.ready_obs})
        seen += [manager.ready_obs[i].copy() for i in sorted(manager.ready_obs)]
    return seen


def made(kind, make):
    manager = create_env_manager(EasyDict(type=kind), [make] * 3)
    manager.seed(0)
    manager.launch()
    return manager


def assert_goes_on(kind, make):
    manager = made(kind, make)
    play(manager)
    state = manager.state_dict()
    manager.reset()
    expected = play(manager)
    manager.close()
    other = made(kind, make)
    other.load_state_dict(state)
    assert np.array_equal(play(other), expected)
    other.close()


@pytest.mark.parametrize("kind", ["numpy", "old", "python", "torch"])
@pytest.mark.parametrize("manager", ["base", "subprocess", "gym_vector"])
def test_generators_go_on(manager, kind):
    if manager == "gym_vector" and kind != "numpy":
        kind = "torch"
    assert_goes_on(manager, lambda: OwnRandom(kind))


def test_generators_of_worker_processes_go_on():
    assert_goes_on("subprocess", lambda: OwnRandom("process"))


@pytest.mark.parametrize("manager", ["base", "subprocess"])
def test_generators_of_wrapped_environments_go_on(manager):
    assert_goes_on(manager, lambda: DingEnvWrapper(Noisy(Inner())))


def test_generator_that_two_share_is_found_once():
    env = Noisy(Inner())
    env.unwrapped.noise = env.noise
    states = generator_states(env)
    assert len(states) == 1
    before = env.noise.random(3)
    load_generator_states(env, states)
    assert np.array_equal(env.noise.random(3), before)


def test_environments_that_refer_to_each_other_are_gone_through():
    env = Noisy(Inner())
    env.unwrapped.env = env
    assert list(generator_states(env)) == [".noise"]
