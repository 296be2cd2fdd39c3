"""Deep Q-learning from demonstrations (Hester et al. 2018)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.data import tree_map
from ding.policy._types import Batch, Loss, Output
from ding.policy.dqn import DQNPolicy
from ding.rl_utils import q_nstep_td_data, q_nstep_td_error
from ding.utils import POLICY_REGISTRY

#: What is added to priorities, for own samples and for demonstrations (the paper's section
#: "Experimental Setup"): these are drawn more often at the same error.
_PRIORITY_BONUS = (0.001, 1.0)


@POLICY_REGISTRY.register("dqfd")
class DQFDPolicy(DQNPolicy):
    """Double DQN that also imitates: for `serial_pipeline_dqfd`, which brings the demonstrations.

    The loss is the one-step TD loss, plus ``lambda1`` times the n-step one, plus ``lambda2`` times
    the margin by which the expert's action falls short of being the best by ``margin_function``,
    plus ``lambda3`` times the squared weights. Samples have ``next_obs_1step`` and ``done_1step``
    beside what those of DQN have, and ``is_expert``, 1 for demonstrations.
    """

    paper = "Hester et al. 2018"
    config: dict[str, Any] = dict(
        type="dqfd",
        priority=True,
        priority_IS_weight=True,
        discount_factor=0.99,
        nstep=10,
        learn=dict(
            lambda_one_step_td=1.0,
            lambda1=1.0,
            lambda2=1.0,
            lambda3=1e-5,
            margin_function=0.8,
            # Updates from demonstrations alone, before anything is collected.
            per_train_iter_k=10,
            # How many demonstrations there are.
            expert_replay_buffer_size=10000,
        ),
        collect=dict(
            # Of a batch, the part that demonstrations have.
            pho=0.5,
            # Checkpoint of the expert.
            model_path=None,
        ),
    )

    def _get_train_columns(self, columns: dict[str, Any], lengths: np.ndarray) -> dict[str, Any]:
        return {
            **super()._get_train_columns(columns, lengths),
            "next_obs_1step": columns["next_obs"],
            "done_1step": columns["done"],
            "is_expert": np.zeros(len(columns["done"]), np.float32),
        }

    def _target_output(self, batch: Batch) -> dict[str, Any]:
        next_obs = tree_map(lambda leaf: leaf.float(), batch["next_obs_1step"])
        one_step = super()._target_output({"next_obs": next_obs})
        return {
            **super()._target_output(batch),
            "logit_1step": one_step["logit"],
            "next_action_1step": one_step["next_action"],
        }

    def _value_loss(self, batch: Batch, output: Output, target: Output) -> Loss:
        loss, priority = super()._value_loss(batch, output, target)
        weights = torch.stack([p.square().sum() for p in self._model.parameters()])
        own, expert = _PRIORITY_BONUS
        bonus = own + (expert - own) * batch["is_expert"]
        return loss + self._cfg.learn.lambda3 * weights.sum(), priority + bonus

    def _branch_loss(self, batch: Batch, action: Tensor, output: Output, target: Output) -> Loss:
        learn = self._cfg.learn
        nstep_loss, _ = super()._branch_loss(batch, action, output, target)
        done = batch["done_1step"].float() * (0.0 if learn.ignore_done else 1.0)
        data = q_nstep_td_data(
            output["logit"],
            target["logit_1step"],
            action,
            target["next_action_1step"],
            batch["reward"][:1],
            done,
            batch["weight"],
        )
        loss, error = q_nstep_td_error(data, self._gamma, nstep=1)
        margin = self._margin_loss(batch, action, output["logit"])
        total = learn.lambda_one_step_td * loss + learn.lambda1 * nstep_loss
        return total + learn.lambda2 * margin, error.detach().sqrt()

    def _margin_loss(self, batch: dict[str, Any], action: Tensor, q: Tensor) -> Tensor:
        """How far other actions come within the margin below the expert's, or above it."""
        chosen = action.unsqueeze(-1)
        margin = torch.full_like(q, self._cfg.learn.margin_function).scatter(-1, chosen, 0.0)
        short = (q + margin).amax(-1) - q.gather(-1, chosen).squeeze(-1)
        short = short * batch["is_expert"]
        return (short if batch["weight"] is None else short * batch["weight"]).mean()
