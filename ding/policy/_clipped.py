"""The clipped surrogate of proximal policy optimisation, and the optimiser that follows it."""

from typing import Any

import torch
from torch import Tensor

from ding.policy._ppo_setup import init_parameters
from ding.policy._types import Losses, Output, RolloutBatch
from ding.policy.policy_gradient import PolicyGradient
from ding.rl_utils import (
    ppo_info,
    ppo_policy_data,
    ppo_policy_error,
    ppo_policy_loss,
)
from ding.rl_utils._log_prob import split_like
from ding.torch_utils import Adam


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

    def _losses(self, batch: RolloutBatch, output: Output, adv: Tensor) -> Losses:
        policy, info = self._clipped_error(batch, output, adv)
        facts = info._asdict()
        if self._cfg.action_space == "continuous":
            facts["act"] = batch["action"].float().mean().item()
        losses = policy._asdict()
        if self._pretrained_model is None:
            del losses["kl_div"]
        return losses, facts

    def _clipped_error(
        self, batch: RolloutBatch, output: Output, adv: Tensor
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
