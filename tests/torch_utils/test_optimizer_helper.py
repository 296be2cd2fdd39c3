"""Optimisers with limits on the gradient."""

import copy
import math
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
from torch import nn

import ding
from ding.torch_utils import (
    Adam,
    PCGrad,
    RMSprop,
    calculate_grad_norm,
    calculate_grad_norm_without_bias_two_norm,
    configure_weight_decay,
    fused_adam,
)
from ding.utils.errors import DataError


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, clip=None) -> list:
    torch.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(torch.randn(8, 3)) ** 2).sum().backward()
        if clip is not None:
            clip(model.parameters())
        optimizer.step()
    return [param.detach().clone() for param in model.parameters()]


def assert_same(left: list, right: list) -> None:
    for a, b in zip(left, right):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def vector(grad: list[float], **options) -> tuple[nn.Parameter, Adam]:
    param = nn.Parameter(torch.zeros(len(grad)))
    param.grad = torch.tensor(grad)
    return param, Adam([param], lr=0.0, **options)


@pytest.mark.parametrize(
    ("ours", "torchs", "options"),
    [
        (Adam, torch.optim.Adam, {}),
        (Adam, torch.optim.Adam, {"weight_decay": 0.1, "amsgrad": True}),
        (RMSprop, torch.optim.RMSprop, {"momentum": 0.5, "centered": True}),
    ],
)
def test_without_limits_equals_torch(ours, torchs, options) -> None:
    a, b = net(), net()
    assert_same(
        train(a, ours(a.parameters(), lr=0.01, **options), 5),
        train(b, torchs(b.parameters(), lr=0.01, **options), 5),
    )


@pytest.mark.parametrize("amsgrad", [False, True])
def test_kept_lists_follow_what_changes(amsgrad: bool) -> None:
    """Learning rate, missing gradients, new groups, a new state: as torch's own at each step."""
    pairs = []
    for make in (Adam, torch.optim.Adam):
        model, extra = net(), nn.Parameter(torch.ones(2))
        optimizer = make(model.parameters(), lr=0.01, amsgrad=amsgrad)
        pairs.append((model, extra, optimizer))

    def both(change) -> None:
        for model, extra, optimizer in pairs:
            change(model, extra, optimizer)
            torch.manual_seed(1)
            for _ in range(3):
                optimizer.zero_grad()
                out = model(torch.randn(8, 3))
                (out**2).sum().backward()
                extra.grad = torch.ones(2)
                model[0].bias.grad = None if skip else model[0].bias.grad
                optimizer.step()
        params = [[*model.parameters(), extra] for model, extra, _ in pairs]
        for ours, theirs in zip(*params):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)

    skip = False
    both(lambda model, extra, optimizer: None)
    both(lambda model, extra, optimizer: optimizer.param_groups[0].update(lr=0.05))
    skip = True
    both(lambda model, extra, optimizer: None)
    skip = False
    both(lambda model, extra, optimizer: optimizer.add_param_group({"params": [extra]}))
    saved = copy.deepcopy(pairs[0][2].state_dict())
    both(lambda model, extra, optimizer: None)
    both(lambda model, extra, optimizer: optimizer.load_state_dict(copy.deepcopy(saved)))
    both(lambda model, extra, optimizer: optimizer.state.clear())


@pytest.mark.parametrize("make", [Adam, RMSprop])
def test_groups_may_hold_generators(make) -> None:
    model = net()
    optimizer = make([{"params": model.parameters(), "lr": 0.5}, {"params": net()[0].weight}])
    assert [len(group["params"]) for group in optimizer.param_groups] == [4, 1]
    named = make(net().named_parameters())
    assert len(named.param_groups[0]["params"]) == 4


def test_decoupled_decay_equals_adamw() -> None:
    a, b = net(), net()
    assert_same(
        train(a, Adam(a.parameters(), 0.01, weight_decay=0.3, optim_type="adamw"), 5),
        train(b, torch.optim.AdamW(b.parameters(), 0.01, weight_decay=0.3), 5),
    )


