"""Small tasks with the API of gymnasium: bits to be flipped, and a grid to be explored in depth."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ding.envs.env.ding_env_wrapper import DingEnvWrapper
from ding.envs.vector_step import Config
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import ENV_REGISTRY


class BitFlipTask(gymnasium.Env):
    """An action flips one of `n_bits` bits; the episode succeeds when they are those of the goal.

    From Andrychowicz et al. (2017), "Hindsight Experience Replay", section 3.1, with the reward 1
    at success and 0 else. It is truncated after `n_bits` steps. The observation is float32
    ``[2 * n_bits]``, the bits and then the goal's.
    """

    metadata = {"render_modes": []}

    def __init__(self, n_bits: int) -> None:
        self.n_bits = n_bits
        self.observation_space = spaces.Box(0.0, 1.0, (2 * n_bits,), np.float32)
        self.action_space = spaces.Discrete(n_bits)

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        both = self.np_random.integers(0, 2, (2, self.n_bits))
        if (both[0] == both[1]).all():  # there has to be something to do
            both[0, self.np_random.integers(self.n_bits)] ^= 1
        self._bits, self._goal = both
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._bits[action] ^= 1
        self._steps += 1
        success = bool((self._bits == self._goal).all())
        info = {"success": success}
        return self._obs(), float(success), success, self._steps >= self.n_bits, info

    def _obs(self) -> np.ndarray:
        return np.concatenate([self._bits, self._goal]).astype(np.float32)


@ENV_REGISTRY.register("bitflip")
class BitFlipEnv(DingEnvWrapper):
    """Bits to be flipped until they are those of the goal; see `BitFlipTask`.

    Config keys:
        n_bits: How many bits there are; also how many actions, and the limit of steps.

    The others are those of `DingEnvWrapper`.
    """

    config: Config = {**DingEnvWrapper.config, "n_bits": 4}

    def __init__(self, cfg: dict[str, Any]) -> None:
        cfg = {**self.config, **cfg}
        n_bits = cfg["n_bits"]
        if not isinstance(n_bits, int) or n_bits < 1:
            raise ConfigError(f"env.n_bits is {n_bits!r}; expected a number of bits, 1 or more")
        super().__init__(env=BitFlipTask(n_bits), cfg={**cfg, "env_id": f"bitflip-{n_bits}"})


class DeepSeaTask(gymnasium.Env):
    """A diver sinks through a grid, a row a step, and finds a treasure in the last column.

    From Osband et al. (2020), "Behaviour Suite for Reinforcement Learning". Action 1 moves to the
    right and costs ``0.01 / size``, action 0 moves to the left; the episode ends in the last row.
    The return is 0.99 if every move went right, and at most 0 otherwise. The observation is the
    cell, float32 one-hot ``[size * size]``.
    """

    metadata = {"render_modes": []}

    def __init__(self, size: int) -> None:
        self.size = size
        self.observation_space = spaces.Box(0.0, 1.0, (size * size,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._row = self._column = 0
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        right, last = int(action) == 1, self.size - 1
        reward = -0.01 / self.size if right else 0.0
        if right and self._row == self._column == last:
            reward += 1.0
        self._column = min(max(self._column + (1 if right else -1), 0), last)
        self._row += 1
        done = self._row == self.size
        return self._obs(), reward, done, False, {}

    def _obs(self) -> np.ndarray:
        obs = np.zeros(self.size * self.size, np.float32)
        if self._row < self.size:  # below the last row there is nothing to see
            obs[self._row * self.size + self._column] = 1.0
        return obs


@ENV_REGISTRY.register("deep_sea")
class DeepSeaEnv(DingEnvWrapper):
    """A grid in which reward is found by exploring in depth alone; see `DeepSeaTask`.

    Config keys:
        size: Rows and columns; also the steps of an episode.

    The others are those of `DingEnvWrapper`.
    """

    config: Config = {**DingEnvWrapper.config, "size": 10}

    def __init__(self, cfg: dict[str, Any]) -> None:
        cfg = {**self.config, **cfg}
        size = cfg["size"]
        if not isinstance(size, int) or size < 1:
            raise ConfigError(f"env.size is {size!r}; expected a number of rows, 1 or more")
        super().__init__(env=DeepSeaTask(size), cfg={**cfg, "env_id": f"deep_sea-{size}"})
