"""Conservative Q-learning against numbers worked out by hand and by quadrature."""

import math

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.policy import create_policy
from ding.policy.cql import CQLPolicy, DiscreteCQLPolicy
from ding.policy.qrdqn import QRDQNPolicy
from ding.policy.sac import SACPolicy
from ding.utils import deep_merge_dicts
from ding.utils.errors import ConfigError
from tests.policy.attributes import evaluates
from tests.policy.batches import make, steps
from tests.policy.networks import Linear, TableQuantiles

STILL = dict(learning_rate_q=0.0, learning_rate_policy=0.0, auto_alpha=False)


def build(cls, network=None, seed=0, **overrides):
    overrides.setdefault("model", {"obs_shape": 1, "action_shape": 1})
    return make(cls, network, seed, **overrides)


def gaussian():
    return Linear(0.3, ((1.0, 2.0), (0.5, -1.0)), sigma=1.0)


def transitions(n=2):
    rng = np.random.default_rng(0)
    columns = {
        name: torch.from_numpy(rng.uniform(-1, 1, (n, 1)).astype(np.float32))
        for name in ("obs", "next_obs", "action", "reward")
    }
    return Columns({**columns, "done": np.arange(n) % 2 == 1})


def by_quadrature(critics, data, gaps_to=0.0):
    """What is added to the critics' loss: the sum over critics of the gap."""
    actions = np.linspace(-1, 1, 20_001)
    gaps = []
    for _, d in critics:
        soft_maximum = np.log(2 * np.exp(d * actions).mean())
        gaps.append(np.mean(soft_maximum - d * data.columns["action"].numpy()) - gaps_to)
    return sum(gaps)


def losses(**learn):
    network, data = gaussian(), transitions()
    policy = build(CQLPolicy, network, learn={**STILL, "num_actions": 20_000, **learn})
    log = policy.learn_mode.forward(data)
    return log["critic_loss"] + log.get("twin_critic_loss", 0.0), network, data, policy


def test_penalty_is_the_integral_over_actions():
    plain, *_ = losses(min_q_weight=0.0, num_actions=1, with_q_entropy=False)
    loss, network, data, _ = losses(min_q_weight=2.0)
    # The TD part draws another next action: with discount 0 it would be exact.
    loss0, network, data, _ = losses(min_q_weight=2.0, discount_factor=0.0)
    plain0, *_ = losses(min_q_weight=0.0, discount_factor=0.0, num_actions=1)
    expected = 2 * by_quadrature(network.c.tolist(), data)
    assert loss0 - plain0 == pytest.approx(expected, abs=0.02)
    assert loss == pytest.approx(plain + expected, abs=3)


def test_penalty_moves_q_down_where_there_are_no_data():
    _, network, data, policy = losses(min_q_weight=1.0, discount_factor=0.0)
    batch = {name: data.columns[name] for name in ("obs", "next_obs", "action")}
    for parameter in network.parameters():
        parameter.grad = None
    policy._soft_maximum(batch).mean(-1).sum().backward()
    # d/dd log ∫ exp(d a) da = E[a] under exp(d a), and of c it is the mean of s.
    actions = np.linspace(-1, 1, 20_001)
    for row, (_, d) in zip(network.c.grad.tolist(), network.c.tolist()):
        weight = np.exp(d * actions)
        assert row[0] == pytest.approx(data.columns["obs"].mean().item(), abs=1e-3)
        assert row[1] == pytest.approx((weight * actions).sum() / weight.sum(), abs=0.02)
    assert network.w.grad is None


def test_lagrange_multiplier_follows_the_gap():
    for threshold, rises in ((-5.0, True), (5.0, False)):
        *_, data, policy = losses(with_lagrange=True, lagrange_thresh=threshold)
        policy = build(
            CQLPolicy,
            gaussian(),
            learn=dict(STILL, learning_rate_q=1e-3, with_lagrange=True, lagrange_thresh=threshold),
        )
        for _ in range(5):
            policy.learn_mode.forward(data)
        assert (policy.learn_mode.state_dict()["log_multiplier"].item() > 1e-3) == rises


