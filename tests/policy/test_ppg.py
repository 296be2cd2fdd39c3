"""Phasic policy gradient against numbers worked out by hand, and its phases."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Categorical, Normal, kl_divergence

from ding.model import PPG
from ding.policy import PPGOffPolicy, PPGPolicy
from ding.rl_utils.log_prob_utils import kl
from ding.utils.errors import ConfigError, DataError
from tests.policy.attributes import model_of
from tests.policy.batches import collected, make as build, rollout

BOTH = [PPGPolicy, PPGOffPolicy]


def samples(obs, *args):
    return rollout(obs, *args, logit=torch.zeros(len(obs), 2))


class Number(nn.Module):
    """Gives its number, times the first number of the observation."""

    def __init__(self, number):
        super().__init__()
        self.number = nn.Parameter(torch.tensor(number))

    def forward(self, x):
        return x[:, 0] * self.number


class FixedActor(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits = nn.ParameterList([torch.tensor([0.0, math.log(3)])])
        self.critic_head = Number(0.5)


class Fixed(nn.Module):
    """Probabilities 1/4 and 3/4; values are 0.5 of the observation, and 1 of it."""

    def __init__(self):
        super().__init__()
        self.actor_critic = FixedActor()
        self.aux_critic = Number(1.0)

    def forward(self, x, mode):
        if mode == "compute_critic":
            return {"value": self.aux_critic(x)}
        output = {"logit": self.actor_critic.logits[0].expand(len(x), 2)}
        if mode == "compute_actor_critic":
            output["value"] = self.actor_critic.critic_head(x)
        return output


def trajectory(policy, obs=None):
    """What collectors make of one trajectory, acted by the policy."""
    if obs is None:
        obs = np.random.default_rng(0).normal(size=(32, 3)).astype(np.float32)
    return collected(policy, obs, range(len(obs)), [len(obs)], ends=False)


@pytest.mark.parametrize("cls", BOTH)
def test_policy_phase_by_hand(cls):
    network = Fixed()
    policy = build(cls, network, learn=dict(learning_rate=0.0, aux_freq=2))
    logs = policy.learn_mode.forward(samples([1.0, 2.0], [1, 0], [2.0, -2.0]))
    (log,) = logs if cls is PPGPolicy else (logs,)
    # Ratios 1.5, of which 1.2 count, and 0.5, of which 0.8 counts.
    policy_loss = -(1.2 * 2 - 0.8 * 2) / 2
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert log["policy_loss"] == pytest.approx(policy_loss, rel=1e-5)
    assert log["actor_loss"] == pytest.approx(policy_loss - 0.01 * entropy, rel=1e-5)
    # Returns are value + adv, so that the value's error is adv.
    assert log["value_loss"] == pytest.approx(0.5 * (2.0**2 + 2.0**2) / 2)
    assert log["total_loss"] == pytest.approx(log["actor_loss"] + 0.5 * 2)
    # The value head has no part in it, and the value network its own loss alone.
    assert network.actor_critic.critic_head.number.grad is None
    assert network.aux_critic.number.grad.item() == pytest.approx(0.5 * -(2 * 1 - 2 * 2) / 2)


@pytest.mark.parametrize("world_size", [1, 2])
def test_policy_phases_leave_a_value_head_where_it_is(monkeypatch, world_size):
    network = Fixed()
    policy = build(PPGPolicy, network, learn=dict(aux_freq=2))
    monkeypatch.setattr(policy, "_joint", world_size > 1)
    monkeypatch.setattr("ding.policy.learning.get_world_size", lambda: world_size)
    monkeypatch.setattr("ding.policy.learning.allreduce_data", lambda number, _: 2 * number)
    learned = []
    for _ in range(3):  # an auxiliary phase is in the second
        policy.learn_mode.forward(samples([1.0, 2.0], [1, 0], [2.0, -2.0]))
        learned.append(network.actor_critic.critic_head.number.item())
    assert learned[0] == 0.5 != learned[1] == learned[2]


@pytest.mark.parametrize("cls", BOTH)
def test_auxiliary_phase_by_hand(cls):
    network = Fixed()
    learn = dict(learning_rate=0.0, aux_freq=2, aux_train_epoch=1, batch_size=4)
    policy = build(cls, network, learn=learn)
    first, second = samples([1.0], [1], [2.0]), samples([2.0], [0], [4.0])
    logs = [policy.learn_mode.forward(part) for part in (first, second)]
    logs = [log if isinstance(log, dict) else log[-1] for log in logs]
    assert "auxiliary_loss" not in logs[0]
    # Returns 3 and 6 against 0.5 and 1, and against 1 and 2.
    assert logs[1]["auxiliary_loss"] == pytest.approx(0.5 * (2.5**2 + 5.0**2) / 2)
    assert logs[1]["aux_value_loss"] == pytest.approx(0.5 * (2.0**2 + 4.0**2) / 2)
    # The policy is the one of the phase's beginning.
    assert logs[1]["behavioral_cloning_loss"] == pytest.approx(0, abs=1e-7)
    assert network.actor_critic.critic_head.number.grad.item() == pytest.approx(-(2.5 + 2 * 5) / 2)
    assert network.aux_critic.number.grad.item() == pytest.approx(-(2 + 2 * 4) / 2)
    assert policy.learn_mode.state_dict()["auxiliary"]["phases"] == 0


def test_older_names_of_the_auxiliary_phase_count():
    learn = dict(aux_freq=1, epochs_aux=3, beta_weight=0.0, learning_rate=0.0)
    policy = build(PPGOffPolicy, Fixed(), learn=learn)
    policy.learn_mode.forward(samples([1.0], [1], [2.0]))
    # A step in the policy phase, and three in the auxiliary one.
    (state,) = policy.learn_mode.state_dict()["optimizer_aux_critic"]["state"].values()
    assert state["step"] == 4


@pytest.mark.parametrize(("weight", "moves"), [(0.0, True), (1000.0, False)])
def test_auxiliary_phase_holds_the_policy(weight, moves):
    learn = dict(aux_freq=1, aux_train_epoch=30, aux_bc_weight=weight, actor_epoch_per_collect=0)
    policy = build(PPGPolicy, learn=learn)
    data = trajectory(policy)
    obs = torch.as_tensor(data.columns["obs"])
    before = model_of(policy)(obs, mode="compute_actor")["logit"]
    log = policy.learn_mode.forward(data)[-1]
    after = model_of(policy)(obs, mode="compute_actor")["logit"]
    change = kl(before, after).mean().item()
    assert change > 1e-3 if moves else change < 1e-4
    assert math.isfinite(log["behavioral_cloning_loss"])


def test_divergences():
    torch.manual_seed(0)
    old, new = torch.randn(2, 5, 3)
    expected = kl_divergence(Categorical(logits=old), Categorical(logits=new))
    assert torch.allclose(kl(old, new), expected, atol=1e-6)
    assert torch.allclose(kl([old, new], [new, new]), expected, atol=1e-6)
    old, new = ({"mu": torch.randn(5, 2), "sigma": torch.rand(5, 2) + 0.1} for _ in range(2))
    expected = kl_divergence(Normal(*old.values()), Normal(*new.values())).sum(-1)
    assert torch.allclose(kl(old, new), expected, rtol=1e-4)


def test_collected_values_are_the_value_networks():
    policy = build(PPGPolicy)
    with torch.no_grad():
        model_of(policy).aux_critic[1].last.bias += 5
    obs = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    value = policy.collect_mode.batched.forward(obs)["value"]
    expected = model_of(policy)(torch.from_numpy(obs), mode="compute_critic")["value"]
    assert torch.equal(value, expected.detach())
    inner = model_of(policy)(torch.from_numpy(obs), mode="compute_actor_critic")["value"]
    assert (value - inner).mean().item() == pytest.approx(5, abs=1e-4)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", ["discrete", "several", "continuous"])
def test_action_spaces(cls, kind):
    space = "continuous" if kind == "continuous" else "discrete"
    shape = [2, 3] if kind == "several" else 2
    model = dict(obs_shape=3, action_shape=shape, action_space=space)
    policy = build(cls, action_space=space, model=model, learn=dict(aux_freq=1, aux_train_epoch=2))
    logs = policy.learn_mode.forward(trajectory(policy))
    last = logs[-1] if isinstance(logs, list) else logs
    assert all(math.isfinite(value) for value in last.values())
    assert set(policy.learn_mode.monitor_vars()) <= set(last)


def test_large_memories_stay_out_of_checkpoints(monkeypatch):
    monkeypatch.setattr("ding.policy.ppg._MOST_BYTES", 100)
    policy, other = (
        build(PPGPolicy, learn=dict(aux_freq=2)),
        build(PPGPolicy, learn=dict(aux_freq=2)),
    )
    policy.learn_mode.forward(trajectory(policy))
    state = policy.learn_mode.state_dict()
    assert state["auxiliary"] == {"phases": 1, "parts": []}
    other.learn_mode.load_state_dict(copy.deepcopy(state))
    assert "aux_value_loss" in other.learn_mode.forward(trajectory(other))[-1]


def test_images_are_kept_as_bytes():
    model = dict(obs_shape=[3, 64, 64], action_shape=2, encoder_hidden_size_list=[4, 4, 8])
    policy = build(PPGPolicy, model={**model, "impala_cnn_encoder": True}, learn=dict(aux_freq=2))
    obs = np.random.default_rng(0).integers(0, 255, (4, 3, 64, 64), dtype=np.uint8)
    for _ in range(2):
        assert policy.learn_mode.forward(trajectory(policy, obs=obs))
        memory = policy.learn_mode.state_dict()["auxiliary"]
        assert all(part["obs"].dtype == torch.uint8 for part in memory["parts"])


@pytest.mark.parametrize("cls", BOTH)
def test_what_cannot_be(cls):
    for wrong in ({"priority": True}, {"multi_agent": True}, {"action_space": "hybrid"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            build(cls, **wrong)
    with pytest.raises(DataError, match="adv"):
        build(cls, Fixed()).learn_mode.forward(samples([1.0, 2.0], [1, 0], [math.nan, 1.0]))

    class NoParts(nn.Module):
        def forward(self, x, mode):
            return {}

    with pytest.raises(ConfigError, match="aux_critic"):
        build(cls, NoParts())


@pytest.mark.parametrize("cls", BOTH)
def test_an_own_network_needs_the_declared_parts_alone(cls):
    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor_critic, self.aux_critic = nn.Linear(3, 3), nn.Linear(3, 1)

        def forward(self, x, mode):
            if mode == "compute_critic":
                return {"value": self.aux_critic(x).squeeze(-1)}
            output = self.actor_critic(x)
            value = {} if mode == "compute_actor" else {"value": output[:, 2]}
            return {"logit": output[:, :2], **value}

    policy = build(cls, Mine(), learn=dict(aux_freq=1))
    assert {call.mode for call in policy.network_calls} == {
        *("compute_actor", "compute_critic", "compute_actor_critic")
    }
    assert policy.learn_mode.forward(trajectory(policy))


def test_network_shares_nothing_between_its_two():
    network = PPG(4, 2, share_encoder=True)
    parts = [set(map(id, part.parameters())) for part in (network.actor_critic, network.aux_critic)]
    assert not parts[0] & parts[1]
    with pytest.raises(ValueError, match="compute_all"):
        network(torch.zeros(1, 4), mode="compute_all")
