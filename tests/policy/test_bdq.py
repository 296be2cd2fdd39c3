"""Branching Q-learning against numbers worked out by hand."""

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.envs import BaseEnvManager, DingEnvWrapper
from ding.model import BDQ
from ding.policy import BDQPolicy
from ding.policy.fit import check_fit
from ding.utils import deep_merge_dicts, set_pkg_seed
from ding.utils.errors import ConfigError
from tests.policy.attributes import collects
from tests.policy.batches import steps
from tests.policy.networks import Table

# By state, branch and choice.
TABLE = [[[1.0, 2.0], [0.0, 3.0]], [[4.0, 2.0], [1.0, 5.0]]]


def build(network=None, seed=0, **overrides):
    set_pkg_seed(seed, use_cuda=False)
    model = dict(obs_shape=3, num_branches=2, action_bins_per_branch=3)
    overrides["model"] = {**model, **overrides.get("model", {})}
    cfg = deep_merge_dicts(BDQPolicy.default_config(), EasyDict(overrides))
    return BDQPolicy(cfg, model=network)


def test_loss_by_hand():
    policy = build(Table(TABLE), discount_factor=0.5, nstep=2)
    rewards, gamma = [[1.0, 2.0], [3.0, 0.0]], torch.tensor([0.25, 0.5])
    data = steps(
        *([0.0, 0.0], [1.0, 1.0], [[0, 1], [1, 0]], rewards, [False, True]), value_gamma=gamma
    )
    log = policy.learn_mode.forward(data)
    # The next state has (4 + 5) / 2. Targets: 1 + 0.5 * 2 + 0.25 * 4.5, and 3.
    first, second = 3.125 - np.array([1, 3]), 3 - np.array([2, 0])
    assert log["priority"].tolist() == pytest.approx([np.abs(first).sum(), np.abs(second).sum()])
    losses = [np.square(first).mean(), np.square(second).mean()]
    assert log["total_loss"] == pytest.approx(np.mean(losses))


def test_the_head_has_one_value_and_centred_advantages():
    network = BDQ(3, 4, 5, layer_num=2, a_layer_num=1)
    x = torch.randn(6, 3)
    q = network(x)["logit"]
    assert q.shape == (6, 4, 5)
    value = network.head.V(network.encoder(x))
    assert torch.allclose(q.mean(-1), value.expand(6, 4), atol=1e-5)


@pytest.mark.parametrize("branches", [1, 3])
def test_modes(branches, learned):
    policy = build(seed=learned.seed, model=dict(num_branches=branches))
    obs = {0: torch.randn(3), 4: torch.randn(3)}
    for mode, kwargs in ((policy.collect_mode, {"eps": 0.5}), (policy.eval_mode, {})):
        out = mode.forward(obs, **kwargs)
        assert out[4]["action"].shape == (branches,)
        assert out[4]["logit"].shape == (branches, 3)
    actions = collects(policy, torch.zeros(3000, 3), eps=1.0)["action"]
    counts = torch.stack([(actions == i).float().mean(0) for i in range(3)])
    assert torch.allclose(counts, torch.tensor(1 / 3), atol=0.05)
    rows = [
        {
            "obs": torch.randn(3),
            "next_obs": torch.randn(3),
            "action": torch.randint(3, (branches,)),
            "reward": torch.rand(1),
            "done": i == 7,
        }
        for i in range(8)
    ]
    samples = policy.collect_mode.get_train_sample(rows)
    losses = [policy.learn_mode.forward(samples)["total_loss"] for _ in range(80)]
    learned.at_most(losses[-1] / losses[0], 0.5)


@pytest.mark.parametrize("wrong", [dict(num_branches=0), dict(action_bins_per_branch=1)])
def test_no_choice_is_refused(wrong):
    with pytest.raises(ConfigError, match="num_branches"):
        build(model=wrong)


def test_branches_have_to_fit_the_environments():
    cfg = dict(
        env_id="Pendulum-v1", env_wrapper=[dict(type="discretize_action", kwargs=dict(bins=5))]
    )
    env = BaseEnvManager(
        [lambda: DingEnvWrapper(cfg=EasyDict(cfg))], BaseEnvManager.default_config()
    )
    env.launch()
    policy = EasyDict(type="bdq", model=dict(obs_shape=3, num_branches=1, action_bins_per_branch=5))
    check_fit(policy, env)
    policy.model.action_bins_per_branch = 4
    with pytest.raises(ConfigError, match=r"action_bins_per_branch=4 .*set it to 5"):
        check_fit(policy, env)
    env.close()
