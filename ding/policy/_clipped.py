"""The clipped surrogate of proximal policy optimisation, and what PPO prepares once for it."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from ding.policy._types import Losses, Output, Rollout
from ding.policy.policy_gradient import PolicyGradient
from ding.rl_utils import (
    ppo_info,
    ppo_policy_data,
    ppo_policy_error,
    ppo_policy_loss,
)
from ding.rl_utils._log_prob import split_like
from ding.torch_utils import Adam
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.file_helper import read_file


class Clipped(PolicyGradient):
    """Keeps the policy near the one that collected the data (Schulman et al. 2017).

    A hybrid action's choice and its arguments have an objective each, which share the advantages
    (Fan et al. 2019, "Hybrid actor-critic reinforcement learning in parameterized action space").
    """

    _action_spaces = {**PolicyGradient._action_spaces, "hybrid": "hybrid"}
    _logged: tuple[str, ...] = ("approx_kl", "clipfrac")
    _pretrained_model: torch.nn.Module | None = None

    def _init_update(self) -> None:
        cfg = self._cfg.learn
        if cfg.ppo_param_init:
            init_parameters(self._model)
            if self._joint:
                self._broadcast_model(self._model)
        self._optimizer = Adam(
            self._model.parameters(),
            lr=cfg.learning_rate,
            weight_decay=cfg.get("weight_decay", 0.0),
            grad_clip_type=cfg.grad_clip_type,
            clip_value=cfg.grad_clip_value,
        )

    def _losses(self, batch: Rollout, output: Output, adv: Tensor) -> Losses:
        policy, info = self._clipped_error(batch, output, adv)
        facts = info._asdict()
        if self._cfg.action_space == "continuous":
            facts["act"] = batch["action"].float().mean().item()
        losses = policy._asdict()
        if self._pretrained_model is None:
            del losses["kl_div"]
        return losses, facts

    def _clipped_error(
        self, batch: Rollout, output: Output, adv: Tensor
    ) -> tuple[ppo_policy_loss, ppo_info]:
        """What `ppo_policy_error` says of a batch, by the action space."""
        pretrained = None
        if self._pretrained_model is not None:
            with torch.no_grad():
                pretrained = self._pretrained_model(batch["obs"], **self._eval_options)["logit"]
        new, old, action = output["logit"], batch["logit"], batch["action"]
        common = (adv, batch.get("weight"))
        if self._cfg.action_space != "hybrid":
            return self._error(new, split_like(old, new), action, *common, pretrained)
        (type_loss, type_info), (args_loss, args_info) = (
            self._error(
                *(new[name], old[name], action[name], *common),
                None if pretrained is None else pretrained[name],
            )
            for name in ("action_type", "action_args")
        )
        return (
            ppo_policy_loss(*map(sum, zip(type_loss, args_loss))),
            ppo_info(
                type_info.approx_kl + args_info.approx_kl,
                (type_info.clipfrac + args_info.clipfrac) / 2,
            ),
        )

    def _error(self, *data: Any) -> tuple[ppo_policy_loss, ppo_info]:
        cfg = self._cfg.learn
        return ppo_policy_error(
            ppo_policy_data(*data), cfg.clip_ratio, kl_type=cfg.get("kl_type", "k1")
        )

    def _monitor_vars_learn(self) -> list[str]:
        names = super()._monitor_vars_learn()
        names += ["act"] * (self._cfg.action_space == "continuous")
        return names if self._pretrained_model is None else [*names, "kl_div"]


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
