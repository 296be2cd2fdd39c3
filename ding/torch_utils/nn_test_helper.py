"""Assertions for tests of models."""

from collections.abc import Sequence

import torch


def is_differentiable(
    loss: torch.Tensor,
    model: torch.nn.Module | Sequence[torch.nn.Module],
    print_instance: bool = False,
) -> None:
    """Assert that a backward pass of the loss reaches every parameter.

    Args:
        loss: A scalar.
        model: One or several models, without gradients.
        print_instance: Whether to print the name of each checked parameter.
    """
    assert loss.dim() == 0, f"got a loss of shape {tuple(loss.shape)}: expected a scalar"
    models = [model] if isinstance(model, torch.nn.Module) else list(model)
    named = [(name, param) for one in models for name, param in one.named_parameters()]
    for name, param in named:
        assert param.grad is None, f"{name} has a gradient already: call zero_grad() first"
    loss.backward()
    for name, param in named:
        if print_instance:
            print(name)
        assert param.grad is not None, f"the loss does not reach {name}"
