"""Wrappers that change observations."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from ding.envs.running_statistics import WARM_UP, Normaliser, RunningStatistics
from ding.envs.vector_step import Action, EnvReset, EnvStep, Obs, ResetArgs, Reward, Space
from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY

from .gym_to_gymnasium import as_gymnasium

if TYPE_CHECKING:
    from typing_extensions import Unpack


@ENV_WRAPPER_REGISTRY.register("scaled_float_frame")
class ScaledFloatFrameWrapper(gymnasium.ObservationWrapper):
    """Maps observations from the bounds of their space to float32 in ``[0, 1]``."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        space = _box_observations(self)
        low, high = float(space.low.min()), float(space.high.max())
        if not np.isfinite(high - low):
            raise ValueError(f"scaled_float_frame needs observations with bounds, got {space}")
        self._low = np.float32(low)
        self._factor = np.float32(1.0 / (high - low))
        self.observation_space = spaces.Box(0.0, 1.0, shape=space.shape, dtype=np.float32)

    def observation(self, obs: Obs) -> np.ndarray:
        scaled = np.asarray(obs).astype(np.float32)
        scaled -= self._low
        scaled *= self._factor
        return scaled


@ENV_WRAPPER_REGISTRY.register("channel_first")
class ChannelFirstWrapper(gymnasium.ObservationWrapper):
    """Pictures ``[H, W, C]`` as ``[C, H, W]``."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        space = self.env.observation_space
        if not isinstance(space, spaces.Box) or len(space.shape) != 3:
            raise ValueError(f"channel_first needs pictures [H, W, C], got {space}")
        low, high = (np.moveaxis(bound, 2, 0) for bound in (space.low, space.high))
        self.observation_space = spaces.Box(low, high, dtype=space.dtype.type)

    def observation(self, obs: Obs) -> np.ndarray:
        return np.ascontiguousarray(np.moveaxis(obs, 2, 0))


# gymnasium's FrameStackObservation keeps the environment's own array, which one that reuses its
# memory overwrites, and copies the whole stack once more in each step.
@ENV_WRAPPER_REGISTRY.register("frame_stack")
class FrameStackWrapper(gymnasium.Wrapper):
    """Observations ``[n_frames, *obs_shape]``: the last `n_frames`, the newest last.

    At an episode's start the first observation fills the stack.
    """

    keeps_return = True

    def __init__(self, env: gymnasium.Env, n_frames: int = 4) -> None:
        if n_frames < 1:
            raise ValueError(f"n_frames is {n_frames}; expected 1 or more")
        super().__init__(as_gymnasium(env))
        self.n_frames = n_frames
        self._frames: deque[np.ndarray] = deque(maxlen=n_frames)
        space = _box_observations(self)
        low, high = np.stack([space.low] * n_frames), np.stack([space.high] * n_frames)
        self.observation_space = spaces.Box(low, high, dtype=space.dtype.type)

    def reset(self, **kwargs: "Unpack[ResetArgs]") -> EnvReset:
        obs, info = self.env.reset(**kwargs)
        self._frames.extend([np.array(obs)] * self.n_frames)
        return np.stack(self._frames), info

    def step(self, action: Action) -> EnvStep:
        obs, reward, terminated, truncated, info = self.env.step(action)
        # A copy: the environment may write its next observation into the same array.
        self._frames.append(np.array(obs))
        return np.stack(self._frames), reward, terminated, truncated, info


# gymnasium's NormalizeObservation neither shares its moments with other environments, nor waits
# until they are known, nor clips.
@ENV_WRAPPER_REGISTRY.register("obs_norm")
class ObsNormWrapper(Normaliser, gymnasium.ObservationWrapper):
    """Normalises observations by their running mean and standard deviation, then clips them.

    Env managers let the wrappers of all their environments share the statistics.
    """

    def __init__(self, env: gymnasium.Env, clip_range: tuple[float, float] = (-3.0, 3.0)) -> None:
        super().__init__(as_gymnasium(env))
        self._clip = clip_range
        shape = _box_observations(self).shape
        self.statistics = RunningStatistics(shape)
        self.observation_space = _unbounded(shape)

    def observation(self, obs: Obs) -> np.ndarray:
        statistics = self.statistics
        statistics.add(obs)
        if statistics.count <= WARM_UP:
            return np.asarray(obs, np.float32)
        scaled = (obs - statistics.mean) / statistics.std
        return np.clip(scaled, *self._clip).astype(np.float32)


@ENV_WRAPPER_REGISTRY.register("static_obs_norm")
class StaticObsNormWrapper(gymnasium.ObservationWrapper):
    """Observations float32 less `mean`, divided by `std`, both known beforehand.

    Args:
        mean: A number, or an array like an observation.
        std: Likewise; not 0.
    """

    def __init__(self, env: gymnasium.Env, mean: ArrayLike, std: ArrayLike) -> None:
        super().__init__(as_gymnasium(env))
        if not np.all(std):
            raise ValueError(f"static_obs_norm got std={std!r}; expected numbers other than 0")
        self.mean, self.std = np.asarray(mean), np.asarray(std)
        self.observation_space = _unbounded(_box_observations(self).shape)

    def observation(self, obs: Obs) -> np.ndarray:
        return np.asarray((obs - self.mean) / self.std, np.float32)


@ENV_WRAPPER_REGISTRY.register("ram")
class RamWrapper(gymnasium.ObservationWrapper):
    """An Atari game's memory, 128 bytes, as float32 ``[128, 1, 1]``: the form of an image.

    Args:
        render: Draw each step, as far as the environment can.
    """

    def __init__(self, env: gymnasium.Env, render: bool = False) -> None:
        super().__init__(as_gymnasium(env))
        space = _box_observations(self)
        self._render = render
        self._shape = (int(np.prod(space.shape)), 1, 1)
        low, high = (np.float32(bound).reshape(self._shape) for bound in (space.low, space.high))
        self.observation_space = spaces.Box(low, high, dtype=np.float32)

    def observation(self, obs: Obs) -> np.ndarray:
        if self._render:
            self.env.render()
        return np.asarray(obs, np.float32).reshape(self._shape)


@ENV_WRAPPER_REGISTRY.register("mask_obs")
class MaskObsWrapper(gymnasium.ObservationWrapper):
    """Keeps some entries of vector observations, `keep`, in this order."""

    def __init__(self, env: gymnasium.Env, keep: Sequence[int]) -> None:
        super().__init__(as_gymnasium(env))
        space = _box_observations(self)
        self._keep = list(keep)
        known = range(int(np.prod(space.shape)))
        if len(space.shape) != 1 or not self._keep or any(i not in known for i in self._keep):
            raise ValueError(f"mask_obs got keep={self._keep} for observations of {space}")
        self.observation_space = spaces.Box(
            space.low[self._keep], space.high[self._keep], dtype=space.dtype.type
        )

    def observation(self, obs: Obs) -> np.ndarray:
        return np.asarray(obs)[self._keep]


@ENV_WRAPPER_REGISTRY.register("one_hot_obs")
class OneHotObsWrapper(gymnasium.ObservationWrapper):
    """The number of a state as float32 ``[n]``, 1 at the state and 0 elsewhere."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        space = self.env.observation_space
        if not isinstance(space, spaces.Discrete):
            raise ValueError(f"one_hot_obs needs observations that are one number, got {space}")
        self._start = int(space.start)
        self._rows = np.eye(int(space.n), dtype=np.float32)
        self.observation_space = spaces.Box(0.0, 1.0, (int(space.n),), np.float32)

    def observation(self, obs: Obs) -> np.ndarray:
        return self._rows[int(obs) - self._start].copy()


