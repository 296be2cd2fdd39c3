import numpy as np
import pytest

from ding.envs import (
    ClipRewardWrapper,
    DelayRewardWrapper,
    EvalEpisodeReturnWrapper,
    RewardNormWrapper,
    TimeLimitWrapper,
)
from tests.envs.small_envs import CountEnv, OldEnv


def rewards_of(env):
    env.reset()
    rewards = []
    while True:
        _, reward, terminated, truncated, info = env.step(0)
        rewards.append(float(reward))
        if terminated or truncated:
            return rewards, info


def test_clip_reward():
    env = CountEnv(length=2)
    env.step = lambda action, step=env.step: (lambda r: (r[0], r[1] - 1.5, *r[2:]))(step(action))
    assert rewards_of(ClipRewardWrapper(env))[0] == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("delay", "expected"),
    [(0, [1, 2, 3, 4, 5]), (1, [1, 2, 3, 4, 5]), (2, [0, 3, 0, 7, 5]), (9, [0, 0, 0, 0, 15])],
)
def test_delay_reward(delay, expected):
    env = DelayRewardWrapper(CountEnv(length=5), delay)
    for _ in range(2):
        assert rewards_of(env)[0] == expected


def test_reward_norm_divides_by_the_spread_of_returns():
    env = RewardNormWrapper(CountEnv(length=100), reward_discount=0.9)
    rewards, _ = rewards_of(env)
    assert rewards[:30] == list(range(1, 31))
    ret, returns = 0.0, []
    for t in range(1, 101):
        ret = 0.9 * ret + t
        returns.append(ret)
    assert rewards[-1] == pytest.approx(100 / np.std(returns), rel=1e-3)


def test_time_limit_refuses_zero():
    with pytest.raises(ValueError, match="max_limit"):
        TimeLimitWrapper(CountEnv(), 0)


def test_over_an_old_env():
    env = EvalEpisodeReturnWrapper(OldEnv(length=2))
    assert rewards_of(env) == ([1.5, 1.5], {"eval_episode_return": 3.0})
