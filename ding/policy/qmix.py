"""QMIX (Rashid et al. 2018): agents who act alone learn from the value of what all do together."""

from typing import Any

import torch
from torch import Tensor

from ding.model.template.agents import best_actions
from ding.policy._types import LoggedLoss, Output, Sequences, TeamLoss
from ding.policy.team_policy import TeamPolicy, after, during
from ding.torch_utils import RMSprop
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("qmix")
class QMIXPolicy(TeamPolicy):
    """Q-learning of a team; see `TeamPolicy` for its observations and samples.

    Agents act on their own values alone. What is learned is the joint value of their actions,
    whose target the target network has for the agents' best next actions. With
    ``model.mixer=False`` the joint value is a sum (VDN, Sunehag et al. 2018).

    What other members of the family change is what a joint action is worth
    (`AgentsModel.judge`), and the loss.
    """

    paper = "Rashid et al. 2018"
    actions: tuple[str, ...] = ("multi-agent",)
    config = dict(
        type="qmix",
        cuda=True,
        learn=dict(
            update_per_collect=20,
            batch_size=32,
            learning_rate=0.0005,
            # Norm to which gradients are clipped.
            clip_value=100,
            # The online network chooses next actions, the target network values them.
            double_q=False,
            weight_decay=0.0,
        ),
        other=dict(
            # ε as a function of environment steps; `type` is 'exp' or 'linear'.
            eps=dict(type="exp", start=1, end=0.05, decay=50000),
            replay_buffer=dict(replay_buffer_size=5000),
        ),
    )

    #: Of what `AgentsModel.judge` says: the value that is learned, and the one in targets.
    _learned_value = _target_value = "total_q"

    _network = "qmix"
    _logged: tuple[str, ...] = (
        *("cur_lr", "total_loss", "total_q", "target_total_q", "target_reward_total_q"),
    )
    _logs_grad_norm = True

    def _init_learn(self) -> None:
        super()._init_learn()
        self._nstep = self._cfg.get("nstep", 1)

    def _make_optimizer(self) -> RMSprop:
        cfg = self._cfg.learn
        return RMSprop(
            self._model.parameters(),
            lr=cfg.learning_rate,
            # As the paper's authors have it.
            alpha=0.99,
            eps=1e-5,
            weight_decay=cfg.weight_decay,
            grad_clip_type="clip_norm",
            clip_value=cfg.clip_value,
        )

    def _losses(self, batch: Sequences) -> TeamLoss:
        online = self._unroll(self._model, batch)
        judged = self._judge(self._model, online, batch)
        q_value, (target, next_value) = judged[self._learned_value], self._targets(batch, online)
        error = q_value - target
        loss, log = self._loss(batch, online, judged, target, error)
        means = {
            "total_q": q_value.mean(),
            "target_total_q": next_value.mean(),
            "target_reward_total_q": target.mean(),
        }
        log = {**means, **log}
        return loss, error if error.dim() == 2 else error.detach().abs().mean(-1), log

    def _loss(
        self, batch: Sequences, online: Output, judged: Output, target: Tensor, error: Tensor
    ) -> LoggedLoss:
        """What is to be minimised, and what to log besides.

        Args:
            online: What the network says of the observations.
            judged: What it thinks of the actions that were done.
            target: Of the joint values, ``[T, B]``.
            error: ``[T, B]``, or where each agent has a value of its own ``[T, B, agents]``.
        """
        return self._mean(error.pow(2), batch), {}

    def _judge(self, model: Any, output: Output, batch: Sequences) -> dict[str, Any]:
        """What a network thinks of the actions that were done."""
        return model.judge(during(output), during(batch["obs"]), batch["action"])

    @torch.no_grad()
    def _targets(self, batch: Sequences, online: Output) -> tuple[Tensor, Tensor]:
        """Targets of the joint values, ``[T, B]``: reward, and the value of what comes after; and
        that value alone."""
        output = self._unroll(self._target_model, batch)
        best = self._best_next(online if self._cfg.learn.double_q else output, batch)
        judged = self._target_model.judge(after(output), after(batch["obs"]), best)
        next_value = judged[self._target_value]
        return nstep_targets(batch, next_value, self._gamma, self._nstep), next_value

    def _best_next(self, output: Output, batch: Sequences) -> Tensor:
        """The agents' best actions after each step, int64 ``[T, B, agents]``."""
        mask = batch["obs"].get("action_mask")
        return best_actions(output["logit"][1:], None if mask is None else mask[1:])


def nstep_targets(batch: Sequences, next_value: Tensor, gamma: float, nstep: int = 1) -> Tensor:
    """Returns of ``nstep`` steps and the value after them, ``[T, B]``; shorter at a sequence's end.

    Args:
        batch: ``reward``, ``done`` and ``mask``, ``[T, B]``.
        next_value: Of the observation after each step, ``[T, B]``; or of each agent.
    """
    reward, mask, done = batch["reward"], batch["mask"], batch["done"]
    if next_value.dim() > reward.dim():
        reward, mask, done = (part.unsqueeze(-1) for part in (reward, mask, done))
    goes_on = gamma * (1 - done)
    target = reward + goes_on * next_value
    for _ in range(nstep - 1):
        later = torch.where(mask[1:] > 0, target[1:], next_value[:-1])
        target = reward + goes_on * torch.cat([later, next_value[-1:]])
    return target
