"""What a policy requires of its network: declared truly, and held against networks of users."""

import re

import numpy as np
import pytest
import torch
from easydict import EasyDict
from torch import nn

from ding.entry import serial_pipeline
from ding.policy import (
    DDPGPolicy,
    DQNPolicy,
    PPOPolicy,
    R2D2Policy,
    SACPolicy,
    create_policy,
)
from ding.policy.networks import try_network
from ding.utils import POLICY_REGISTRY, deep_merge_dicts
from ding.utils.errors import ConfigError
from tests.policy import batches
from tests.policy.attributes import model_of

DECLARED = [
    (type_, kind)
    for type_ in sorted(POLICY_REGISTRY.query())
    if not type_.endswith("_command")
    for kind in getattr(POLICY_REGISTRY.get(type_), "networks", {})
    if POLICY_REGISTRY.get(type_).__module__.startswith("ding.")
]
HYBRID = dict(action_type_shape=3, action_args_shape=2)


def described(type_, kind):
    """A config of the policy for actions of a kind; the shapes of its spaces."""
    cls = POLICY_REGISTRY.get(type_)
    cfg = cls.default_config()
    shapes = dict(obs_shape=4, action_shape=HYBRID if kind == "hybrid" else 2)
    if type_ == "bdq":
        cfg.model.update(obs_shape=4, num_branches=2, action_bins_per_branch=3)
    else:
        cfg.model.update(shapes)
    if kind in ("discrete", "continuous", "hybrid") and "action_space" in cfg:
        cfg.action_space = kind
    if type_ == "bc":
        cfg.continuous = kind != "discrete"
        if cfg.continuous:
            cfg.model.action_space = kind
    return cfg, shapes


@pytest.mark.parametrize(("type_", "kind"), DECLARED)
def test_networks_of_this_package_are_as_declared(type_, kind):
    cfg, shapes = described(type_, kind)
    policy = create_policy(cfg)
    assert policy.network_calls == policy.networks[kind]
    try_network(policy, model_of(policy), shapes, np.zeros(4, np.float32))


TEAM = dict(agent_num=3, agent_obs_shape=4, global_obs_shape=5, action_shape=2)
#: What an agent of the team sees, and what all know.
SEEN = {
    "agent_state": np.zeros((3, 4), np.float32),
    "global_state": np.zeros(5, np.float32),
    "action_mask": np.ones((3, 2), np.float32),
}


def team_policy(type_, action_space, model=None):
    cfg = POLICY_REGISTRY.get(type_).default_config()
    cfg = deep_merge_dicts(cfg, EasyDict(multi_agent=True, model=TEAM))
    cfg.model.pop("obs_shape", None)
    if action_space in ("discrete", "continuous"):
        cfg.action_space = action_space
    cfg.model.action_space = action_space
    return create_policy(cfg, model=model)


@pytest.mark.parametrize(
    ("type_", "action_space"),
    [
        ("ppo", "discrete"),
        ("ppo", "continuous"),
        ("a2c", "discrete"),
        ("ddpg", "regression"),
        ("td3", "regression"),
        ("sac", "reparameterization"),
        ("discrete_sac", "discrete"),
    ],
)
def test_networks_of_teams_are_as_declared(type_, action_space):
    policy = team_policy(type_, action_space)
    try_network(policy, model_of(policy), TEAM, SEEN)


class Voices(nn.Module):
    """A network for a team, whose critic returns a given value."""

    def __init__(self, value):
        super().__init__()
        self.actor, self.critic, self.value = nn.Linear(4, 2), nn.Linear(5, 1), value

    def forward(self, x, mode):
        return getattr(self, mode)(x)

    def compute_actor(self, x):
        return {"logit": self.actor(x["agent_state"])}

    def compute_critic(self, x):
        return {"value": self.critic(x["global_state"]).reshape(-1, *self.value)}

    def compute_actor_critic(self, x):
        return {**self.compute_actor(x), **self.compute_critic(x)}


