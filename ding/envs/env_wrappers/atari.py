"""The wrappers of Mnih et al. (2015), "Human-level control through deep reinforcement learning"."""

from functools import reduce
from typing import TYPE_CHECKING, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces

from ding.envs.vector_step import Action, AnyEnv, EnvReset, EnvStep, Info, Obs, ResetArgs, Reward
from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY
from ding.utils.types import Config, Shape

from .gym_to_gymnasium import as_gymnasium

if TYPE_CHECKING:
    from typing_extensions import Unpack


Act = TypeVar("Act")
Rew = TypeVar("Rew")


@ENV_WRAPPER_REGISTRY.register("noop_reset")
class NoopResetWrapper(gymnasium.Wrapper):
    """Starts each episode with 1 to `noop_max` steps of the no-op action 0.

    A game in which nothing else is random is seeded once: seeding loads it again, in 0.1 s.
    """

    keeps_return = True

    def __init__(self, env: gymnasium.Env, noop_max: int = 30) -> None:
        if noop_max < 1:
            raise ValueError(f"noop_max is {noop_max}; expected 1 or more")
        super().__init__(as_gymnasium(env))
        if (meanings := _meanings(self)) is not None and meanings[0] != "NOOP":
            raise ValueError(
                f"{type(self).__name__} takes action 0 for NOOP, but here it means {meanings[0]}"
            )
        self.noop_max = noop_max
        self._rng = np.random.default_rng()
        self._was_seeded = False
        game = getattr(self.env.unwrapped, "ale", None)
        self._is_random = game is None or game.getFloat("repeat_action_probability") > 0

    def reset(self, *, seed: int | None = None, options: Config | None = None) -> EnvReset:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
            if self._was_seeded and not self._is_random:
                seed = None
            self._was_seeded = True
        obs, info = self.env.reset(seed=seed, options=options)
        for _ in range(int(self._rng.integers(1, self.noop_max + 1))):
            obs, _, terminated, truncated, info = self.env.step(0)
            if terminated or truncated:
                obs, info = self.env.reset(options=options)
        return obs, info


# gymnasium's MaxAndSkipObservation shows frames of an earlier step where an episode ends within a
# repetition, and its AtariPreprocessing needs OpenCV, whose resized frames differ.
@ENV_WRAPPER_REGISTRY.register("max_and_skip")
class MaxAndSkipWrapper(gymnasium.Wrapper):
    """Repeats each action for `skip` frames and shows the pixel-wise maximum of the last two.

    Rewards are summed. An episode that ends earlier ends the repetition.
    """

    keeps_return = True

    def __init__(self, env: gymnasium.Env, skip: int = 4) -> None:
        if skip < 1:
            raise ValueError(f"skip is {skip}; expected 1 or more")
        super().__init__(as_gymnasium(env))
        self._skip = skip

    def step(self, action: Action) -> EnvStep:
        total: Reward = 0.0
        obs: Obs = None
        before: np.ndarray | None = None
        for i in range(self._skip):
            # Only the frame before the last is compared, and the environment may reuse its array.
            if i == self._skip - 1 and obs is not None:
                before = np.array(obs)
            obs, reward, terminated, truncated, info = self.env.step(action)
            total = total + reward
            if terminated or truncated:
                break
        if before is not None:
            obs = np.maximum(before, obs, out=before)
        return obs, total, terminated, truncated, info


@ENV_WRAPPER_REGISTRY.register("episodic_life")
class EpisodicLifeWrapper(gymnasium.Wrapper):
    """Ends the episode at the loss of a life; only a game that is over is truly reset.

    A seed that comes in the middle of a game is that of the next game, unless this has its own.
    Lives are read from ``info['lives']`` or else from the emulator.
    """

    keeps_return = True

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        self._lives = 0
        self._game_over = True
        self._seed: int | None = None

    def reset(self, **kwargs: "Unpack[ResetArgs]") -> EnvReset:
        if kwargs.get("seed") is not None:
            self._seed = kwargs["seed"]
        if not self._game_over:
            # The next life begins with a no-op step from the state in which the last one ended.
            obs, _, terminated, truncated, info = self.env.step(0)
            self._game_over = terminated or truncated
        if self._game_over:
            if self._seed is not None:
                kwargs["seed"], self._seed = self._seed, None
            obs, info = self.env.reset(**kwargs)
            self._game_over = False
        self._lives = self._count_lives(info)
        return obs, info

    def step(self, action: Action) -> EnvStep:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._game_over = terminated or truncated
        lives = self._count_lives(info)
        # Some games show 0 lives for a few frames before they end: that is no loss of a life.
        if 0 < lives < self._lives:
            terminated = True
        self._lives = lives
        return obs, reward, terminated, truncated, info

    def _count_lives(self, info: Info) -> int:
        if "lives" in info:
            return info["lives"]
        game: AnyEnv = self.env.unwrapped
        return game.ale.lives()