def test_the_threshold_is_that_of_the_authors():
    """They subtract it from the weighted gap, whose logarithm is of a sum over actions."""
    learn = dict(with_lagrange=True, lagrange_thresh=0.5, discount_factor=0.0)
    with_, network, data, _ = losses(min_q_weight=2.0, **learn)
    plain, *_ = losses(min_q_weight=0.0, discount_factor=0.0, num_actions=1)
    gaps = by_quadrature(network.c.tolist(), data)
    number = 3 * 20_000
    # At multiplier 1, and of two critics.
    assert with_ - plain == pytest.approx(2.0 * (gaps + 2 * math.log(number)) - 2 * 0.5, abs=0.04)


def test_the_multiplier_stays_where_the_weighted_gap_is_the_threshold():
    _, network, data, _ = losses(min_q_weight=0.0, discount_factor=0.0, num_actions=1)
    gap = by_quadrature(network.c.tolist(), data) / 2 + math.log(3 * 20_000)
    for threshold, rises in ((3 * gap - 0.1, True), (3 * gap + 0.1, False)):
        learn = dict(with_lagrange=True, lagrange_thresh=threshold, min_q_weight=3.0)
        *_, policy = losses(**learn, learning_rate_q=1e-3)
        assert (policy.learn_mode.state_dict()["log_multiplier"].item() > 0) == rises


def test_targets_have_no_entropy_unless_wanted():
    learn = dict(STILL, min_q_weight=0.0, alpha=0.7, num_actions=1)
    targets = {}
    for name, cls, more in (
        ("sac", SACPolicy, {}),
        ("with", CQLPolicy, dict(with_q_entropy=True)),
        ("without", CQLPolicy, {}),
    ):
        own = {} if cls is SACPolicy else more
        keys = learn if cls is CQLPolicy else dict(STILL, alpha=0.7)
        policy = build(cls, gaussian(), learn={**keys, **own})
        torch.manual_seed(3)
        targets[name] = policy.learn_mode.forward(transitions())["target_q_value"]
    assert targets["with"] == pytest.approx(targets["sac"])
    assert abs(targets["without"] - targets["sac"]) > 1e-3


def test_mistakes():
    with pytest.raises(ConfigError, match="num_actions is 0"):
        build(CQLPolicy, learn=dict(num_actions=0))
    model = dict(agent_obs_shape=2, global_obs_shape=3, action_shape=1)
    with pytest.raises(ConfigError, match="one agent"):
        build(CQLPolicy, model=model, multi_agent=True)


def test_discrete_cql_by_hand():
    table = [[[0.0, 2.0], [3.0, 5.0]]]
    data = steps([0.0, 0.0], [0.0, 0.0], [0, 1], [[1.0], [0.0]], [True, True])
    logs = []
    for cls, learn in ((QRDQNPolicy, {}), (DiscreteCQLPolicy, dict(min_q_weight=3.0))):
        policy = build(cls, TableQuantiles(table), learn=learn)
        logs.append(policy.learn_mode.forward(data))
    # Values 1 and 4: the soft maximum is log(e + e^4), of which the data's have 1 and 4.
    gap = math.log(math.e + math.exp(4)) - (1 + 4) / 2
    assert logs[1]["total_loss"] - logs[0]["total_loss"] == pytest.approx(3 * gap, rel=1e-5)
    assert logs[1]["priority"].tolist() == logs[0]["priority"].tolist()


def test_discrete_cql_avoids_what_the_data_lack(learned):
    policy = build(
        DiscreteCQLPolicy,
        seed=learned.seed,
        discount_factor=0.9,
        model=dict(obs_shape=1, action_shape=3, encoder_hidden_size_list=[16]),
        learn=dict(learning_rate=0.01),
    )
    ones = [1.0] * 32
    data = steps(ones, ones, [0, 1] * 16, [[0.0], [1.0]] * 16, [True] * 32)
    for _ in range(150):
        policy.learn_mode.forward(data)
    q_value = evaluates(policy, torch.ones(1, 1))["logit"][0]
    learned.is_true(q_value.argmax() == 1, f"{q_value}")
    gap = (q_value[:2].min() - q_value[2]).item()
    learned.at_most(0.5 / gap, 1.0)


def test_by_name():
    for name in ("discrete_cql", "cql_discrete"):
        cfg = deep_merge_dicts(
            DiscreteCQLPolicy.default_config(),
            EasyDict(type=name, model=dict(obs_shape=2, action_shape=2)),
        )
        assert type(create_policy(cfg)) is DiscreteCQLPolicy
