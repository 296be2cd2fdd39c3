import math

import pytest
import torch
from torch import nn

from ding.model.common import (
    DiscreteHead,
    DuelingHead,
    MultiHead,
    RegressionHead,
    ReparameterizationHead,
)
from ding.utils.errors import ConfigError


@pytest.mark.parametrize("head_cls", [DiscreteHead, DuelingHead])
@pytest.mark.parametrize(
    "options",
    [{}, {"layer_num": 0}, {"layer_num": 2, "norm_type": "LN", "dropout": 0.1}, {"noise": True}],
)
def test_discrete_heads(head_cls, options):
    head = head_cls(8, 3, **options)
    assert head(torch.randn(5, 8))["logit"].shape == (5, 3)
    wide = head_cls(8, 3, input_size=6, **options)
    assert wide(torch.randn(2, 5, 6))["logit"].shape == (2, 5, 3)


def test_dueling_subtracts_the_mean_advantage():
    head = DuelingHead(8, 3)
    x = torch.randn(5, 8)
    q = head(x)["logit"]
    value, advantage = head.V(x), head.A(x)
    torch.testing.assert_close(q.mean(-1, keepdim=True), value)
    torch.testing.assert_close(q, value + advantage - advantage.mean(-1, keepdim=True))


def test_dueling_branches_may_differ_in_depth():
    head = DuelingHead(8, 3, a_layer_num=0, v_layer_num=3)
    depths = [sum(isinstance(m, nn.Linear) for m in part.modules()) for part in (head.A, head.V)]
    assert depths == [1, 4]


def test_regression_head_squeezes_a_single_output():
    assert RegressionHead(8, 1)(torch.randn(5, 8))["pred"].shape == (5,)
    head = RegressionHead(8, 2, layer_num=1, final_tanh=True, hidden_size=4)
    pred = head(100 * torch.randn(5, 8))["pred"]
    assert pred.shape == (5, 2)
    assert pred.abs().max() <= 1


@pytest.mark.parametrize("sigma_type", ["fixed", "independent", "conditioned", "happo"])
@pytest.mark.parametrize("bound_type", [None, "tanh"])
def test_gaussian_head(sigma_type, bound_type):
    head = ReparameterizationHead(8, 2, sigma_type=sigma_type, bound_type=bound_type)
    out = head(100 * torch.randn(5, 8))
    assert out["mu"].shape == out["sigma"].shape == (5, 2)
    assert (out["sigma"] > 0).all()
    assert (out["mu"].abs() <= 1).all() == (bound_type == "tanh")


def test_values_of_sigma():
    x = torch.randn(5, 8)
    fixed = ReparameterizationHead(8, 2, sigma_type="fixed", fixed_sigma_value=0.3)
    assert (fixed(x)["sigma"] == torch.tensor(0.3)).all()
    assert not any("sigma" in name for name, _ in fixed.named_parameters())
    independent = ReparameterizationHead(8, 2, sigma_type="independent")
    nn.init.constant_(independent.log_sigma_param, -0.5)
    torch.testing.assert_close(independent(x)["sigma"], torch.full((5, 2), math.exp(-0.5)))
    conditioned = ReparameterizationHead(8, 2, sigma_type="conditioned")
    nn.init.constant_(conditioned.log_sigma_layer.bias, 1000.0)
    torch.testing.assert_close(conditioned(x)["sigma"], torch.full((5, 2), math.exp(2)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma_type": None}, "sigma_type is None; expected one of"),
        ({"sigma_type": "fixd"}, "sigma_type is 'fixd'"),
        ({"sigma_type": "fixed", "bound_type": "relu"}, "bound_type is 'relu'"),
    ],
)
def test_unknown_options_are_named(options, message):
    with pytest.raises(ConfigError, match=message):
        ReparameterizationHead(8, 2, **options)


def test_multi_head_gives_a_list_per_output():
    out = MultiHead(DuelingHead, 8, [2, 3], layer_num=1)(torch.randn(5, 8))
    assert [part.shape for part in out["logit"]] == [(5, 2), (5, 3)]
