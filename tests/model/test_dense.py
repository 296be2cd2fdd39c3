"""`Dense` is `nn.Sequential`, only faster."""

import copy

import pytest
import torch
from torch import nn

from ding.model.common.dense import Dense


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


LAYERS = {
    "plain": lambda: [nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)],
    "relu first": lambda: [nn.ReLU(), nn.Linear(3, 2), nn.ReLU()],
    "no bias": lambda: [nn.Linear(3, 4, bias=False), nn.ReLU(inplace=True)],
    "others": lambda: [nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.ReLU(), nn.Linear(4, 1)],
    "subclass": lambda: [Doubled(3, 4), nn.ReLU()],
    "empty": list,
}


@pytest.mark.parametrize("kind", LAYERS)
def test_outputs_and_gradients_are_those_of_sequential(kind):
    torch.manual_seed(0)
    layers = LAYERS[kind]()
    dense, sequential = Dense(*layers), nn.Sequential(*copy.deepcopy(layers))
    x = torch.randn(5, 3, requires_grad=True)
    kept = x.detach().clone()
    y = x.detach().clone().requires_grad_()
    (dense(x) ** 2).sum().backward()
    (sequential(y) ** 2).sum().backward()
    assert torch.equal(x.detach(), kept)
    assert torch.equal(x.grad, y.grad)
    for a, b in zip(dense.parameters(), sequential.parameters()):
        assert torch.equal(a.grad, b.grad)
    assert dense.state_dict().keys() == sequential.state_dict().keys()


def test_hooks_are_called():
    dense, seen = Dense(nn.Linear(3, 4), nn.ReLU()), []
    dense[0].register_forward_hook(lambda module, args, output: seen.append("forward"))
    dense[1].register_full_backward_hook(lambda module, gin, gout: seen.append("backward"))
    dense(torch.ones(1, 3)).sum().backward()
    assert seen == ["forward", "backward"]


def test_global_hooks_are_called():
    seen = []
    hook = torch.nn.modules.module.register_module_forward_hook(
        lambda module, args, output: seen.append(type(module))
    )
    try:
        Dense(nn.Linear(3, 4), nn.ReLU())(torch.ones(1, 3))
    finally:
        hook.remove()
    assert seen == [nn.Linear, nn.ReLU, Dense]


def test_own_forward_and_parametrisation_are_respected():
    dense = Dense(nn.Linear(3, 3))
    dense[0].forward = lambda x: x + 1
    assert dense(torch.ones(3)).tolist() == [2, 2, 2]

    class Zero(nn.Module):
        def forward(self, weight):
            return weight * 0

    dense = Dense(nn.Linear(3, 3, bias=False))
    torch.nn.utils.parametrize.register_parametrization(dense[0], "weight", Zero())
    assert dense(torch.ones(3)).tolist() == [0, 0, 0]


def test_replaced_and_moved_parameters_count():
    dense = Dense(nn.Linear(1, 1, bias=False))
    dense[0].weight = nn.Parameter(torch.tensor([[3.0]]))
    assert dense(torch.ones(1)).item() == 3
    assert copy.deepcopy(dense.double())(torch.ones(1).double()).item() == 3
