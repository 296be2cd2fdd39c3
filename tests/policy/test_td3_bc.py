"""TD3+BC against numbers worked out by hand."""

import numpy as np
import pytest
import torch
from easydict import EasyDict
from torch import nn

from ding.data import Columns
from ding.policy.ddpg import TD3BCPolicy
from ding.utils import deep_merge_dicts, set_pkg_seed


class Linear(nn.Module):
    """Actor ``a = w s``, critics ``Q = c s + d a``; states and actions are numbers."""

    def __init__(self, critics):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(0.5))
        self.c = nn.Parameter(torch.tensor(critics))
        self.actor, self.critic = nn.ParameterList([self.w]), nn.ParameterList([self.c])

    def forward(self, inputs, mode):
        if mode == "compute_actor":
            return {"action": self.w * inputs}
        obs, action = inputs["obs"][:, 0], inputs["action"][:, 0]
        return {"q_value": [c[0] * obs + c[1] * action for c in self.c]}


def build(cls, network, **overrides):
    overrides.setdefault("model", {"obs_shape": 1, "action_shape": 1})
    set_pkg_seed(0, use_cuda=False)
    cfg = deep_merge_dicts(cls.default_config(), EasyDict(overrides))
    return cls(cfg, model=network)


def samples(obs, action, reward, next_obs, done):
    return Columns(
        {
            "obs": torch.tensor(obs)[:, None],
            "next_obs": torch.tensor(next_obs)[:, None],
            "action": torch.tensor(action)[:, None],
            "reward": torch.tensor(reward)[:, None],
            "done": np.array(done),
        }
    )


def test_td3_bc_by_hand():
    network = Linear(((1.0, 2.0), (1.0, 1.0)))
    learn = dict(learning_rate_actor=0.0, learning_rate_critic=0.0, actor_update_freq=1, alpha=3.0)
    policy = build(TD3BCPolicy, network, learn=learn)
    data = samples([1.0, -3.0], [0.3, 0.0], [1.0, 1.0], [2.0, 2.0], [True, True])
    log = policy.learn_mode.forward(data)
    # Actions 0.5 and -1.5, Q of the first critic 2 and -6: λ = 3 / 4, mean Q -2.
    bc_loss = (0.2**2 + 1.5**2) / 2
    assert log["bc_loss"] == pytest.approx(bc_loss)
    assert log["actor_loss"] == pytest.approx(bc_loss + 0.75 * 2)
    # d/dw: of the data's part 2 (a - a') s, of the critic's -λ d s; λ carries no gradient.
    gradient = (2 * 0.2 * 1 + 2 * -1.5 * -3) / 2 - 0.75 * (2 * 1 + 2 * -3) / 2
    assert network.w.grad.item() == pytest.approx(gradient, rel=1e-5)
