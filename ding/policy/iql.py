"""Implicit Q-learning, for offline data (Kostrikov et al. 2021)."""

from typing import Any

import torch
from torch import Tensor

from ding.policy._types import CriticLoss, LoggedLoss, Obs, Output, Steps
from ding.policy.networks import GAUSSIAN_PAIR, NUMBER, Call, actor_and_q_critic
from ding.policy.q_actor_critic import QActorCritic, least
from ding.rl_utils.log_prob_utils import log_prob
from ding.rl_utils.nstep import weighted_mean
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("iql")
class IQLPolicy(QActorCritic):
    """Implicit Q-Learning (Kostrikov et al. 2021) for continuous actions, offline.

    The critics are only evaluated at actions of the data. The value of a state is the expectile
    ``learn.tau`` of the target critics' values of its actions (equation 5); close to 1 it
    approaches the value of the best action. The critics' targets use this value (equation 6). The
    actor imitates the data, where each action has the weight ``exp(learn.beta (Q - V))``, at most
    100 (equation 7): choose ``beta`` to match the scale of the rewards.
    """

    paper = "Kostrikov et al. 2021"
    actions = ("continuous",)
    networks = {
        "continuous": (
            *actor_and_q_critic({"logit": GAUSSIAN_PAIR}),
            Call({"v_value": NUMBER}, "compute_value"),
        )
    }

    _refused = {"multi_agent": "it is for one agent"}
    pipeline = "serial_offline"
    config = dict(
        type="iql",
        random_collect_size=10000,
        transition_with_policy_data=True,
        multi_agent=False,
        model=dict(
            twin_critic=True,
            action_space="reparameterization",
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        learn=dict(
            # Of the critics and the value.
            learning_rate_q=3e-4,
            learning_rate_policy=3e-4,
            tau=0.7,
            beta=3.0,
        ),
        collect=dict(n_sample=1),
    )

    _network = "continuous_qvac"
    _logged: tuple[str, ...] = ("advantage", "bc_weight")

    def _init_learn(self) -> None:
        super()._init_learn()
        self._tau, self._beta = self._cfg.learn.tau, self._cfg.learn.beta
        if not 0 < self._tau < 1:
            raise ConfigError(f"policy.learn.tau is {self._tau}; expected 0 < tau < 1")

    def _next_value(self, batch: Steps) -> Tensor:
        return self._model(batch["next_obs"], mode="compute_value")["v_value"]

    def _critic_loss(self, batch: Steps, q_values: list[Tensor], target: Tensor) -> CriticLoss:
        critic = super()._critic_loss(batch, q_values, target)
        with torch.no_grad():
            judged = least(self._judge(self._target_model, batch["obs"], batch["action"]))
        advantage = judged - self._model(batch["obs"], mode="compute_value")["v_value"]
        side = torch.where(advantage < 0, 1 - self._tau, self._tau)
        # The actor is to learn from it.
        batch["advantage"] = advantage.detach()
        value_loss = weighted_mean(side * advantage.pow(2), batch["weight"])
        return critic._replace(loss=critic.loss + value_loss)

    def _actor_loss(self, batch: Steps) -> LoggedLoss:
        mu, sigma = self._model(batch["obs"], mode="compute_actor")["logit"]
        # Data of one action would make a sigma of 0, and densities without bounds.
        gaussian = {"mu": mu, "sigma": sigma.clamp(min=_LEAST_SIGMA)}
        likelihood = log_prob(gaussian, batch["action"])
        weight = (self._beta * batch["advantage"]).exp().clamp(max=_LARGEST_WEIGHT)
        log = {"advantage": batch["advantage"].mean().item(), "bc_weight": weight.mean().item()}
        return -(weight * likelihood).mean(), log

    def _forward_collect_batch(self, obs: Obs, **kwargs: Any) -> Output:
        self._train_mode(False)
        mu, sigma = self._collect_model.forward(obs, mode="compute_actor")["logit"]
        action = torch.addcmul(mu, sigma, torch.randn_like(mu)).clamp_(-1, 1)
        return {"action": action, "logit": {"mu": mu, "sigma": sigma}}

    def _forward_eval_batch(self, obs: Obs) -> Output:
        self._train_mode(False)
        mu, sigma = self._eval_model.forward(obs, mode="compute_actor")["logit"]
        return {"action": mu, "logit": {"mu": mu, "sigma": sigma}}


#: As in the paper: log-sigmas of at least -5, and weights of at most 100.
_LEAST_SIGMA, _LARGEST_WEIGHT = 0.0067, 100.0