@pytest.mark.slow
def test_torch_compiler_is_not_imported() -> None:
    code = """
import sys, torch
from ding.torch_utils import Adam, RMSprop
for make in Adam, RMSprop:
    model = torch.nn.Linear(2, 1)
    optimizer = make(model.parameters(), grad_clip_type="clip_norm", clip_value=1.0)
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50, env=_with_package())


def _with_package() -> dict[str, str]:
    root = Path(ding.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(root)}


def test_closure_and_hooks() -> None:
    param, optimizer = vector([9.0], grad_clip_type="clip_value", clip_value=1.0)
    calls: list[str] = []
    optimizer.register_step_pre_hook(lambda *args: calls.append("pre"))
    optimizer.register_step_post_hook(lambda *args: calls.append("post"))

    def closure() -> float:
        optimizer.zero_grad()
        (5 * param.sum() + 1).backward()
        return 7.0

    assert optimizer.step(closure) == 7.0
    assert param.grad.tolist() == [1.0]
    assert calls == ["pre", "post"]
    optimizer.zero_grad(set_to_none=False)
    assert param.grad.tolist() == [0.0]


def test_clip_norm_equals_torch() -> None:
    a, b = net(), net()
    assert_same(
        train(a, Adam(a.parameters(), 0.01, grad_clip_type="clip_norm", clip_value=0.1), 5),
        train(
            b,
            torch.optim.Adam(b.parameters(), 0.01),
            5,
            lambda params: nn.utils.clip_grad_norm_(params, 0.1),
        ),
    )


def test_clip_norm_and_value_by_hand() -> None:
    param, optimizer = vector([3.0, 4.0], grad_clip_type="clip_norm", clip_value=1.0)
    assert optimizer.get_grad() == 5.0
    optimizer.step()
    assert param.grad.tolist() == pytest.approx([0.6, 0.8])
    param, optimizer = vector(
        [3.0, 4.0], grad_clip_type="clip_norm", clip_value=2.0, clip_norm_type=math.inf
    )
    optimizer.step()
    assert param.grad.tolist() == pytest.approx([1.5, 2.0])
    param, optimizer = vector([-3.0, 0.5], grad_clip_type="clip_value", clip_value=1.0)
    optimizer.step()
    assert param.grad.tolist() == [-1.0, 0.5]
    param, optimizer = vector([0.3, 0.4], grad_clip_type="clip_norm", clip_value=1.0)
    optimizer.step()
    assert param.grad.tolist() == pytest.approx([0.3, 0.4])


@pytest.mark.parametrize("kind", ["ignore_value", "ignore_norm"])
def test_ignored_gradients_are_zero(kind: str) -> None:
    param, optimizer = vector([-3.0, 0.5], grad_ignore_type=kind, ignore_value=1.0)
    optimizer.step()
    assert param.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("make", [Adam, RMSprop])
@pytest.mark.parametrize("kind", ["momentum", "momentum_norm"])
def test_limits_from_the_running_moment(kind: str, make) -> None:
    for role in ("clip", "ignore"):
        param = nn.Parameter(torch.zeros(2))
        options = {f"grad_{role}_type": f"{role}_{kind}"}
        options |= {f"{role}_coef": 2, f"{role}_momentum_timestep": 3}
        optimizer = make([param], lr=0.0, **options)
        for _ in range(3):
            param.grad = torch.tensor([1.0, -1.0])
            optimizer.step()
            assert param.grad.tolist() == [1.0, -1.0]
        param.grad = torch.tensor([100.0, -100.0])
        optimizer.step()
        want = [2.0, -2.0] if role == "clip" else [0.0, 0.0]
        assert param.grad.tolist() == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nonfinite_gradients_are_refused_on_request(bad: float) -> None:
    param, optimizer = vector([bad, 1.0], error_if_nonfinite=True)
    with pytest.raises(DataError, match="1 of 1 parameters"):
        optimizer.step()
    assert param.tolist() == [0, 0]


def test_bad_options_are_refused() -> None:
    param = [nn.Parameter(torch.zeros(1))]
    with pytest.raises(ValueError, match="'clip_all'"):
        Adam(param, grad_clip_type="clip_all")
    with pytest.raises(ValueError, match="needs clip_value"):
        RMSprop(param, grad_clip_type="clip_norm")
    with pytest.raises(ValueError, match="'sgd'"):
        Adam(param, optim_type="sgd")


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_and_restored_optimizers_still_clip(clone) -> None:
    _, optimizer = vector([3.0, 4.0], grad_clip_type="clip_norm", clip_value=1.0)
    twin = clone(optimizer)
    twin.load_state_dict(optimizer.state_dict())
    twin_param = twin.param_groups[0]["params"][0]
    twin_param.grad = torch.tensor([3.0, 4.0])
    twin.step()
    assert twin_param.grad.tolist() == pytest.approx([0.6, 0.8])


def test_state_dict_continues_exactly() -> None:
    a = net()
    first = Adam(a.parameters(), 0.01, weight_decay=0.1, optim_type="adamw")
    train(a, first, 3)
    b = net()
    b.load_state_dict(a.state_dict())
    second = Adam(b.parameters(), 0.01, weight_decay=0.1, optim_type="adamw")
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for left, right in zip(train(a, first, 3), train(b, second, 3)):
        assert torch.equal(left, right)


def test_grad_norms() -> None:
    model = nn.Linear(2, 1)
    assert calculate_grad_norm(model) == 0.0
    model.weight.grad = torch.tensor([[3.0, 4.0]])
    model.bias.grad = torch.tensor([12.0])
    assert calculate_grad_norm(model) == 13.0
    assert calculate_grad_norm(model, math.inf) == 12.0
    assert calculate_grad_norm_without_bias_two_norm(model) == 5.0


def test_weight_decay_spares_biases_and_norms() -> None:
    model = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 2), nn.LayerNorm(2), nn.LSTM(2, 2))
    decay, keep = configure_weight_decay(model, 0.1)
    assert decay["weight_decay"] == 0.1
    assert keep["weight_decay"] == 0.0
    names = {id(param): name for name, param in model.named_parameters()}
    got = {names[id(param)] for param in decay["params"]}
    assert got == {"1.weight", "3.weight_ih_l0", "3.weight_hh_l0"}
    assert len(decay["params"]) + len(keep["params"]) == len(names)
    Adam([decay, keep], lr=0.1)


def test_pcgrad_projects_conflicting_gradients() -> None:
    param = nn.Parameter(torch.zeros(2))
    alone = nn.Parameter(torch.zeros(1))
    optimizer = PCGrad(torch.optim.SGD([param, alone], lr=1.0), reduction="sum")
    first = (param * torch.tensor([1.0, 0.0])).sum()
    second = (param * torch.tensor([-1.0, 1.0])).sum() + 3 * alone.sum()
    optimizer.zero_grad()
    optimizer.pc_backward([first, second])
    # One gradient is [1, 0, 0], the other [-1, 1, 3]; their product is -1.
    want = torch.tensor([1.0, 0, 0]) + torch.tensor([-1.0, 1, 3]) / 11
    want = want + torch.tensor([0.0, 1, 3])
    got = torch.cat([param.grad, alone.grad])
    torch.testing.assert_close(got, want)
    optimizer.step()
    torch.testing.assert_close(param.detach(), -want[:2])


def test_pcgrad_mean_halves_only_what_both_reach() -> None:
    shared, alone = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    optimizer = PCGrad(torch.optim.SGD([shared, alone], lr=1.0))
    optimizer.pc_backward([shared.sum(), shared.sum() + alone.sum()])
    assert shared.grad.item() == 1.0
    assert alone.grad.item() == 1.0


def test_adam_without_torchs_private_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def weights() -> torch.Tensor:
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 2)
        optimizer = Adam(layer.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            layer(torch.ones(5, 3)).square().mean().backward()
            optimizer.step()
        return layer.weight.detach()

    expected = weights()
    without = types.SimpleNamespace(float32=torch.float32, Tensor=torch.Tensor)
    monkeypatch.setattr(fused_adam, "torch", without)
    assert torch.allclose(weights(), expected)
