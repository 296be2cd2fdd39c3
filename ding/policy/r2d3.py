"""Recurrent replay from demonstrations (Paine et al. 2019, R2D3)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.policy._types import Batch, Loss
from ding.policy.r2d2 import R2D2Policy
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("r2d3")
class R2D3Policy(R2D2Policy):
    """R2D2 that also learns from an expert: for `serial_pipeline_r2d3`, which brings that.

    Of each batch, ``collect.pho`` are sequences that the expert has played. The loss of each step
    is made of those of DQfD (Hester et al. 2018): ``lambda1`` times the n-step TD loss,
    ``lambda_one_step_td`` times the one-step one, ``lambda2`` times the margin by which the
    expert's action falls short of being the best by ``margin_function``; to all of them come
    ``lambda3`` times the squared weights. The paper's own loss is the first of them alone.
    """

    paper = "Paine et al. 2019"
    config: dict[str, Any] = dict(
        type="r2d3",
        burnin_step=2,
        learn=dict(
            lambda_one_step_td=1.0,
            lambda1=1.0,
            lambda2=1.0,
            lambda3=1e-5,
            margin_function=0.8,
            # Updates from demonstrations alone, before anything is collected.
            per_train_iter_k=10,
            # How many sequences the expert plays.
            expert_replay_buffer_size=100,
        ),
        collect=dict(
            # Of a batch, the part that demonstrations have.
            pho=0.25,
            # Checkpoint of the expert.
            model_path=None,
        ),
    )

    def _get_train_columns(self, columns: dict[str, Any], lengths: np.ndarray) -> dict[str, Any]:
        samples = super()._get_train_columns(columns, lengths)
        return {**samples, "is_expert": np.zeros(len(samples["null"]), np.float32)}

    def _sequence_loss(self, batch: Batch, q: Tensor, target_q: Tensor) -> Loss:
        loss, priority = super()._sequence_loss(batch, q, target_q)
        weights = torch.stack([p.square().sum() for p in self._model.parameters()])
        return loss + self._cfg.learn.lambda3 * weights.sum(), priority

    def _step_losses(self, batch: Batch, q: Tensor, target_q: Tensor, td_error: Tensor) -> Tensor:
        learn = self._cfg.learn
        one_step = self._td_errors(batch, q, target_q, 1)
        chosen = batch["action"][self._burnin_step :].unsqueeze(-1)
        margin = torch.full_like(q[:-1], learn.margin_function).scatter(-1, chosen, 0.0)
        short = (q[:-1] + margin).amax(-1) - q[:-1].gather(-1, chosen).squeeze(-1)
        return (
            learn.lambda1 * td_error
            + learn.lambda_one_step_td * one_step
            + learn.lambda2 * short * batch["is_expert"]
        )