def test_a_critic_of_a_team_says_something_of_each_agent():
    words = (
        "PPO's model must return {'value': [B, 3]} from forward(obs {'agent_state': [B, 3, 4], "
        "'global_state': [B, 5], 'action_mask': [B, 3, 2]}, mode='compute_critic'); "
        "Voices.forward returned {'value': a tensor [B, 1]}: 'value' has to have the shape [B, 3]"
    )
    policy = team_policy("ppo", "discrete", Voices((1,)))
    with pytest.raises(ConfigError, match=re.escape(words)):
        policy.check_network(TEAM, SEEN)


class Looks(nn.Module):
    """Takes a dict of observations."""

    def __init__(self, actions):
        super().__init__()
        self.layer = nn.Linear(4, actions)

    def forward(self, obs):
        return {"logit": self.layer(torch.cat([obs["near"], obs["far"]], -1))}


def test_observations_of_several_arrays_are_tried():
    obs = {"near": np.zeros(1, np.float32), "far": np.zeros(3, np.float64)}
    cfg, shapes = DQNPolicy.default_config(), {"action_shape": 2}
    DQNPolicy(cfg, model=Looks(2)).check_network(shapes, obs)
    words = "{'logit': [B, 2]} from forward(obs {'near': [B, 1], 'far': [B, 3]})"
    with pytest.raises(ConfigError, match=re.escape(words)):
        DQNPolicy(DQNPolicy.default_config(), model=Looks(5)).check_network(
            {"action_shape": 2}, obs
        )


class Memory(nn.Module):
    """A recurrent network that returns given outputs, for one step or several."""

    def __init__(self, **outputs):
        super().__init__()
        self.outputs, self.layer = outputs, nn.Linear(4, 2)

    def forward(self, inputs, inference=False):
        assert len(inputs["prev_state"]) == inputs["obs"].shape[-2]
        usual = {"logit": self.layer(inputs["obs"]), "next_state": [torch.ones(2)] * 3}
        return {**usual, **self.outputs}


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (dict(next_state=[None] * 3), "R2D2's model must return {'logit': [B, 2], 'next_state': "
         "[state] * B} from forward({'obs': [B, 4], 'prev_state': [state] * B}, inference=True); "
         "Memory.forward returned {'logit': a tensor [B, 2], 'next_state': [NoneType, NoneType, "
         "NoneType]}: 'next_state' has to be a list with a state for each of the B rows"),
        (dict(next_state=torch.zeros(1, 3, 2)), "'next_state' has to be a list"),
        (dict(logit=torch.zeros(3, 2)), "must return {'logit': [T, B, 2], 'next_state': [state] * "
         "B} from forward({'obs': [T, B, 4], 'prev_state': [state] * B}); Memory.forward"),
    ],
)  # fmt: skip
def test_recurrent_networks_are_tried(outputs, words):
    build(R2D2Policy, Memory())
    with pytest.raises(ConfigError, match=re.escape(words)):
        build(R2D2Policy, Memory(**outputs))


def build(cls, model, **overrides):
    shapes = dict(model=dict(obs_shape=4, action_shape=2))
    cfg = deep_merge_dicts(cls.default_config(), EasyDict(deep_merge_dicts(shapes, overrides)))
    return cls(cfg, model=model)


class Net(nn.Module):
    """Returns given outputs, by mode."""

    def __init__(self, **outputs):
        super().__init__()
        self.outputs = outputs
        self.actor = self.critic = nn.Linear(4, 2)

    def forward(self, x, mode="logit"):
        rows = len(x["obs"] if isinstance(x, dict) else x)
        return self._of(rows, self.outputs[mode])

    def _of(self, rows, shape):
        if isinstance(shape, dict):
            return {name: self._of(rows, part) for name, part in shape.items()}
        if isinstance(shape, list):
            return [self._of(rows, part) for part in shape]
        return torch.zeros(rows, *shape)


ACTOR = {"mu": (2,), "sigma": (2,)}


