"""Soft Q-learning (Haarnoja et al. 2017), Munchausen DQN (Vieillard et al. 2020), and SQN."""

from collections.abc import Mapping
from typing import Any

import torch
from easydict import EasyDict
from torch import Tensor

from ding.model.wrapper.sample import legal
from ding.policy._types import Eps, Log, Loss, Obs, Output, Steps
from ding.policy.acting import priorities
from ding.policy.dqn import DQNPolicy
from ding.policy.networks import CHOICES, Call
from ding.rl_utils import q_nstep_sql_td_error, q_nstep_td_data
from ding.rl_utils.nstep import of_action
from ding.torch_utils import Adam
from ding.torch_utils.gradients import average_gradients
from ding.utils import POLICY_REGISTRY
from ding.utils.default_helper import one_size
from ding.utils.errors import ConfigError


class SoftQPolicy(DQNPolicy):
    """Base of soft Q-learning: the value of the next state is ``alpha * logsumexp(Q / alpha)``.

    This is the value of ``softmax(Q / alpha)`` plus its entropy, ``E[Q - alpha * log π]``.
    """

    def _target_output(self, batch: Steps) -> Output:
        # The soft value covers all legal actions, so no next action is chosen.
        target = self._target_model.forward(batch["next_obs"])
        return {**target, "legal_logit": legal(target, batch["next_obs"])["logit"]}

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
    """Soft Q-Learning (Haarnoja et al. 2017) for discrete actions.

    It maximises the return plus ``learn.alpha`` times the policy's entropy. The value of the next
    state is ``alpha * logsumexp(Q / alpha)``; while collecting, actions are sampled with
    probabilities proportional to ``exp(Q / alpha)``, or uniformly with probability ε.
    """

    paper = "Haarnoja et al. 2017"
    config = dict(type="sql", learn=dict(alpha=0.1))
    _logged: tuple[str, ...] = ("record_value_function",)

    _explorer = "eps_greedy_multinomial_sample"

    def _init_learn(self) -> None:
        super()._init_learn()
        self._alpha = _temperature(self._cfg)

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        return self._soft_loss(batch, action, output["logit"], target["legal_logit"], self._alpha)

    def _init_collect(self) -> None:
        super()._init_collect()
        self._alpha = _temperature(self._cfg)
        self._collect_options = {"alpha": self._alpha}


def _temperature(cfg: EasyDict) -> float:
    if not cfg.learn.alpha > 0:
        raise ConfigError(f"policy.learn.alpha is {cfg.learn.alpha}; the temperature must be > 0")
    return float(cfg.learn.alpha)


# The paper's clipping of the scaled log-policy, which has no lower bound.
_LOG_POLICY_RANGE = (-1.0, 0.0)


@POLICY_REGISTRY.register("mdqn")
class MDQNPolicy(SoftQPolicy):
    """Munchausen DQN (Vieillard et al. 2020): soft Q-learning with a log-policy bonus.

    The reward gets the bonus ``m_alpha * entropy_tau * log π(a | s)``, where π is
    ``softmax(Q / entropy_tau)``. π and the next state's soft value come from the target network.
    With ``nstep > 1`` the bonus is added to the first reward.
    """

    paper = "Vieillard et al. 2020"
    config = dict(type="mdqn", entropy_tau=0.03, m_alpha=0.9, collect=dict(n_sample=4))

    def _init_learn(self) -> None:
        super()._init_learn()
        self._tau, self._m_alpha = self._cfg.entropy_tau, self._cfg.m_alpha
        if not self._tau > 0:
            raise ConfigError(f"policy.entropy_tau is {self._tau}; it must be > 0")

    def _target_output(self, batch: Steps) -> Output:
        here = self._target_model.forward(batch["obs"])
        return {
            **super()._target_output(batch),
            "logit_here": here["logit"],
            "legal_here": legal(here, batch["obs"])["logit"],
        }

    _logged: tuple[str, ...] = ("action_gap", "clip_frac")

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        tau = self._tau
        log_policy = (target["legal_here"] / tau).log_softmax(-1)
        done_log_policy = of_action(log_policy, action)
        scaled = tau * done_log_policy
        clipped = scaled.clamp(*_LOG_POLICY_RANGE)
        bonus = self._m_alpha * clipped
        best = target["logit_here"].topk(min(2, log_policy.shape[-1])).values
        # The lead of the best action, and the fraction of samples with a clipped bonus.
        log = {
            "action_gap": (best[..., 0] - best[..., -1]).mean(),
            "clip_frac": (clipped != scaled).float().mean(),
        }
        reward = torch.cat([batch["reward"][:1] + bonus, batch["reward"][1:]])
        batch = {**batch, "reward": reward}
        loss = self._soft_loss(batch, action, output["logit"], target["legal_logit"], tau)
        return loss._replace(log=log)


