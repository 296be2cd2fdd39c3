"""Networks and environments that do not fit are reported before anything is learned."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.policy.fit import check_fit
from ding.utils.errors import ConfigError

CREATE = dict(env=dict(type="gymnasium"), env_manager=dict(type="base"))


def train(policy="dqn", env_id="CartPole-v1", model=None, network=None, seed=0, **settings):
    pipeline = serial_pipeline if policy != "ppo" else serial_pipeline_onpolicy
    main = dict(
        exp_name="run",
        env=dict(env_id=env_id, collector_env_num=1, evaluator_env_num=1, n_evaluator_episode=1),
        policy=dict(model=model or {}, collect=dict(n_sample=8), **settings),
    )
    create = dict(CREATE, policy=dict(type=policy))
    pipeline((main, create), seed=seed, model=network, max_train_iter=1)


@pytest.mark.parametrize(
    ("policy", "model", "words"),
    [
        ("dqn", dict(obs_shape=4, action_shape=1), r"action_shape=1 .*set it to 2.*Discrete\(2\)"),
        ("dqn", dict(obs_shape=4, action_shape=3), r"action_shape=3 .*set it to 2.*Discrete\(2\)"),
        ("dqn", dict(obs_shape=4, action_shape=[2, 2]), r"action_shape=\[2, 2\] .*set it to 2"),
        ("ppo", dict(obs_shape=4, action_shape=5), "action_shape=5 .*set it to 2"),
        ("dqn", dict(obs_shape=5, action_shape=2), r"obs_shape=5 .*set it to 4.*obs \[4\]"),
        ("dqn", dict(obs_shape=[4, 84, 84], action_shape=2), r"obs_shape=\[4, 84, 84\] .*to 4"),
        (
            "ppo",
            dict(obs_shape=4, action_shape=2, action_space="continuous"),
            "action_space='continuous' does not fit .*takes 'discrete'",
        ),
    ],
)
def test_shapes(policy, model, words):
    with pytest.raises(ConfigError, match=f"policy.model.{words}"):
        train(policy, model=model)


def test_length_of_real_actions():
    model = dict(obs_shape=3, action_shape=2, action_space="continuous")
    with pytest.raises(ConfigError, match=r"action_shape=2 .*set it to 1"):
        train("ppo", "Pendulum-v1", model)


@pytest.mark.parametrize(("policy", "env_id", "words"), [
    ("dqn", "Pendulum-v1", "'dqn' chooses discrete or multi-discrete .*continuous; .*: .*sac"),
    ("sac", "CartPole-v1",
     r"'sac' chooses continuous actions, .*Discrete\(2\), .*: .*discrete_sac"),
])  # fmt: skip
def test_policies_for_other_actions(policy, env_id, words):
    model = dict(obs_shape=3 if env_id.startswith("P") else 4, action_shape=1)
    with pytest.raises(ConfigError, match=words):
        train(policy, env_id, model)


class Manager:
    def __init__(self, obs, action_space):
        self.ready_obs, self.action_space = {0: obs}, action_space


@pytest.mark.parametrize(
    ("model", "obs", "space"),
    [
        (dict(obs_shape=4, action_shape=2), np.zeros(4), spaces.Discrete(2)),
        (dict(obs_shape=[4], action_shape=[2]), np.zeros(4), spaces.Discrete(2, start=1)),
        (dict(obs_shape=[1, 2, 2], action_shape=[2, 3]), np.zeros((1, 2, 2)),
         spaces.MultiDiscrete([2, 3])),
        (dict(obs_shape=4, action_shape=6, action_space="continuous"), np.zeros(4),
         spaces.Box(-1, 1, (2, 3))),
        (dict(obs_shape=4, action_shape=11), np.zeros(4), spaces.Box(-1, 1, (1,))),
        (dict(obs_shape=4, action_shape=2), {"a": np.zeros(9)}, spaces.Dict()),
        (dict(obs_shape=4, action_shape=2, agent_num=3), np.zeros((3, 4)), spaces.Discrete(9)),
        (dict(obs_shape=4, action_shape=dict(action_type_shape=2)), np.zeros(4),
         spaces.Discrete(3)),
        ({}, np.zeros(4), None),
    ],
)  # fmt: skip
def test_what_fits_or_cannot_be_compared(model, obs, space):
    check_fit({"model": model}, Manager(obs, space))


def test_networks_of_another_form():
    tensor = torch.nn.Linear(4, 2)
    with pytest.raises(ConfigError, match=r"Linear.forward returned a tensor .*: return a dict"):
        train(network=tensor)
    with pytest.raises(ConfigError, match=r"Linear.forward\(input\) has no 'mode'"):
        train("ppo", network=tensor, learn=dict(ppo_param_init=False))


@pytest.mark.parametrize("name", ["relu", "ReLU", "tanh", "leaky_relu"])
def test_activations_by_name(name):
    train(model=dict(obs_shape=4, action_shape=2, activation=name))


def test_unknown_activation():
    words = "policy.model.activation: got activation 'relux': did you mean 'relu'"
    with pytest.raises(ConfigError, match=words):
        train(model=dict(obs_shape=4, action_shape=2, activation="relux"))


@pytest.mark.parametrize("seed", [-1, 1 << 32, 0.5, "3", None])
def test_seeds(seed):
    with pytest.raises(ConfigError, match="seed must be a whole number from 0 to 4294967295"):
        train(model=dict(obs_shape=4, action_shape=2), seed=seed)
