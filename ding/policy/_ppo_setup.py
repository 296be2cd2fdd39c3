"""What PPO prepares once: weights, learning rate schedule, the policy that it may not leave."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.file_helper import read_file


def init_parameters(model: nn.Module) -> None:
    """Orthogonal weights, zero biases, and first actions that hardly depend on the observation.

    Andrychowicz et al. 2021, "What matters in on-policy reinforcement learning?": the last layer
    of the policy is scaled by 0.01, and a learned standard deviation starts at exp(-0.5).
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.orthogonal_(layer.weight, 2**0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    for name in ("actor_head", "head"):  # `head`: of a network without a critic
        _scale_last(getattr(model, name, None), 0.01)
    _scale_last(getattr(model, "critic_head", None), 1.0)
    for name, parameter in model.named_parameters():
        if name.endswith("log_sigma_param"):
            nn.init.constant_(parameter, -0.5)


def _scale_last(head: nn.Module | None, gain: float) -> None:
    if head is None:
        return
    # A head for each of several actions, or for an action's choice and its arguments.
    parts = head if isinstance(head, nn.ModuleList) else getattr(head, "pred", ())
    for part in parts:
        _scale_last(part, gain)
    if len(parts):
        return
    mean = getattr(head, "mu", None)
    layers = [mean] if mean is not None else list(head.modules())
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    if linear:
        nn.init.orthogonal_(linear[-1].weight, gain)


def linear_decay(
    optimizer: torch.optim.Optimizer, cfg: Mapping[str, Any] | None
) -> LambdaLR | None:
    """A learning rate that falls linearly, once a call of ``forward``.

    Args:
        cfg: ``epoch_num``, calls until the end of the fall, and ``min_lr_lambda``, the share of
            the rate that is left then. ``None`` for a constant rate.
    """
    if cfg is None:
        return None
    if set(cfg) != {"epoch_num", "min_lr_lambda"}:
        raise ConfigError(
            f"policy.learn.lr_scheduler must be None or dict(epoch_num=..., min_lr_lambda=...), "
            f"got {dict(cfg)}"
        )
    epochs, least = cfg["epoch_num"], cfg["min_lr_lambda"]
    return LambdaLR(optimizer, lambda epoch: 1 - min(epoch / epochs, 1) * (1 - least))


def load_pretrained(model: nn.Module, path: str) -> nn.Module:
    """A frozen copy of ``model`` with the weights of a checkpoint.

    Raises:
        CheckpointError: The file holds no weights that fit.
    """
    state = read_file(path)
    pretrained = copy.deepcopy(model).requires_grad_(False).eval()
    try:
        pretrained.load_state_dict(state.get("model", state))
    except (RuntimeError, AttributeError) as error:
        raise CheckpointError(f"{path} does not hold weights of this model: {error}") from error
    return pretrained
