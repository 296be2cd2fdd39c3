"""Collect modes that act at random."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.policy import PolicyFactory, get_random_policy
from ding.utils.errors import ConfigError

OBS = {0: np.zeros(3, np.float32), 2: np.ones(3, np.float32)}
SPACES = [
    (gym.spaces.Discrete(2), torch.int64, ()),
    (gym.spaces.Box(-2, 2, (3,), np.float64), torch.float32, (3,)),
    (gym.spaces.MultiDiscrete([2, 3]), torch.int64, (2,)),
]


@pytest.mark.parametrize(("space", "dtype", "shape"), SPACES)
def test_random_actions(make_dqn, space, dtype, shape):
    policy = make_dqn().collect_mode
    random = PolicyFactory.get_random_policy(policy, action_space=space)
    assert type(random) is type(policy)
    output = random.forward(OBS, eps=0.3)
    assert list(output) == [0, 2]
    assert output[0]["action"].shape == (shape or (1,))
    batch = random.batched.forward(np.zeros((50, 3), np.float32), eps=0.3)["action"]
    assert batch.dtype == output[0]["action"].dtype == dtype
    assert batch.shape == (50, *shape)
    assert len(batch.unique(dim=0)) > 1
    assert random.batched.get_train_columns == policy.batched.get_train_columns


def test_random_actions_follow_the_seed(make_dqn):
    policy = make_dqn().collect_mode
    space = gym.spaces.Discrete(100)

    def draw():
        torch.manual_seed(5)
        random = PolicyFactory.get_random_policy(policy, action_space=space)
        return random.batched.forward(np.zeros((20, 3)))["action"].tolist()

    assert draw() == draw()


def test_forward_fn(make_dqn):
    policy = make_dqn().collect_mode
    mode = PolicyFactory.get_random_policy(policy, forward_fn=lambda data: {7: {"action": 1}})
    assert mode.forward(OBS) == {7: {"action": 1}}
    assert mode.batched is None
    with pytest.raises(ConfigError, match="action_space or a forward_fn"):
        PolicyFactory.get_random_policy(policy)


def test_policy_whose_transitions_need_the_network(make_ppo):
    policy = make_ppo().collect_mode
    with pytest.raises(ConfigError, match="logit"):
        PolicyFactory.get_random_policy(policy, action_space=gym.spaces.Discrete(2))


def test_get_random_policy(make_dqn):
    policy = make_dqn().collect_mode
    env = EasyDict(action_space=gym.spaces.Discrete(2))
    mode = get_random_policy(EasyDict(policy={}), policy, env)
    assert mode.forward != policy.forward
    with_data = EasyDict(policy=dict(transition_with_policy_data=True))
    assert get_random_policy(with_data, policy, env) is policy
