"""`policy.learn.mixed_precision`: networks multiply in bfloat16, everything else is float32."""

import copy

import pytest
import torch

from ding.data import tree_map
from ding.data.tree import tree_leaves
from tests.policy.attributes import model_of
from tests.policy.batches import CASES, IDS, build, samples


def update(case, mixed):
    """A policy after an update, and what it has logged."""
    policy = build(*case, learn=dict(mixed_precision=mixed))
    data = tree_map(torch.clone, samples(policy, *case))
    torch.manual_seed(5)
    log = policy.learn_mode.forward(data)
    return policy, (log if isinstance(log, list) else [log])[0]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_every_policy_learns_nearly_the_same(case):
    _, exact = update(case, mixed=False)
    policy, near = update(case, mixed=True)
    assert near.keys() == exact.keys()
    losses = {name for name in exact if "loss" in name and isinstance(exact[name], float)}
    assert losses
    scale = max(abs(exact[name]) for name in losses)
    assert {n: near[n] for n in losses} == pytest.approx(
        {n: exact[n] for n in losses}, rel=0.05, abs=0.03 * scale
    )
    for parameter in model_of(policy).parameters():
        assert parameter.dtype == torch.float32
        assert parameter.isfinite().all()


@pytest.mark.parametrize("case", [("dqn", ""), ("sac", ""), ("r2d2", "")], ids=str)
def test_only_products_are_in_bfloat16(case):
    policy, _ = update(case, mixed=True)
    exact = build(*case)
    own = model_of(policy)
    model_of(exact).load_state_dict(own.state_dict())
    dtypes = []
    linear = next(part for part in own.modules() if isinstance(part, torch.nn.Linear))
    linear.register_forward_hook(lambda *call: dtypes.append(call[-1].dtype))
    policy.learn_mode.forward(samples(policy, *case))
    assert set(dtypes) == {torch.bfloat16}
    assert own.state_dict().keys() == model_of(exact).state_dict().keys()
    assert all(value.dtype != torch.bfloat16 for value in own.state_dict().values())


def test_outputs_are_float32_and_rounded(make_dqn):
    policy, exact = make_dqn(learn=dict(mixed_precision=True)), make_dqn()
    model_of(exact).load_state_dict(model_of(policy).state_dict())
    obs = torch.randn(16, *model_input(policy))
    near, full = model_of(policy)(obs)["logit"], model_of(exact)(obs)["logit"]
    assert near.dtype == torch.float32
    assert not torch.equal(near, full)
    torch.testing.assert_close(near, full, rtol=0.05, atol=0.02)


def test_copies_call_their_own_layers(make_dqn):
    network = model_of(make_dqn(learn=dict(mixed_precision=True)))
    other = copy.deepcopy(network)
    for parameter in other.parameters():
        parameter.data.zero_()
    out = other(torch.ones(2, *model_input(make_dqn())))
    assert all((leaf == 0).all() for leaf in tree_leaves(out))


def model_input(policy):
    return (next(model_of(policy).parameters()).shape[1],)
