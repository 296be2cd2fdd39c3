"""Wrappers that change or count rewards."""

from typing import TYPE_CHECKING

import gymnasium
import numpy as np
from gymnasium import wrappers

from ding.envs.running_statistics import WARM_UP, Normaliser, RunningStatistics
from ding.envs.vector_step import Action, AnyEnv, EnvReset, EnvStep, ResetArgs, Reward
from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY

from .gym_to_gymnasium import as_gymnasium

if TYPE_CHECKING:
    from typing_extensions import Unpack


@ENV_WRAPPER_REGISTRY.register("eval_episode_return")
class EvalEpisodeReturnWrapper(gymnasium.Wrapper):
    """Puts the return of the game itself in ``info['eval_episode_return']`` at the end.

    That is the sum of the rewards before wrappers clip, scale or shape them, wherever this one is;
    a return that the environment itself reports is kept.
    """

    keeps_return = True

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        self._raw = raw_rewards(self.env)
        self._return: Reward = 0.0

    def reset(self, **kwargs: "Unpack[ResetArgs]") -> EnvReset:
        result = self.env.reset(**kwargs)
        self._return = 0.0
        if self._raw is not None:
            self._raw.total = 0.0
        return result

    def step(self, action: Action) -> EnvStep:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._return += reward
        if terminated or truncated:
            value = self._return if self._raw is None else self._raw.total
            info = {"eval_episode_return": value, **info}
        return obs, reward, terminated, truncated, info


@ENV_WRAPPER_REGISTRY.register("clip_reward")
class ClipRewardWrapper(gymnasium.RewardWrapper):
    """Replaces each reward by its sign."""

    reward_range = (-1.0, 1.0)

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))

    def reward(self, reward: Reward) -> float:
        return float(np.sign(float(reward)))


@ENV_WRAPPER_REGISTRY.register("least_reward")
class LeastRewardWrapper(gymnasium.RewardWrapper):
    """Raises rewards that are below `least` to it."""

    def __init__(self, env: gymnasium.Env, least: float = -10.0) -> None:
        super().__init__(as_gymnasium(env))
        self.least = float(least)

    def reward(self, reward: Reward) -> float:
        return max(self.least, float(reward))


@ENV_WRAPPER_REGISTRY.register("delay_reward")
class DelayRewardWrapper(gymnasium.Wrapper):
    """Gives the rewards of `delay_reward_step` steps at once, and what is left at the end.

    In between the reward is 0. A delay of 0 or 1 changes nothing.
    """

    keeps_return = True

    def __init__(self, env: gymnasium.Env, delay_reward_step: int = 0) -> None:
        if delay_reward_step < 0:
            raise ValueError(f"delay_reward_step is {delay_reward_step}; expected 0 or more")
        super().__init__(as_gymnasium(env))
        self._delay = delay_reward_step
        self._steps = 0
        self._held: Reward = 0.0

    def reset(self, **kwargs: "Unpack[ResetArgs]") -> EnvReset:
        self._steps = 0
        self._held = 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Action) -> EnvStep:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        self._held = self._held + reward
        reward = 0.0
        if terminated or truncated or self._steps >= self._delay:
            reward, self._held, self._steps = self._held, 0.0, 0
        return obs, reward, terminated, truncated, info


# gymnasium's NormalizeReward neither shares its moments with other environments, nor waits until
# they are known.
@ENV_WRAPPER_REGISTRY.register("reward_norm")
class RewardNormWrapper(Normaliser, gymnasium.Wrapper):
    """Divides each reward by the running standard deviation of the discounted return so far.

    The mean is kept, as taking it away would change what is optimal. Env managers let the wrappers
    of all their environments share the statistics.
    """

    def __init__(self, env: gymnasium.Env, reward_discount: float = 0.99) -> None:
        super().__init__(as_gymnasium(env))
        self.statistics = RunningStatistics(())
        self._discount = reward_discount
        self._return = 0.0

    def reset(self, **kwargs: "Unpack[ResetArgs]") -> EnvReset:
        self._return = 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Action) -> EnvStep:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._return = self._return * self._discount + float(reward)
        self.statistics.add(self._return)
        if self.statistics.count > WARM_UP:
            reward = float(reward) / float(self.statistics.std)
        return obs, reward, terminated, truncated, info


# ---- the true return of an episode, whatever wrappers make of the rewards -----------------------

# What leaves an episode's sum of rewards as it is.
_HARMLESS = (
    wrappers.TimeLimit,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
)


class RawRewards(gymnasium.Wrapper):
    """Adds up the rewards of the bare environment in ``total``.

    The wrapper that knows an episode's start sets that to zero: a reset of the bare environment
    need not be one.
    """

    #: As of all wrappers with it: the sum of an episode's rewards is the same inside and outside.
    keeps_return = True

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.total: Reward = 0.0

    def step(self, action: Action) -> EnvStep:
        result = self.env.step(action)
        self.total = self.total + result[1]
        return result


def raw_rewards(env: AnyEnv) -> RawRewards | None:
    """The sum of rewards around the bare environment; ``None`` if it is the same outside.

    It is put there where wrappers may change rewards.
    """
    innermost, may_change = None, False
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, RawRewards):
            return env
        may_change = may_change or not _keeps_return(env)
        innermost, env = env, env.env
    if innermost is None or not may_change:
        return None
    innermost.env = RawRewards(env)
    return innermost.env


def _keeps_return(wrapper: gymnasium.Wrapper) -> bool:
    if getattr(type(wrapper), "keeps_return", False) or isinstance(wrapper, _HARMLESS):
        return True
    kinds = (gymnasium.ObservationWrapper, gymnasium.ActionWrapper, gymnasium.Wrapper)
    return any(type(wrapper).step is kind.step for kind in kinds)
