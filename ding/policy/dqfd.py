"""Deep Q-learning from demonstrations (Hester et al. 2018)."""

from typing import Any

import numpy as np
from torch import Tensor

from ding.data import tree_map
from ding.policy._types import Batch, Loss, Output
from ding.policy.demonstrations import DemonstrationPolicy
from ding.policy.dqn import DQNPolicy
from ding.rl_utils import q_nstep_td_data, q_nstep_td_error
from ding.rl_utils.nstep import weighted_mean
from ding.utils import POLICY_REGISTRY

#: What is added to priorities, for own samples and for demonstrations (the paper's section
#: "Experimental Setup"): these are drawn more often at the same error.
_PRIORITY_BONUS = (0.001, 1.0)


@POLICY_REGISTRY.register("dqfd")
class DQFDPolicy(DemonstrationPolicy, DQNPolicy):
    """Double DQN that also imitates: for `serial_pipeline_dqfd`, which brings the demonstrations.

    For the loss see `DemonstrationPolicy`. Samples have ``next_obs_1step`` and ``done_1step``
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
            # How many demonstrations there are.
            expert_replay_buffer_size=10000,
        ),
        # Of a batch, the part that demonstrations have.
        collect=dict(pho=0.5),
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
        own, expert = _PRIORITY_BONUS
        bonus = own + (expert - own) * batch["is_expert"]
        return loss + self._squared_weights(), priority + bonus

    def _branch_loss(self, batch: Batch, action: Tensor, output: Output, target: Output) -> Loss:
        learn = self._cfg.learn
        nstep_loss, _ = super()._branch_loss(batch, action, output, target)
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
        return total + learn.lambda2 * margin, self._priority_of(error)
