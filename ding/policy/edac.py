"""SAC with an ensemble of diverse critics, for offline data (An et al. 2021)."""

from typing import Any

import torch
from torch import Tensor

from ding.policy._types import Action, CriticLoss, Network, Obs, Steps
from ding.policy.acting import priorities
from ding.policy.networks import GAUSSIAN_PAIR, Shape, actor_and_q_critic
from ding.policy.sac import SACPolicy
from ding.rl_utils.nstep import weighted_mean
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("edac")
class EDACPolicy(SACPolicy):
    """SAC whose targets and actor take the least of ``model.ensemble_num`` critics.

    The more critics, the lower they rate actions that the data do not have. So that fewer do,
    ``learn.eta`` times the mean cosine between the critics' gradients with respect to the action
    is added to their loss (equation 3); with 0 it is SAC-N. Of a single action dimension such
    gradients have only a sign, so that it changes nothing there.
    """

    paper = "An et al. 2021"
    actions = ("continuous",)
    networks = {"continuous": actor_and_q_critic({"logit": GAUSSIAN_PAIR}, q_value=Shape("E B"))}
    _silent_keys = (
        *SACPolicy._silent_keys,
        # Of other methods for data sets.
        *("learn.learning_rate_value", "learn.min_q_weight"),
    )

    _refused = {"multi_agent": "it is for one agent"}
    pipeline = "serial_offline"
    config = dict(
        type="edac",
        model=dict(
            ensemble_num=10,
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        learn=dict(
            alpha=1,
            eta=0.1,
            # Whether targets have the entropy of the next action, as SAC's do.
            with_q_entropy=False,
        ),
    )

    _network = "edac"

    def _init_learn(self) -> None:
        super()._init_learn()
        self._eta = self._cfg.learn.eta
        self._entropy_in_targets = self._cfg.learn.with_q_entropy

    def _judge(self, model: Network, obs: Obs, action: Action) -> Any:
        """What each critic says of actions, ``[E, B]``."""
        return model({"obs": obs, "action": action}, mode="compute_critic")["q_value"]

    def _critic_loss(self, batch: Steps, q_values: Any, target: Tensor) -> CriticLoss:
        error = q_values - target
        squares = error.pow(2)
        losses = [weighted_mean(one, batch["weight"]) for one in squares]
        loss = torch.stack(losses).sum()
        if self._eta > 0 and len(error) > 1:
            loss = loss + self._eta * self._similarity(batch, len(error))
        priority = priorities(squares, self._priority_form).mean(0)
        return CriticLoss(loss, priority, losses)

    def _similarity(self, batch: Steps, number: int) -> Tensor:
        """The sum over pairs of critics of the cosine of their gradients, over ``number - 1``; the
        mean over samples."""
        obs, action = (batch[name].expand(number, -1, -1) for name in ("obs", "action"))
        action = action.contiguous().requires_grad_(True)
        q_values = self._judge(self._model, obs, action)
        (gradient,) = torch.autograd.grad(q_values.sum(), action, create_graph=True)
        direction = gradient / (gradient.norm(dim=-1, keepdim=True) + 1e-10)
        # Of all pairs: the square of the sum, less each with itself.
        pairs = direction.sum(0).pow(2).sum(-1) - direction.pow(2).sum((0, 2))
        return pairs.mean() / (number - 1)