@pytest.mark.parametrize(
    ("cls", "outputs", "words"),
    [
        (DQNPolicy, dict(logit=(1, 2)), "DQN's model must return {'logit': [B, 2]} from "
         "forward(obs [B, 4]); Net.forward returned a tensor [B, 1, 2]: return a dict"),
        (DQNPolicy, dict(logit={"logit": (1, 2)}), "returned {'logit': a tensor [B, 1, 2]}: take "
         "the axis of size 1 out of 'logit', as with .squeeze(1)"),
        (DQNPolicy, dict(logit={"q": (2,)}), "it lacks 'logit'"),
        (PPOPolicy, dict(compute_actor={"logit": (2,)}, compute_critic={"value": (1,)},
                         compute_actor_critic={"logit": (2,), "value": ()}),
         "PPO's model must return {'value': [B]} from forward(obs [B, 4], mode='compute_critic'); "
         "Net.forward returned {'value': a tensor [B, 1]}: take the axis of size 1 out of 'value'"),
        (SACPolicy, dict(compute_actor={"logit": ACTOR}, compute_critic={"q_value": ()}),
         "'logit' has to be mu and sigma, ([B, A], [B, A])"),
        (DDPGPolicy, dict(compute_actor={"action": (2,)}, compute_critic={"q_value": [(), (1,)]}),
         "from forward({'obs': [B, 4], 'action': [B, 2]}, mode='compute_critic')"),
    ],
)  # fmt: skip
def test_what_would_fail_is_refused_with_its_cure(cls, outputs, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        build(cls, Net(**outputs))


@pytest.mark.parametrize(
    ("cls", "outputs"),
    [
        (DQNPolicy, dict(logit={"logit": (2,), "more": (9, 9)})),
        (DQNPolicy, dict(logit={"logit": [(2,), (3,)]})),  # several choices
        (SACPolicy, dict(compute_actor={"logit": [(2,), (2,)]},
                         compute_critic={"q_value": [(), ()]})),
        (DDPGPolicy, dict(compute_actor={"action": (2,)}, compute_critic={"q_value": ()})),
    ],
)  # fmt: skip
def test_what_works_passes(cls, outputs):
    build(cls, Net(**outputs))


class Other(nn.Module):
    """Of other shapes than the config says."""

    def __init__(self, obs_size, actions):
        super().__init__()
        self.layer, self.norm = nn.Linear(obs_size, actions), nn.BatchNorm1d(actions)
        self.noise = nn.Dropout(0.5)

    def forward(self, x):
        return {"logit": self.noise(self.norm(self.layer(x)))}


def test_a_config_need_not_know_the_shapes_of_an_own_network():
    build(DQNPolicy, Other(7, 2))
    build(DQNPolicy, Other(4, 5))
    DQNPolicy(DQNPolicy.default_config(), model=Other(7, 5))


def test_nothing_changes():
    network = Other(4, 2)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    build(DQNPolicy, network)
    assert torch.equal(torch.rand(3), expected)
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_policies_of_users_ask_for_what_they_like():
    class Mine(DQNPolicy):
        pass

    build(Mine, Net(logit=(1, 2)))


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (Other(7, 2), "from forward(obs [B, 4]); Other.forward failed with RuntimeError: mat1"),
        (Other(4, 3), "'logit' has to have the shape [B, 2]"),
    ],
)
def test_environments_know_the_shapes(network, words):
    main = dict(
        exp_name="run",
        env=dict(env_id="CartPole-v1", collector_env_num=1, evaluator_env_num=1),
        policy=dict(collect=dict(n_sample=8)),
    )
    create = dict(
        env=dict(type="gymnasium"), env_manager=dict(type="base"), policy=dict(type="dqn")
    )
    with pytest.raises(ConfigError, match=re.escape(words)):
        serial_pipeline((main, create), model=network, max_train_iter=1)
    serial_pipeline((main, create), model=Other(4, 2), max_train_iter=1)


@pytest.mark.parametrize("name", ["sac", "bcq", "td3", "iql", "dqn", "ppo"])
def test_a_trained_network_can_keep_its_weights(name):
    policy = batches.build(name, learn=dict(ppo_param_init=False, init_w=None))
    network = model_of(policy)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(0.5)
    type(policy)(policy.cfg, model=network)
    assert all(parameter.eq(0.5).all() for parameter in network.parameters())
