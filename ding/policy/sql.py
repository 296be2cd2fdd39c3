"""Soft Q-learning for discrete actions (Haarnoja et al. 2017)."""

from typing import Any

from easydict import EasyDict
from torch import Tensor

from ding.policy._types import Loss, Output, Steps
from ding.policy.acting import priorities
from ding.policy.dqn import DQNPolicy
from ding.rl_utils import q_nstep_sql_td_error, q_nstep_td_data
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


class SoftQPolicy(DQNPolicy):
    """Q-learning where the next state is worth ``alpha * logsumexp(Q / alpha)``.

    That is the value of ``softmax(Q / alpha)`` with its entropy, ``E[Q - alpha * log π]``.
    """

    def _target_output(self, batch: Steps) -> Output:
        # The soft value takes all actions: none has to be chosen.
        return self._target_model.forward(batch["next_obs"])

    def _soft_loss(
        self, batch: Steps, action: Tensor, q: Tensor, next_q: Tensor, alpha: Any
    ) -> Loss:
        """Loss, and the priority of each sample ``[B]``."""
        sample = batch["reward"], batch["done"], batch["weight"]
        loss, error, value = q_nstep_sql_td_error(
            q_nstep_td_data(q, next_q, action, None, *sample),
            self._gamma,
            alpha,
            self._nstep,
            value_gamma=batch.get("value_gamma"),
        )
        log = {"record_value_function": value.detach().mean()}
        return Loss(loss, priorities(error, self._priority_form), log)


@POLICY_REGISTRY.register("sql")
class SQLPolicy(SoftQPolicy):
    """Maximises the return and the entropy of its actions, weighted by ``learn.alpha``.

    The next state is worth ``alpha * logsumexp(Q / alpha)``; while collecting, actions are drawn
    with probabilities proportional to ``exp(Q / alpha)``, or with probability ε at random.
    """

    paper = "Haarnoja et al. 2017"
    config = dict(type="sql", learn=dict(alpha=0.1))
    _logged: tuple[str, ...] = ("record_value_function",)

    _explorer = "eps_greedy_multinomial_sample"

    def _init_learn(self) -> None:
        super()._init_learn()
        self._alpha = _temperature(self._cfg)

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        return self._soft_loss(batch, action, output["logit"], target["logit"], self._alpha)

    def _init_collect(self) -> None:
        super()._init_collect()
        self._alpha = _temperature(self._cfg)
        self._collect_options = {"alpha": self._alpha}


def _temperature(cfg: EasyDict) -> float:
    if not cfg.learn.alpha > 0:
        raise ConfigError(f"policy.learn.alpha is {cfg.learn.alpha}; the temperature must be > 0")
    return float(cfg.learn.alpha)
