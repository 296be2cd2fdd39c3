"""Returns are those of the game, whatever the order of the wrappers."""

import itertools

import gymnasium
import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import DingEnvWrapper, create_env_manager
from ding.envs.env_wrappers import ClipRewardWrapper, EvalEpisodeReturnWrapper
from tests.envs.small_envs import CountEnv, OldEnv

TRUE_RETURN = 15.0  # 1 + 2 + ... + 5


class Halved(gymnasium.RewardWrapper):
    def reward(self, reward):
        return reward / 2


class Own(CountEnv):
    """Reports a return itself."""

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        if terminated:
            info = {"eval_episode_return": 99.0}
        return obs, reward, terminated, truncated, info


class Boosted(gymnasium.Wrapper):
    """A user's wrapper that reports what it wants to."""

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated:
            info = {**info, "eval_episode_return": 7.0}
        return obs, reward + 1, terminated, truncated, info


CHANGING = ["clip_reward", "reward_norm", Halved, "delay_reward"]
ORDERS = [
    list(order)
    for count in (1, 2, 3)
    for order in itertools.permutations([*CHANGING[:3], "eval_episode_return"], count)
]


def episode_info(env):
    env.reset()
    while True:
        timestep = env.step(0)
        if timestep.done:
            return timestep.info


@pytest.mark.parametrize("wrappers", [*ORDERS, ["delay_reward"], ["max_and_skip", "clip_reward"]])
def test_the_order_does_not_matter(wrappers):
    env = DingEnvWrapper(CountEnv(length=5), {"env_wrapper": wrappers})
    for _ in range(2):
        assert episode_info(env)["eval_episode_return"] == TRUE_RETURN


def test_wrappers_around_the_given_environment_count_too():
    env = DingEnvWrapper(ClipRewardWrapper(Halved(CountEnv(length=5))))
    assert episode_info(env)["eval_episode_return"] == TRUE_RETURN
    env = DingEnvWrapper(OldEnv(length=5), {"env_wrapper": ["clip_reward"]})
    assert episode_info(env)["eval_episode_return"] == 7.5


@pytest.mark.parametrize("wrappers", [[], ["clip_reward"], ["clip_reward", "eval_episode_return"]])
def test_what_the_user_reports_stands(wrappers):
    env = DingEnvWrapper(Own(length=5), {"env_wrapper": wrappers})
    assert episode_info(env)["eval_episode_return"] == 99.0
    env = DingEnvWrapper(CountEnv(length=5), {"env_wrapper": ["clip_reward", Boosted, *wrappers]})
    assert episode_info(env)["eval_episode_return"] == 7.0


def test_without_ours_around_it():
    env = EvalEpisodeReturnWrapper(ClipRewardWrapper(CountEnv(length=5)))
    env.reset()
    for _ in range(5):
        _, reward, terminated, _, info = env.step(0)
    assert (reward, terminated, info["eval_episode_return"]) == (1.0, True, TRUE_RETURN)


@pytest.mark.parametrize("kind", ["base", "subprocess", "gym_vector"])
@pytest.mark.parametrize("given", ["wrapped", "bare"])
@pytest.mark.parametrize("columns", [True, False])
def test_managers_report_it(kind, given, columns):
    def make():
        if given == "bare" and kind == "gym_vector":
            return ClipRewardWrapper(CountEnv(length=5))
        return DingEnvWrapper(CountEnv(length=5), {"env_wrapper": ["clip_reward"]})

    env = create_env_manager(EasyDict(type=kind), [make] * 2)
    env.launch()
    returns = []
    for _ in range(10):
        if columns:
            step = env.step_columns(np.array([0, 0]), env.ready_columns()[0])
            assert step.reward.tolist() == [1.0, 1.0]
            returns += [info["eval_episode_return"] for info in step.infos.values()]
        else:
            timesteps = env.step({i: np.array([0]) for i in env.ready_obs_id}).values()
            returns += [t.info["eval_episode_return"] for t in timesteps if t.done]
    assert returns == [TRUE_RETURN] * 4
    env.close()