@POLICY_REGISTRY.register("sqn")
class SQNPolicy(SoftQPolicy):
    """Soft Q-Network (Haarnoja et al. 2017): discrete soft actor-critic without an actor.

    The policy is ``softmax(Q / alpha)``. ``alpha`` starts at ``learn.alpha`` and is adapted to the
    policy's entropy, in nats: above ``learn.target_entropy`` it decreases, below it increases.
    Evaluation takes the best action.
    """

    paper = "Haarnoja et al. 2017"
    actions: tuple[str, ...] = ("discrete",)
    networks = {"discrete": (Call({"q_value": (CHOICES, CHOICES), "logit": CHOICES}),)}
    config = dict(
        type="sqn",
        learn=dict(
            learning_rate_q=0.001,
            learning_rate_alpha=0.001,
            # The target network follows by a rate; with a number here, it is copied instead.
            target_update_freq=None,
            alpha=0.2,
            target_entropy=0.2,
        ),
        # Alternative key for `nstep`, used if set.
        collect=dict(nstep=None),
    )
    _silent_keys = ("learn.discount_factor",)
    _logged: tuple[str, ...] = ("alpha", "entropy", "alpha_loss", "q_loss")

    def __init__(self, cfg: EasyDict, *args: Any, **kwargs: Any) -> None:
        if not cfg.learn.alpha > 0:
            raise ConfigError(f"policy.learn.alpha is {cfg.learn.alpha}; it must be > 0")
        model_cfg, choice = cfg.get("model") or {}, "SQN has one choice"
        one_size(model_cfg.get("action_shape", 1), "policy.model.action_shape", choice)
        if cfg.collect.get("nstep") is not None:
            cfg.nstep = cfg.collect.nstep
        self._log_alpha = torch.tensor(float(cfg.learn.alpha)).log()
        super().__init__(cfg, *args, **kwargs)

    _explorer = "eps_greedy_multinomial_sample"
    _learned = {
        **SoftQPolicy._learned,
        "log_alpha": "_log_alpha",
        "optimizer_alpha": "_alpha_optimizer",
    }
    _acted_with = {"log_alpha": "_log_alpha"}

    _network = "sqn"

    def _settings_without_effect(self) -> Mapping[str, str]:
        instead = {"learn.learning_rate": "set policy.learn.learning_rate_q"}
        return {**super()._settings_without_effect(), **instead}

    def _init_learn(self) -> None:
        super()._init_learn()
        learn = self._cfg.learn
        self._optimizer = Adam(self._model.parameters(), lr=learn.learning_rate_q)
        self._log_alpha = self._log_alpha.to(self._device).requires_grad_()
        self._alpha_optimizer = Adam([self._log_alpha], lr=learn.learning_rate_alpha)

    def _learn(self, batch: Steps) -> Log:
        log = super()._learn(batch)
        log["alpha"] = self._log_alpha.exp().item()
        log["q_loss"] = log["total_loss"] - log["alpha_loss"]
        return log

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        alpha = self._log_alpha.detach().exp()
        values = [
            self._soft_loss(batch, action, q, target["legal_logit"], alpha)
            for q in output["q_value"]
        ]
        logit = legal(output, batch["obs"])["logit"].detach()
        log_policy = (logit / alpha).log_softmax(-1)
        entropy = -(log_policy.exp() * log_policy).sum(-1).mean()
        alpha_loss = self._log_alpha * (entropy - self._cfg.learn.target_entropy)
        return Loss(
            torch.stack([value.loss for value in values]).sum() + alpha_loss,
            torch.stack([value.priority for value in values]).mean(0),
            {"entropy": entropy, "alpha_loss": alpha_loss.detach()},
        )

    def _update(self, loss: Tensor, batch: Steps) -> float:
        self._alpha_optimizer.zero_grad()
        value = super()._update(loss, batch)
        if self._joint:
            average_gradients([self._log_alpha])
        self._alpha_optimizer.step()
        return value

    def _forward_collect_batch(self, obs: Obs, eps: Eps) -> Output:
        self._collect_options = {"alpha": self._log_alpha.detach().exp()}
        return super()._forward_collect_batch(obs, eps)
