"""Soft Q-learning for discrete actions (Haarnoja et al. 2017)."""

from typing import Any

from torch import Tensor

from ding.policy._types import Batch, Loss, Output
from ding.policy.dqn import DQNPolicy
from ding.rl_utils import q_nstep_sql_td_error
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


class SoftQPolicy(DQNPolicy):
    """Q-learning where the next state is worth ``alpha * logsumexp(Q / alpha)``.

    That is the value of ``softmax(Q / alpha)`` with its entropy, ``E[Q - alpha * log π]``.
    """

    def _target_output(self, batch: Batch) -> dict[str, Any]:
        # The soft value takes all actions: none has to be chosen.
        return self._target_model.forward(batch["next_obs"])

    def _soft_loss(
        self, batch: Batch, action: Tensor, q: Tensor, next_q: Tensor, alpha: Any
    ) -> Loss:
        """Loss, and the priority of each sample ``[B]``."""
        values = q, next_q, action, None
        loss, error, value = self._nstep_error(q_nstep_sql_td_error, batch, *values, alpha=alpha)
        batch["record_value_function"] = value.detach().mean()
        return loss, self._priority_of(error)


@POLICY_REGISTRY.register("sql")
class SQLPolicy(SoftQPolicy):
    """Maximises the return and the entropy of its actions, weighted by ``learn.alpha``.

    The next state is worth ``alpha * logsumexp(Q / alpha)``; while collecting, actions are drawn
    with probabilities proportional to ``exp(Q / alpha)``, or with probability ε at random.
    """

    paper = "Haarnoja et al. 2017"
    config: dict[str, Any] = dict(type="sql", learn=dict(alpha=0.1))
    _logged: tuple[str, ...] = ("record_value_function",)

    _explorer = "eps_greedy_multinomial_sample"

    def _init_learn(self) -> None:
        super()._init_learn()
        self._alpha = _temperature(self._cfg)

    def _learn(self, batch: Batch) -> dict[str, Any]:
        log = super()._learn(batch)
        return {**log, "record_value_function": batch["record_value_function"].item()}

    def _branch_loss(self, batch: Batch, action: Tensor, output: Output, target: Output) -> Loss:
        return self._soft_loss(batch, action, output["logit"], target["logit"], self._alpha)

    def _init_collect(self) -> None:
        super()._init_collect()
        self._alpha = _temperature(self._cfg)
        self._collect_options = {"alpha": self._alpha}


def _temperature(cfg: Any) -> float:
    if not cfg.learn.alpha > 0:
        raise ConfigError(f"policy.learn.alpha is {cfg.learn.alpha}; the temperature must be > 0")
    return float(cfg.learn.alpha)
