"""Recurrent replay from demonstrations (Paine et al. 2019, R2D3)."""

import numpy as np
from torch import Tensor

from ding.policy._types import Arrays, Lengths, Sequences
from ding.policy.dqfd import DemonstrationPolicy
from ding.policy.r2d2 import R2D2Policy
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("r2d3")
class R2D3Policy(DemonstrationPolicy, R2D2Policy):
    """R2D2 that also learns from an expert: for `serial_pipeline_r2d3`, which brings that.

    Of each batch, ``collect.pho`` are sequences that the expert has played. The loss of each step
    is that of DQfD, see `DemonstrationPolicy`; the paper's own is its n-step TD loss alone.
    """

    paper = "Paine et al. 2019"
    config = dict(
        type="r2d3",
        burnin_step=2,
        learn=dict(
            # How many sequences the expert plays.
            expert_replay_buffer_size=100,
        ),
        # Of a batch, the part that demonstrations have.
        collect=dict(pho=0.25),
    )

    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        samples = super()._get_train_columns(columns, lengths)
        return {**samples, "is_expert": np.zeros(len(samples["null"]), np.float32)}

    def _sequence_loss(self, batch: Sequences, losses: Tensor) -> Tensor:
        return super()._sequence_loss(batch, losses) + self._squared_weights()

    _logged: tuple[str, ...] = ("nstep_loss", "1step_loss", "sl_loss")

    def _step_losses(
        self, batch: Sequences, q: Tensor, target_q: Tensor, td_error: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        learn = self._cfg.learn
        one_step = self._td_errors(batch, q, target_q, 1)
        action = batch["action"][self._burnin_step :]
        shortfall = self._shortfall(q[:-1], action, batch["is_expert"])
        loss = learn.lambda1 * td_error + learn.lambda_one_step_td * one_step
        return loss + learn.lambda2 * shortfall, {
            "nstep_loss": td_error,
            "1step_loss": one_step,
            "sl_loss": shortfall,
        }
