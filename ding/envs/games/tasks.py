"""Small tasks with the API of gymnasium: bits to flip, a grid to explore, a vehicle to steer."""

from collections.abc import Mapping
from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from ding.envs.env.ding_env_wrapper import DingEnvWrapper
from ding.envs.vector_step import EnvReset, EnvStep, Space
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import ENV_REGISTRY
from ding.utils.types import Config


class _SizedTask(DingEnvWrapper):
    """A task of this module that one key of the config determines."""

    task: ClassVar[type["BitFlipTask | DeepSeaTask"]]
    name: ClassVar[str]
    size: ClassVar[str]  # the key
    unit: ClassVar[str]

    def __init__(self, cfg: Config) -> None:
        cfg = {**self.config, **cfg}
        size = cfg[self.size]
        if not isinstance(size, int) or size < 1:
            raise ConfigError(
                f"env.{self.size} is {size!r}; expected a number of {self.unit}, 1 or more"
            )
        super().__init__(env=self.task(size), cfg={**cfg, "env_id": f"{self.name}-{size}"})


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

    def reset(self, *, seed: int | None = None, options: Config | None = None) -> EnvReset:
        super().reset(seed=seed)
        self._steps = 0
        both = self.np_random.integers(0, 2, (2, self.n_bits))
        if (both[0] == both[1]).all():  # there has to be something to do
            both[0, self.np_random.integers(self.n_bits)] ^= 1
        self._bits, self._goal = both
        return self._obs(), {}

    def step(self, action: int) -> EnvStep:
        self._bits[action] ^= 1
        self._steps += 1
        success = bool((self._bits == self._goal).all())
        info = {"success": success}
        return self._obs(), float(success), success, self._steps >= self.n_bits, info

    def _obs(self) -> np.ndarray:
        return np.concatenate([self._bits, self._goal]).astype(np.float32)


@ENV_REGISTRY.register("bitflip")
class BitFlipEnv(_SizedTask):
    """Bits to be flipped until they are those of the goal; see `BitFlipTask`.

    Config keys:
        n_bits: How many bits there are; also how many actions, and the limit of steps.

    The others are those of `DingEnvWrapper`.
    """

    config: Config = {**DingEnvWrapper.config, "n_bits": 4}
    task, name, size, unit = BitFlipTask, "bitflip", "n_bits", "bits"


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

    def reset(self, *, seed: int | None = None, options: Config | None = None) -> EnvReset:
        super().reset(seed=seed)
        self._row = self._column = 0
        return self._obs(), {}

    def step(self, action: int) -> EnvStep:
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
class DeepSeaEnv(_SizedTask):
    """A grid in which reward is found by exploring in depth alone; see `DeepSeaTask`.

    Config keys:
        size: Rows and columns; also the steps of an episode.

    The others are those of `DingEnvWrapper`.
    """

    config: Config = {**DingEnvWrapper.config, "size": 10}
    task, name, size, unit = DeepSeaTask, "deep_sea", "size", "rows"


# ---- parametrised actions: what to do, and how much of it ----------------------------------------

_TARGET_RADIUS = 0.1
_STEP = 0.1  # way per step at full speed, or of one actuator at full power
_TURN = np.pi / 2
_THRUST = 0.5  # change of speed, at most 1, by one full acceleration
_BRAKE = 0.5
_EFFORT = 0.001  # what a step costs
_MAX_STEPS = 200
_ACCELERATE, _TURN_TO, _STOP = range(3)


