"""Soft Q-learning with two networks, against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from ding.policy.sql import SQNPolicy
from ding.utils.errors import ConfigError
from tests.policy.attributes import collects, evaluates
from tests.policy.batches import make, steps

TABLES = [[[1.0, 2.0], [3.0, 4.0]], [[0.5, 3.0], [5.0, 1.0]]]


class TwoTables(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.Parameter(torch.tensor(TABLES))

    def forward(self, x):
        values = [table[x[:, 0].long()] for table in self.tables]
        return {"q_value": values, "logit": torch.minimum(*values)}


def build(network=None, **overrides):
    return make(SQNPolicy, network, **overrides)


def samples():
    return steps([0.0, 0.0], [1.0, 1.0], [0, 1], [[1.0], [1.0]], [False, True])


def test_loss_by_hand():
    alpha = 0.5
    learn = dict(alpha=alpha, target_entropy=0.3, learning_rate_alpha=0.01)
    policy = build(TwoTables(), discount_factor=0.5, learn=learn)
    log = policy.learn_mode.forward(samples())
    soft = alpha * math.log(math.exp(3 / alpha) + math.exp(1 / alpha))
    errors = [
        [1 + 0.5 * soft - 1.0, 1 - 2.0],
        [1 + 0.5 * soft - 0.5, 1 - 3.0],
    ]
    assert log["priority"].tolist() == pytest.approx(np.abs(errors).mean(0).tolist(), rel=1e-5)
    # Of the lower values (0.5, 2) in both samples.
    p = math.exp(2 / alpha) / (math.exp(2 / alpha) + math.exp(0.5 / alpha))
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert log["entropy"] == pytest.approx(entropy, rel=1e-5)
    wanted = np.square(errors).mean(1).sum() + math.log(alpha) * (entropy - 0.3)
    assert log["total_loss"] == pytest.approx(wanted, rel=1e-5)
    assert log["alpha"] > alpha  # there is too little entropy


def test_actions_follow_the_soft_policy():
    policy = build(TwoTables(), learn=dict(alpha=1.0))
    action = collects(policy, torch.zeros(20_000, 1), eps=0.0)["action"]
    assert action.float().mean().item() == pytest.approx(1 / (1 + math.exp(-1.5)), abs=0.02)
    assert evaluates(policy, torch.zeros(3, 1))["action"].tolist() == [1] * 3
    out = policy.collect_mode.forward({2: torch.zeros(1), 0: torch.zeros(1)}, eps=0.1)
    assert set(out) == {0, 2}


def test_collectors_get_the_temperature():
    policy = build(TwoTables())
    policy.learn_mode.forward(samples())
    third = build(TwoTables())
    third.collect_mode.load_state_dict(policy.collect_mode.state_dict())
    alpha = policy.learn_mode.state_dict()["log_alpha"]
    assert third.collect_mode.state_dict()["log_alpha"] == alpha


def test_old_place_of_nstep():
    assert build(collect=dict(nstep=3)).learn_mode.get_attribute("nstep") == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(learn=dict(alpha=0)), "alpha"),
        (dict(model=dict(obs_shape=3, action_shape=[2, 2])), "one whole number"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        build(**wrong)