@ENV_WRAPPER_REGISTRY.register("flatten_obs")
class FlattenObsWrapper(gymnasium.wrappers.FlattenObservation):
    """Observations of several parts (Dict, Tuple) as one array; choices among them are one-hot."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))


@ENV_WRAPPER_REGISTRY.register("taxi_obs")
class TaxiObsWrapper(gymnasium.ObservationWrapper):
    """Taxi's state as float32 ``[34]``: one-hot cell (25), passenger's place (5), goal (4)."""

    _SIZES = (5, 5, 5, 4)  # row, column, passenger, goal; the last one counts up first

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        self.observation_space = spaces.Box(0.0, 1.0, (34,), np.float32)

    def observation(self, obs: Obs) -> np.ndarray:
        row, column, passenger, goal = np.unravel_index(int(obs), self._SIZES)
        features = np.zeros(34, np.float32)
        features[[5 * row + column, 25 + passenger, 30 + goal]] = 1
        return features


@ENV_WRAPPER_REGISTRY.register("allin_obs")
class AllinObsWrapper(gymnasium.Wrapper):
    """Observations ``{'obs', 'reward' [1]}``, the reward 0 at an episode's start."""

    keeps_return = True
    _reward = "reward"

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        self._parts = {"obs": self.env.observation_space, self._reward: _unbounded((1,))}
        self.observation_space = spaces.Dict(self._parts)

    def reset(self, **kwargs: "Unpack[ResetArgs]") -> EnvReset:
        obs, info = self.env.reset(**kwargs)
        return self._joined(obs, -1, 0.0), info

    def step(self, action: Action) -> EnvStep:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._joined(obs, action, reward), reward, terminated, truncated, info

    def _joined(self, obs: Obs, action: Action, reward: Reward) -> dict[str, Obs]:
        return {"obs": obs, self._reward: np.array([reward], np.float32)}


@ENV_WRAPPER_REGISTRY.register("obs_plus_prev_action_reward")
class ObsPlusPrevActRewWrapper(AllinObsWrapper):
    """Observations ``{'obs', 'prev_action', 'prev_reward_extrinsic' [1]}``.

    At an episode's start the previous action is -1 in every entry and the reward 0.
    """

    _reward = "prev_reward_extrinsic"

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self._past_actions = _with_null(self.env.action_space)
        self._parts["prev_action"] = self._past_actions
        self.observation_space = spaces.Dict(self._parts)

    def _joined(self, obs: Obs, action: Action, reward: Reward) -> dict[str, Obs]:
        previous = np.full(self._past_actions.shape, action, self._past_actions.dtype)
        return {**super()._joined(obs, action, reward), "prev_action": previous}


def _box_observations(wrapper: gymnasium.Wrapper) -> spaces.Box:
    space = wrapper.env.observation_space
    if not isinstance(space, spaces.Box):
        raise ValueError(f"{type(wrapper).__name__} needs array observations (a Box), got {space}")
    return space


def _unbounded(shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape=shape, dtype=np.float32)


def _with_null(space: Space) -> spaces.Box:
    low: np.ndarray
    if isinstance(space, spaces.Box):
        low, high = np.minimum(space.low, -1), space.high
    elif isinstance(space, spaces.Discrete):
        low, high = np.array(-1), np.array(space.start + space.n - 1)
    elif isinstance(space, spaces.MultiDiscrete):
        low, high = np.full(space.nvec.shape, -1), space.nvec - 1
    else:
        raise ValueError(f"a previous action needs a Box or discrete action space, got {space}")
    dtype = space.dtype.type
    return spaces.Box(np.asarray(low, dtype), np.asarray(high, dtype), dtype=dtype)