@ENV_WRAPPER_REGISTRY.register("fire_reset")
class FireResetWrapper(gymnasium.Wrapper):
    """Fires (action 1) once after each reset, for games that wait for it.

    Games without such an action are left as they are.
    """

    keeps_return = True

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        meanings = _meanings(self)
        self._fires = meanings is None or (len(meanings) > 1 and meanings[1] == "FIRE")

    def reset(self, **kwargs: "Unpack[ResetArgs]") -> EnvReset:
        obs, info = self.env.reset(**kwargs)
        if not self._fires:
            return obs, info
        obs, _, terminated, truncated, info = self.env.step(1)
        if terminated or truncated:
            return self.env.reset(options=kwargs.get("options"))
        return obs, info


@ENV_WRAPPER_REGISTRY.register("warp_frame")
class WarpFrameWrapper(gymnasium.ObservationWrapper):
    """Frames ``[H, W, 3]`` or ``[H, W]`` uint8 as grey ones of ``[size, size]`` uint8.

    Grey is ITU-R BT.601 luma; each new pixel is the mean of the area that it covers, summed in the
    order of OpenCV's ``INTER_AREA``, so that frames equal those of EnvPool and gymnasium.
    """

    def __init__(self, env: gymnasium.Env, size: int = 84) -> None:
        super().__init__(as_gymnasium(env))
        shape = self.env.observation_space.shape or ()
        if len(shape) not in (2, 3) or shape[2:] not in ((), (1,), (3,)):
            raise ValueError(
                f"warp_frame expects frames [H, W], [H, W, 1] or [H, W, 3], got {shape}"
            )
        self.size = size
        self._rows = [(index, weight[:, None]) for index, weight in _area(shape[0], size)]
        self._columns = _area(shape[1], size)
        self.observation_space = spaces.Box(0, 255, shape=(size, size), dtype=np.uint8)

    def observation(self, frame: np.ndarray) -> np.ndarray:
        grey = frame.astype(np.float32)
        if grey.ndim == 3:
            grey = grey @ _LUMA if grey.shape[2] == 3 else grey[:, :, 0]
        narrow = reduce(np.add, (grey[:, index] * weight for index, weight in self._columns))
        small = reduce(np.add, (narrow[index] * weight for index, weight in self._rows))
        return np.rint(small).clip(0, 255).astype(np.uint8)

    @staticmethod
    def new_shape(obs_shape: Shape, act_shape: Act, rew_shape: Rew) -> tuple[Shape, Act, Rew]:
        """Shapes of observation, action and reward after the wrapper."""
        return (84, 84), act_shape, rew_shape


_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def _area(old: int, new: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first old pixel in the span of each new one, ``[new]``, and its share, float32 ``[new]``;
    then the second ones, and so on.
    """
    edges = np.arange(new + 1) * (old / new)
    pixels = np.arange(old)
    covered = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    covered[covered < 1e-3] = 0
    shares = (covered / covered.sum(1, keepdims=True)).astype(np.float32)
    first, widest = (shares > 0).argmax(1), np.count_nonzero(shares, axis=1).max()
    padded = np.pad(shares, ((0, 0), (0, widest)))
    places = [first + number for number in range(widest)]
    return [(at.clip(max=old - 1), padded[np.arange(new), at]) for at in places]


def _meanings(env: gymnasium.Env) -> list[str] | None:
    """What the actions do, where the environment says."""
    get = getattr(env.unwrapped, "get_action_meanings", None)
    return list(get()) if callable(get) else None
