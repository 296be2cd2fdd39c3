"""Weighted QMIX (Rashid et al. 2020): errors count less where the mix cannot but be wrong."""

from typing import Any

import torch
from torch import Tensor

from ding.model.template.agents import best_actions
from ding.policy._types import LoggedLoss, Output, Sequences
from ding.policy.qmix import QMIXPolicy
from ding.policy.team_policy import during
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("wqmix")
class WQMIXPolicy(QMIXPolicy):
    """QMIX whose targets come from a value without QMIX's limits, learned beside it.

    Errors of the monotonic value have the weight 1 where it is below the target (optimistic
    weighting, ``learn.wqmix_ow``), or where the joint action is the best one or seems to be better
    (centrally weighted), and ``learn.alpha`` elsewhere.
    """

    paper = "Rashid et al. 2020"
    actions = ("multi-agent",)
    config = dict(type="wqmix", learn=dict(wqmix_ow=True, alpha=0.1))

    _target_value = "free_q"

    _network = "wqmix"
    _logged: tuple[str, ...] = ("free_q_value", "weighted_loss", "free_loss")

    def _init_learn(self) -> None:
        super()._init_learn()
        self._alpha = self._cfg.learn.alpha
        if not 0 <= self._alpha <= 1:
            raise ConfigError(f"policy.learn.alpha is {self._alpha}; expected a weight, 0 to 1")

    def _loss(
        self, batch: Sequences, online: Output, judged: Output, target: Tensor, error: Tensor
    ) -> LoggedLoss:
        free_error = judged["free_q"] - target
        with torch.no_grad():
            if self._cfg.learn.wqmix_ow:
                counts = error < 0
            else:
                counts = self._is_good(batch, online, target)
            weight = torch.where(counts, 1.0, self._alpha)
        loss = self._mean(weight * error.pow(2), batch)
        free_loss = self._mean(free_error.pow(2), batch)
        log = {"free_q_value": judged["free_q"].mean()}
        return loss + free_loss, {**log, "weighted_loss": loss, "free_loss": free_loss}

    def _is_good(self, batch: Sequences, online: dict[str, Any], target: Tensor) -> Tensor:
        """Where the joint action is the best one, or is worth more than that, ``[T, B]``."""
        output, obs = during(online), during(batch["obs"])
        best = best_actions(output["logit"], obs.get("action_mask"))
        best_value = self._model.judge(output, obs, best)["free_q"]
        return (target > best_value) | (best == batch["action"]).all(-1)
