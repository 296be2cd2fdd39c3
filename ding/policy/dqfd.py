"""Deep Q-learning from demonstrations (Hester et al. 2018)."""

import numpy as np
import torch
from torch import Tensor

from ding.data import tree_map
from ding.policy._types import Arrays, Lengths, Loss, Output, Steps
from ding.policy.acting import priorities
from ding.policy.base_policy import Policy
from ding.policy.dqn import DQNPolicy
from ding.rl_utils import q_nstep_td_data, q_nstep_td_error
from ding.rl_utils.nstep import weighted_mean
from ding.utils import POLICY_REGISTRY

#: Constants added to priorities of own samples and of demonstrations (the paper's section
#: "Experimental Setup"): demonstrations are sampled more often at the same error.
_PRIORITY_BONUS = (0.001, 1.0)


class DemonstrationPolicy(Policy):
    """Base of Q-learning with the large-margin loss on an expert's actions (Hester et al. 2018).

    The loss is ``lambda1`` times the n-step TD loss, plus ``lambda_one_step_td`` times the one-step
    TD loss, ``lambda2`` times the large-margin loss with the margin ``margin_function``, and
    ``lambda3`` times the squared weights.
    """

    pipeline = "serial_dqfd"
    config = dict(
        learn=dict(
            lambda_one_step_td=1.0,
            lambda1=1.0,
            lambda2=1.0,
            lambda3=1e-5,
            margin_function=0.8,
            # Updates from demonstrations alone, before collection starts.
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
        """The large-margin loss ``[*]``: how far the best other action, plus the margin, exceeds
        the expert's action; 0 for own samples. ``q`` is ``[*, N]``."""
        chosen = action.unsqueeze(-1)
        margin = torch.full_like(q, self._cfg.learn.margin_function).scatter(-1, chosen, 0.0)
        return ((q + margin).amax(-1) - q.gather(-1, chosen).squeeze(-1)) * is_expert


@POLICY_REGISTRY.register("dqfd")
class DQFDPolicy(DemonstrationPolicy, DQNPolicy):
    """Deep Q-learning from Demonstrations (Hester et al. 2018): double DQN with a margin loss.

    `serial_pipeline_dqfd` trains it and provides the demonstrations. For the loss see
    `DemonstrationPolicy`. In addition to the columns of DQN, samples have ``next_obs_1step``,
    ``done_1step`` and ``is_expert``, which is 1 for demonstrations.
    """

    paper = "Hester et al. 2018"
    config = dict(
        type="dqfd",
        priority=True,
        priority_IS_weight=True,
        discount_factor=0.99,
        nstep=10,
        learn=dict(
            # Number of demonstrations.
            expert_replay_buffer_size=10000,
        ),
        # Fraction of demonstrations in a batch.
        collect=dict(pho=0.5),
    )

    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        return {
            **super()._get_train_columns(columns, lengths),
            "next_obs_1step": columns["next_obs"],
            "done_1step": columns["done"],
            "is_expert": np.zeros(len(columns["done"]), np.float32),
        }

    def _target_output(self, batch: Steps) -> Output:
        next_obs = tree_map(lambda leaf: leaf.float(), batch["next_obs_1step"])
        one_step = super()._target_output({**batch, "next_obs": next_obs})
        return {
            **super()._target_output(batch),
            "logit_1step": one_step["logit"],
            "next_action_1step": one_step["next_action"],
        }

    def _value_loss(self, batch: Steps, output: Output, target: Output) -> Loss:
        loss, priority, log = super()._value_loss(batch, output, target)
        own, expert = _PRIORITY_BONUS
        bonus = own + (expert - own) * batch["is_expert"]
        return Loss(loss + self._squared_weights(), priority + bonus, log)

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        learn = self._cfg.learn
        nstep_loss = super()._branch_loss(batch, action, output, target).loss
        done = batch["done_1step"].float() * (0.0 if learn.ignore_done else 1.0)
        data = q_nstep_td_data(
            *(output["logit"], target["logit_1step"], action, target["next_action_1step"]),
            *(batch["reward"][:1], done, batch["weight"]),
        )
        loss, error = q_nstep_td_error(data, self._gamma, nstep=1)
        margin = weighted_mean(
            self._shortfall(output["logit"], action, batch["is_expert"]), batch["weight"]
        )
        total = learn.lambda_one_step_td * loss + learn.lambda1 * nstep_loss
        return Loss(total + learn.lambda2 * margin, priorities(error, self._priority_form))
