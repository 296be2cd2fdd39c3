"""Keys of a config that ask for wrappers by what they do."""

import gymnasium
import numpy as np
import pytest

from ding.envs import DingEnvWrapper
from ding.utils.errors import ConfigError


class Staircase(gymnasium.Env):
    """Shows and pays -5, -10, ...; ends after six steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        value = -5.0 * self.time
        return np.array([value], np.float32), value, self.time == 6, False, {}


def played(caller="collector", **cfg):
    env = DingEnvWrapper(Staircase(), cfg={**cfg, "caller": caller})
    first, steps = env.reset(), []
    for _ in range(6):
        steps.append(env.step(np.array([1])))
    assert steps[-1].info["eval_episode_return"] == -105.0
    return first, steps


def rewards(steps):
    return [float(step.reward[0]) for step in steps]


def test_rewards():
    assert rewards(played(rew_clip=True)[1]) == [-5, -10, -10, -10, -10, -10]
    for evaluated in (dict(caller="evaluator"), dict(is_train=False)):
        assert rewards(played(rew_clip=True, **evaluated)[1])[-1] == -30
    assert rewards(played(delay_reward_step=4)[1]) == [0, 0, 0, -50, 0, -55]


def test_stacked_observations():
    first, steps = played(frame_stack=3)
    assert first.tolist() == [[0], [0], [0]]
    assert steps[3].obs.tolist() == [[-10], [-15], [-20]]
    # Where there is such a wrapper, it counts, not the key.
    _, steps = played(frame_stack=3, env_wrapper=[dict(type="frame_stack", kwargs={"n_frames": 2})])
    assert steps[3].obs.tolist() == [[-15], [-20]]


def test_observations_with_what_went_before():
    _, steps = played(obs_plus_prev_action_reward=True)
    assert steps[1].obs["prev_action"] == 1
    assert steps[1].obs["prev_reward_extrinsic"] == -10


def test_statistics_that_are_known():
    known = dict(use_norm=True, offline_stats=dict(use_offline_stats=True, mean=[5.0], std=[2.0]))
    _, steps = played(norm_obs=known)
    assert steps[0].obs == pytest.approx([-5.0])
    del known["offline_stats"]["std"]
    with pytest.raises(ConfigError, match=r"offline_stats.*needs 'mean' and 'std'"):
        played(norm_obs=known)
