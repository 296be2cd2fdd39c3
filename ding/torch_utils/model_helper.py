"""Facts about a model."""

import torch


def get_num_params(model: torch.nn.Module) -> int:
    """Number of elements of all parameters."""
    return sum(param.numel() for param in model.parameters())


def set_training(module: torch.nn.Module, training: bool) -> None:
    """``module.train(training)`` without torch's checks of each attribute that is set.

    A policy that acts between its updates switches all layers twice a round; torch takes 20 µs for
    ten layers, which is a tenth of a small network's update. A module with a custom ``train`` or
    ``__setattr__``, as compiled ones have, is switched by its own method.
    """
    kind, base = type(module), torch.nn.Module
    is_plain = kind.train is base.train and kind.__setattr__ is base.__setattr__
    if not is_plain or "train" in vars(module):
        module.train(training)
        return
    vars(module)["training"] = training
    for child in module._modules.values():
        if child is not None:
            set_training(child, training)
