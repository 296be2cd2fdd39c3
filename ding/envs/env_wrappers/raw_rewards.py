"""The true return of an episode, whatever wrappers make of the rewards."""

from typing import Any

import gymnasium
from gymnasium import wrappers

# What leaves an episode's sum of rewards as it is.
_HARMLESS = (
    wrappers.TimeLimit,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
)


class RawRewards(gymnasium.Wrapper):
    """Adds up the rewards of the bare environment that it is put around.

    Attributes:
        total: Since somebody set it to zero, which whoever knows an episode's start does: a reset
            of the bare environment need not be one.
    """

    #: As of all wrappers with it: the sum of an episode's rewards is the same inside and outside.
    keeps_return = True

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.total: Any = 0.0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        result = self.env.step(action)
        self.total = self.total + result[1]
        return result


def raw_rewards(env: Any) -> RawRewards | None:
    """The sum of rewards around the bare environment; put there if wrappers may change them.

    Returns:
        ``None`` if the rewards outside add up to the same.
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
