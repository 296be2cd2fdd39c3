"""Learning from demonstrations: the loss by hand, and where samples come from."""

import numpy as np
import pytest
import torch

from ding.data import Columns
from ding.policy import DQFDPolicy
from tests.policy.batches import make
from tests.policy.networks import Table

TABLE = [[1.0, 2.0, 0.0], [3.0, 4.0, -1.0], [0.5, 6.0, 2.0]]


def build(network=None, **overrides):
    defaults = dict(nstep=2, discount_factor=0.5, model={"obs_shape": 1, "action_shape": 3})
    return make(DQFDPolicy, network, **{**defaults, **overrides})


def samples():
    """An own sample, and an expert's that ends after its first step."""

    def states(*numbers):
        return torch.tensor(numbers, dtype=torch.float32)[:, None]

    return Columns(
        {
            "obs": states(0, 1),
            "next_obs_1step": states(1, 2),
            "next_obs": states(2, 2),
            "action": torch.tensor([1, 0]),
            "reward": torch.tensor([[1.0, 2.0], [4.0, 0.0]]),
            "done": np.array([False, True]),
            "done_1step": np.array([False, True]),
            "value_gamma": torch.tensor([0.25, 0.5]),
            "is_expert": torch.tensor([0.0, 1.0]),
            "IS": torch.tensor([1.0, 0.5]),
        }
    )


@pytest.mark.parametrize(
    ("weights", "part"),
    [
        # One step: 1 + 0.5 * 4 against 2, and 4 against 3.
        (dict(lambda_one_step_td=1.0), (1.0 + 0.5 * 1.0) / 2),
        # Two: 1 + 0.5 * 2 + 0.25 * 6 against 2, and 4 against 3.
        (dict(lambda1=2.0), 2 * (1.5**2 + 0.5 * 1.0) / 2),
        # The expert's action has 3, another 4, and is to be 0.8 better.
        (dict(lambda2=1.0), 0.5 * 1.8 / 2),
        (dict(lambda2=1.0, margin_function=2.5), 0.5 * 3.5 / 2),
        (dict(lambda3=0.1), 0.1 * float(np.square(TABLE).sum())),
    ],
)
def test_parts_of_the_loss(weights, part):
    none = dict(lambda_one_step_td=0.0, lambda1=0.0, lambda2=0.0, lambda3=0.0)
    policy = build(Table(TABLE), learn={**none, **weights})
    log = policy.learn_mode.forward(samples())
    assert log["total_loss"] == pytest.approx(part, rel=1e-5)
    assert log["priority"].tolist() == pytest.approx([1.0 + 0.001, 1.0 + 1.0])


def test_the_margin_spares_what_is_best_by_far():
    alone = dict(lambda_one_step_td=0.0, lambda1=0.0, lambda3=0.0, margin_function=0.8)
    policy = build(Table(TABLE), learn=alone)
    data = samples().with_columns(action=np.array([1, 1]), is_expert=np.ones(2, np.float32))
    # 2 against 1 + 0.8, 4 against 3 + 0.8: nothing is short.
    assert policy.learn_mode.forward(data)["total_loss"] == 0
    data = data.with_columns(action=np.array([0, 0]))
    assert policy.learn_mode.forward(data)["total_loss"] > 0


def test_samples_have_the_next_step_and_the_nth():
    policy = build(nstep=3)
    columns = {
        "obs": np.arange(5, dtype=np.float32)[:, None],
        "next_obs": np.arange(1, 6, dtype=np.float32)[:, None],
        "action": np.zeros(5, np.int64),
        "reward": np.ones(5, np.float32),
        "done": np.array([False] * 4 + [True]),
    }
    out = policy.collect_mode.batched.get_train_columns(columns, np.array([5]))
    assert out["next_obs"][:, 0].tolist() == [3, 4, 5, 5, 5]
    assert out["next_obs_1step"][:, 0].tolist() == [1, 2, 3, 4, 5]
    assert out["done_1step"].tolist() == [False] * 4 + [True]
    assert out["done"].tolist() == [False, False, True, True, True]
    assert out["is_expert"].tolist() == [0] * 5


def test_several_action_parts():
    policy = build(model=dict(obs_shape=1, action_shape=[2, 3]))
    data = samples().with_columns(action=torch.tensor([[1, 2], [0, 1]]))
    log = policy.learn_mode.forward(data)
    assert np.isfinite(log["total_loss"])
    assert log["priority"].shape == (2,)
