"""Tiny environments with known numbers, of the gymnasium API and of the old gym one."""

import gymnasium
import numpy as np
from gymnasium import spaces


class CountEnv(gymnasium.Env):
    """Observation: how many steps so far. Reward: the number of the step. Ends after `length`."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, length=5, action_space=None, obs_dtype=np.float32, render_mode=None):
        self.length = length
        self.observation_space = spaces.Box(0, 255, (2,), obs_dtype)
        self.action_space = action_space or spaces.Discrete(3)
        self.render_mode = render_mode
        self.seeds = []
        self.actions = []
        self.closed = 0
        self.t = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        self.actions.append(action)
        self.t += 1
        return self.observe(), float(self.t), self.t >= self.length, False, {}

    def render(self):
        return np.full((32, 48, 3), min(255, 20 * self.t), np.uint8)

    def close(self):
        self.closed += 1

    def observe(self):
        return np.full(2, self.t, self.observation_space.dtype)


class OldBox:
    def __init__(self, low, high, shape, dtype=np.float32):
        self.low = np.full(shape, low, dtype)
        self.high = np.full(shape, high, dtype)
        self.shape = shape
        self.dtype = np.dtype(dtype)


class OldDiscrete:
    def __init__(self, n):
        self.n = n


class OldMultiDiscrete:
    def __init__(self, nvec):
        self.nvec = np.array(nvec)


class OldDict:
    def __init__(self, **members):
        self.spaces = members


class OldEnv:
    """gym before 0.26: ``reset() -> obs``, ``step`` with four parts, ``seed``."""

    def __init__(self, length=3, time_limit=None, action_space=None):
        self.observation_space = OldBox(-10.0, 10.0, (2,), np.float64)
        self.action_space = action_space or OldDiscrete(2)
        self.length = length
        self.time_limit = time_limit
        self.rng = np.random.default_rng()
        self.seeds = []

    def seed(self, seed):
        self.seeds.append(seed)
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.t = 0
        return self.rng.uniform(-1, 1, 2)

    def step(self, action):
        self.t += 1
        info = {}
        done = self.t >= self.length
        if self.time_limit is not None and self.t >= self.time_limit:
            info["TimeLimit.truncated"] = not done
            done = True
        return self.rng.uniform(-1, 1, 2), 1.5, done, info

    def render(self, mode="human"):
        return np.zeros((32, 32, 3), np.uint8)
