"""R2D3's loss, step by step, of a network whose memory is a sum."""

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.policy import R2D3Policy
from ding.utils import deep_merge_dicts, set_pkg_seed
from tests.policy.attributes import target_of
from tests.policy.test_r2d2 import SumQ, as_samples, errors_by_hand, joined, trajectory

ONLINE, TARGET = np.array([1.0, -0.5]), np.array([-0.25, 0.75])
NONE = dict(lambda_one_step_td=0.0, lambda1=0.0, lambda2=0.0, lambda3=0.0)


def losses(**weights):
    """The log of one sequence of an expert and one of the policy, and their inputs."""
    set_pkg_seed(0, use_cuda=False)
    own = dict(burnin_step=0, learn_unroll_len=4, nstep=3, discount_factor=0.9)
    learn = dict(NONE, value_rescale=False, **weights)
    cfg = deep_merge_dicts(R2D3Policy.default_config(), EasyDict(own, learn=learn))
    policy = R2D3Policy(cfg, model=SumQ(ONLINE.tolist()))
    target_of(policy).update(SumQ(TARGET.tolist()), direct=True)
    rng = np.random.default_rng(0)
    parts = [trajectory(rng, 4, True), trajectory(rng, 4, False)]
    lengths = np.array([4, 4])
    data = as_samples(policy.collect_mode.batched.get_train_columns(joined(parts), lengths))
    data = data.with_columns(is_expert=torch.tensor([1.0, 0.0]), IS=torch.tensor([1.0, 0.5]))
    return policy, policy.learn_mode.forward(data), parts


@pytest.mark.parametrize(("name", "nstep"), [("lambda1", 3), ("lambda_one_step_td", 1)])
def test_errors_of_one_step_and_several(name, nstep):
    policy, log, parts = losses(**{name: 2.0})
    cfg = EasyDict(policy.cfg, nstep=nstep)
    wanted = 0.0
    for part, weight in zip(parts, (1.0, 0.5)):
        errors = errors_by_hand(part, 0, 4, 0, ONLINE, TARGET, cfg, False)
        wanted += weight * 2 * np.square(errors).mean() / 2
    assert log["total_loss"] == pytest.approx(wanted, rel=1e-5)


def test_margin_of_the_expert_alone():
    _, log, parts = losses(lambda2=1.0, margin_function=0.3)
    seen = 0.25 + parts[0]["obs"][:, 0].cumsum()
    short = []
    for total, action in zip(seen, parts[0]["action"]):
        q = total * ONLINE
        margin = np.where(np.arange(2) == action, 0, 0.3)
        short.append((q + margin).max() - q[action])
    assert log["total_loss"] == pytest.approx(np.mean(short) / 2, rel=1e-5)


def test_weights_are_kept_small():
    _, log, _ = losses(lambda3=0.1)
    assert log["total_loss"] == pytest.approx(0.1 * np.square(ONLINE).sum())
