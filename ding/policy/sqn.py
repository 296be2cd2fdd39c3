"""Soft Q-learning with two networks and a temperature that is learned.

Haarnoja et al. 2017 (soft values, and the policy that they make), Fujimoto et al. 2018 (the lower
of two networks' values), Haarnoja et al. 2018b (the temperature).
"""

from typing import Any

import torch
from easydict import EasyDict
from torch import Tensor

from ding.policy._types import Eps, Log, Loss, Obs, Output, Steps
from ding.policy.networks import CHOICES, Call
from ding.policy.sql import SoftQPolicy
from ding.torch_utils import Adam
from ding.torch_utils.gradient_overlap import average_gradients
from ding.utils import POLICY_REGISTRY
from ding.utils.default_helper import one_size
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("sqn")
class SQNPolicy(SoftQPolicy):
    """Discrete SAC without an actor: the policy is ``softmax(Q / alpha)``.

    ``alpha`` begins at ``learn.alpha`` and follows the policy's entropy, in nats: above
    ``learn.target_entropy`` it falls, below it rises. Evaluation takes the best action.
    """

    paper = "Haarnoja et al. 2017"
    actions: tuple[str, ...] = ("discrete",)
    networks = {"discrete": (Call({"q_value": (CHOICES, CHOICES), "logit": CHOICES}),)}
    config = dict(
        type="sqn",
        learn=dict(
            learning_rate_q=0.001,
            learning_rate_alpha=0.001,
            # The target network follows; a number here makes it a copy instead.
            target_update_freq=None,
            alpha=0.2,
            target_entropy=0.2,
        ),
        # Another place of `nstep`; counts if it is given.
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
            self._soft_loss(batch, action, q, target["logit"], alpha) for q in output["q_value"]
        ]
        log_policy = (output["logit"].detach() / alpha).log_softmax(-1)
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