class MovingTask(gymnasium.Env):
    """A vehicle on the square ``[-1, 1]²`` is to stop inside a target of radius 0.1.

    An action has a type and an argument for each type but the last: accelerate (0 to 1), turn
    (-1 to 1, a quarter of a circle at most), brake. It is a dict ``{'action_type': int,
    'action_args': float32 [2]}``; arguments of other types than the one chosen do nothing.

    The observation is float32 ``[10]``: position (x, y), velocity (x, y), heading (cosine, sine),
    the vector to the target (x, y), whether it is in the target, and the share of steps used.

    A step is rewarded by how much closer it came, less 0.001. Stopping in the target adds 1 and
    leaving the square takes 1, and both end the episode; it is truncated after 200 steps.
    """

    metadata = {"render_modes": []}

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-3.0, 3.0, (10,), np.float32)
        low, high = np.array([0, -1], np.float32), np.array([1, 1], np.float32)
        self.action_space: Space = _parametrised(3, low, high)

    def reset(self, *, seed: int | None = None, options: Config | None = None) -> EnvReset:
        super().reset(seed=seed)
        self._position = self.np_random.uniform(-1, 1, 2)
        self._target = self.np_random.uniform(-1, 1, 2)
        self._angle = self.np_random.uniform(-np.pi, np.pi)
        self._velocity = np.zeros(2)
        self._steps = 0
        return self._obs(), {}

    def step(self, action: Mapping[str, np.ndarray]) -> EnvStep:
        before = self._distance()
        self._move(int(action["action_type"]), np.asarray(action["action_args"], np.float64))
        self._position = self._position + _STEP * self._velocity
        self._steps += 1
        reward = before - self._distance() - _EFFORT
        reached = self._distance() <= _TARGET_RADIUS and not self._velocity.any()
        left = bool(np.abs(self._position).max() > 1)
        reward += float(reached) - float(left)
        terminated = reached or left
        return self._obs(), reward, terminated, self._steps >= _MAX_STEPS, {}

    def _move(self, kind: int, args: np.ndarray) -> None:
        """Change heading and velocity; here the velocity has the direction of the heading."""
        speed = float(np.hypot(*self._velocity))
        if kind == _ACCELERATE:
            speed = min(1.0, speed + _THRUST * args[0])
        elif kind == _TURN_TO:
            self._angle += _TURN * args[1]
        else:
            speed = max(0.0, speed - _BRAKE)
        self._velocity = speed * self._heading()

    def _heading(self) -> np.ndarray:
        return np.array([np.cos(self._angle), np.sin(self._angle)])

    def _distance(self) -> float:
        return float(np.hypot(*(self._target - self._position)))

    def _obs(self) -> np.ndarray:
        inside = self._distance() <= _TARGET_RADIUS
        parts = self._position, self._velocity, self._heading(), self._target - self._position
        return np.array([*np.concatenate(parts), inside, self._steps / _MAX_STEPS], np.float32)


class SlidingTask(MovingTask):
    """`MovingTask` on ice: turning changes where a thrust pushes, not where it goes."""

    def _move(self, kind: int, args: np.ndarray) -> None:
        if kind == _ACCELERATE:
            self._velocity = self._velocity + _THRUST * args[0] * self._heading()
            self._velocity /= max(1.0, np.hypot(*self._velocity))
        elif kind == _TURN_TO:
            self._angle += _TURN * args[1]
        else:
            speed = float(np.hypot(*self._velocity))
            self._velocity = self._velocity * (max(0.0, speed - _BRAKE) / max(speed, 1e-12))


class HardMoveTask(MovingTask):
    """`MovingTask` with `num_actuators` fixed pushers in place of thrust and wheel.

    The type says which of them work, a bit each; the arguments, -1 to 1, how much each one pushes.
    The pushers point to all sides evenly, and nothing moves without a force: it is enough to be in
    the target.
    """

    def __init__(self, num_actuators: int = 4) -> None:
        super().__init__()
        limit = np.ones(num_actuators, np.float32)
        self.action_space = _parametrised(2**num_actuators, -limit, limit)
        angles = np.arange(num_actuators) * (2 * np.pi / num_actuators)
        self._directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def _move(self, kind: int, args: np.ndarray) -> None:
        works = kind >> np.arange(len(args)) & 1
        self._position = self._position + _STEP * (works * args) @ self._directions


def _parametrised(types: int, low: np.ndarray, high: np.ndarray) -> spaces.Dict:
    parts = {"action_type": spaces.Discrete(types), "action_args": spaces.Box(low, high)}
    return spaces.Dict(parts)


_TASKS: dict[str, type[MovingTask]] = {
    "Moving-v0": MovingTask,
    "Sliding-v0": SlidingTask,
    "HardMove-v0": HardMoveTask,
}


@ENV_REGISTRY.register("gym_hybrid")
class GymHybridEnv(DingEnvWrapper):
    """Tasks with the ids, spaces and keys of ``gym_hybrid``, but different dynamics.

    Config keys:
        env_id: ``Moving-v0``, ``Sliding-v0`` or ``HardMove-v0``.
        act_scale: Whether arguments come in ``[-1, 1]`` for every type; else in their own bounds.
        num_actuators: Of ``HardMove-v0``: then there are as many arguments, and 2 to the power of
            it types.

    The others are those of `DingEnvWrapper`.
    """

    config: Config = {**DingEnvWrapper.config, "env_id": "Moving-v0", "num_actuators": 4}

    def __init__(self, cfg: Config) -> None:
        cfg = {**self.config, **cfg}
        task = _TASKS.get(cfg["env_id"] or "Moving-v0")
        if task is None:
            known = ", ".join(_TASKS)
            raise ConfigError(f"env.env_id={cfg['env_id']!r} is no task of 'gym_hybrid': {known}")
        kwargs = {"num_actuators": cfg["num_actuators"]} if task is HardMoveTask else {}
        super().__init__(env=task(**kwargs), cfg=cfg)
