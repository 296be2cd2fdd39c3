import numpy as np
import pytest
from gymnasium import spaces

from ding.envs import DiscretizeActionWrapper
from ding.envs.env_wrappers.steps import FlattenActionWrapper
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


@pytest.mark.parametrize(
    ("space", "flat", "choices", "taken"),
    [
        (spaces.Discrete(3, start=1), spaces.Discrete(3), 2, 3),
        (spaces.MultiBinary(3), spaces.MultiDiscrete([2, 2, 2]), [1, 0, 1], [1, 0, 1]),
        (spaces.MultiBinary((2, 2)), spaces.MultiDiscrete([2] * 4), [1, 0, 0, 1], [[1, 0], [0, 1]]),
        (spaces.MultiDiscrete([2, 3], start=[5, 7]), spaces.MultiDiscrete([2, 3]), [1, 2], [6, 9]),
        (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3, start=1)]),
         spaces.MultiDiscrete([2, 3]), [1, 2], (1, 3)),
        (spaces.Dict(a=spaces.Discrete(2), b=spaces.MultiBinary(2)),
         spaces.MultiDiscrete([2, 2, 2]), [1, 0, 1], {"a": 1, "b": [0, 1]}),
    ],
)  # fmt: skip
def test_choices_count_from_zero_in_one_list(space, flat, choices, taken):
    env = FlattenActionWrapper(CountEnv(action_space=space))
    assert env.action_space == flat
    action = env.action(np.array(choices))
    assert space.contains(action)
    if isinstance(space, spaces.Dict):
        assert {k: np.asarray(v).tolist() for k, v in action.items()} == taken
    else:
        np.testing.assert_array_equal(action, taken)


def test_numbers_are_no_choices():
    with pytest.raises(ValueError, match=r"flatten_action needs choices .*TransformAction"):
        FlattenActionWrapper(CountEnv(action_space=spaces.Tuple([spaces.Box(-1, 1)])))
