"""Munchausen DQN (Vieillard et al. 2020): soft Q-learning that rewards its own log-policy."""

import torch
from torch import Tensor

from ding.policy._types import Loss, Output, Steps
from ding.policy.sql import SoftQPolicy
from ding.rl_utils.nstep import of_action
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError

# The paper's clipping of the scaled log-policy, which has no lower bound.
_LOG_POLICY_RANGE = (-1.0, 0.0)


@POLICY_REGISTRY.register("mdqn")
class MDQNPolicy(SoftQPolicy):
    """Adds ``m_alpha * entropy_tau * log π(a | s)`` to the reward; π is softmax(Q / entropy_tau).

    π and the next state's soft value are those of the target network. With ``nstep > 1`` the
    first of the rewards gets the addition.
    """

    paper = "Vieillard et al. 2020"
    config = dict(type="mdqn", entropy_tau=0.03, m_alpha=0.9, collect=dict(n_sample=4))

    def _init_learn(self) -> None:
        super()._init_learn()
        self._tau, self._m_alpha = self._cfg.entropy_tau, self._cfg.m_alpha
        if not self._tau > 0:
            raise ConfigError(f"policy.entropy_tau is {self._tau}; it must be > 0")

    def _target_output(self, batch: Steps) -> Output:
        here = self._target_model.forward(batch["obs"])["logit"]
        return {**super()._target_output(batch), "logit_here": here}

    _logged: tuple[str, ...] = ("action_gap", "clip_frac")

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        tau = self._tau
        log_policy = (target["logit_here"] / tau).log_softmax(-1)
        done_log_policy = of_action(log_policy, action)
        scaled = tau * done_log_policy
        clipped = scaled.clamp(*_LOG_POLICY_RANGE)
        bonus = self._m_alpha * clipped
        best = target["logit_here"].topk(min(2, log_policy.shape[-1])).values
        # How far the best action is ahead, and the share of samples whose addition is clipped.
        log = {
            "action_gap": (best[..., 0] - best[..., -1]).mean(),
            "clip_frac": (clipped != scaled).float().mean(),
        }
        reward = torch.cat([batch["reward"][:1] + bonus, batch["reward"][1:]])
        batch = {**batch, "reward": reward}
        loss = self._soft_loss(batch, action, output["logit"], target["logit"], tau)
        return loss._replace(log=log)
