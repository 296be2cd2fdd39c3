"""A user's environment, typed as a strict project types it."""

from typing import Any

import gymnasium as gym
import numpy as np
from easydict import EasyDict

from ding.envs import BaseEnv, BaseEnvTimestep
from ding.utils import ENV_REGISTRY


@ENV_REGISTRY.register("typed_walk")
class WalkEnv(BaseEnv):
    """Walk right ten times within thirty steps; each step to the right is worth 1."""

    def __init__(self, cfg: EasyDict) -> None:
        self._cfg = cfg
        self._place = self._steps = 0
        self._total = 0.0
        self._observation_space = gym.spaces.Box(0.0, 10.0, (1,), np.float32)
        self._action_space = gym.spaces.Discrete(2)
        self._reward_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)

    def reset(self) -> np.ndarray:
        self._place, self._steps, self._total = 0, 0, 0.0
        return self._observation()

    def step(self, action: Any) -> BaseEnvTimestep:
        is_right = int(np.asarray(action).item()) == 1
        self._place += is_right
        self._steps += 1
        self._total += is_right
        arrived = self._place >= 10
        done = arrived or self._steps >= 30
        info = {"eval_episode_return": self._total, "truncated": not arrived} if done else {}
        return BaseEnvTimestep(self._observation(), float(is_right), done, info)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        np.random.seed(seed)

    def close(self) -> None:
        pass

    def _observation(self) -> np.ndarray:
        return np.array([self._place], dtype=np.float32)

    @property
    def observation_space(self) -> gym.spaces.Space[Any]:
        return self._observation_space

    @property
    def action_space(self) -> gym.spaces.Space[Any]:
        return self._action_space

    @property
    def reward_space(self) -> gym.spaces.Space[Any]:
        return self._reward_space

    def __repr__(self) -> str:
        return "WalkEnv()"
