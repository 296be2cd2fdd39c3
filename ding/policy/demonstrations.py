"""What policies share that imitate an expert while they learn (Hester et al. 2018)."""

from typing import Any

import torch
from torch import Tensor

from ding.policy.base_policy import Policy


class DemonstrationPolicy(Policy):
    """Adds to Q-learning that an expert's actions are to be the best ones, by a margin.

    To the n-step TD loss, ``lambda1`` times, come ``lambda_one_step_td`` times the one-step one,
    ``lambda2`` times the margin by which the expert's action falls short of being the best by
    ``margin_function``, and ``lambda3`` times the squared weights.
    """

    config: dict[str, Any] = dict(
        learn=dict(
            lambda_one_step_td=1.0,
            lambda1=1.0,
            lambda2=1.0,
            lambda3=1e-5,
            margin_function=0.8,
            # Updates from demonstrations alone, before anything is collected.
            per_train_iter_k=10,
        ),
        # Checkpoint of the expert.
        collect=dict(model_path=None),
    )

    def _squared_weights(self) -> Tensor:
        """``lambda3`` times the sum of the squared parameters."""
        squares = torch.stack([p.square().sum() for p in self._model.parameters()])
        return self._cfg.learn.lambda3 * squares.sum()

    def _shortfall(self, q: Tensor, action: Tensor, is_expert: Tensor) -> Tensor:
        """How far other actions come within the margin below the expert's, or above it.

        Args:
            q: ``[*, N]``.
            action: int64 ``[*]``.
            is_expert: 1 where the expert acted, else 0; ``[*]`` or what broadcasts to it.
        """
        chosen = action.unsqueeze(-1)
        margin = torch.full_like(q, self._cfg.learn.margin_function).scatter(-1, chosen, 0.0)
        return ((q + margin).amax(-1) - q.gather(-1, chosen).squeeze(-1)) * is_expert
