import numpy as np
import pytest
from gymnasium import spaces

from ding.envs import DiscretizeActionWrapper
from tests.envs.small_envs import CountEnv


def box_env(low, high):
    env = CountEnv()
    env.action_space = spaces.Box(np.array(low, np.float32), np.array(high, np.float32))
    env.seen = []
    step = env.step

    def spy(action):
        env.seen.append(action)
        return step(0)

    env.step = spy
    return env


def test_choices_are_spread_from_bound_to_bound():
    inner = box_env([-2, 0], [2, 1])
    env = DiscretizeActionWrapper(inner, bins=[5, 3])
    assert env.action_space == spaces.MultiDiscrete([5, 3])
    env.reset()
    for action in ([0, 0], [2, 1], [4, 2]):
        env.step(np.array(action))
    assert np.array(inner.seen).tolist() == [[-2, 0], [0, 0.5], [2, 1]]
    assert all(inner.action_space.contains(action) for action in inner.seen)


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(ValueError, match="finite bounds"):
        DiscretizeActionWrapper(CountEnv())
    with pytest.raises(ValueError, match="finite bounds"):
        DiscretizeActionWrapper(box_env([-np.inf], [1]))
    with pytest.raises(ValueError, match="bins=1"):
        DiscretizeActionWrapper(box_env([0], [1]), bins=1)
