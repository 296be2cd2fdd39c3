"""QMIX (Rashid et al. 2018): decentralised agents trained by the value of their joint action.

Also algorithms that evaluate joint actions differently: weighted QMIX (Rashid et al. 2020), QTRAN
(Son et al. 2019) and CollaQ (Zhang et al. 2020).
"""

from typing import Any

import torch
from torch import Tensor

from ding.model.template.agents import best_actions
from ding.policy._types import LoggedLoss, Network, Output, Sequences, TeamLoss
from ding.policy.recurrent import TeamPolicy, after, during
from ding.torch_utils import RMSprop
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("qmix")
class QMIXPolicy(TeamPolicy):
    """QMIX (Rashid et al. 2018): Q-learning of a team with a monotonic mixing network.

    See `TeamPolicy` for observations and samples. Each agent acts on its own values. The joint
    value of all agents' actions is learned; its target is the target network's joint value of the
    agents' best next actions. With ``model.mixer=False`` the joint value is a sum (VDN, Sunehag et
    al. 2018).

    Subclasses override how a joint action is evaluated (`AgentsModel.judge`), and the loss.
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
            # Maximum gradient norm.
            clip_value=100,
            # The online network chooses next actions, the target network evaluates them.
            double_q=False,
            weight_decay=0.0,
        ),
        other=dict(
            # ε as a function of environment steps; `type` is 'exp' or 'linear'.
            eps=dict(type="exp", start=1, end=0.05, decay=50000),
            replay_buffer=dict(replay_buffer_size=5000),
        ),
    )

    #: Outputs of `AgentsModel.judge`: the value to train, and the value in targets.
    _learned_value = _target_value = "total_q"

    _network = "qmix"
    _logged: tuple[str, ...] = (
        *("cur_lr", "total_loss", "total_q", "target_total_q", "target_reward_total_q"),
    )
    _logs_grad_norm = True

    def _init_learn(self) -> None:
        super()._init_learn()
        self._nstep = self._cfg.get("nstep", 1)
        cfg = self._cfg.learn
        self._optimizer = RMSprop(
            self._model.parameters(),
            lr=cfg.learning_rate,
            # As in the authors' code.
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
        """The loss, and other scalars to log.

        Args:
            online: The network's outputs for the observations.
            judged: Its values of the actions taken.
            target: Targets of the joint values, ``[T, B]``.
            error: ``[T, B]``, or ``[T, B, agents]`` if each agent has a separate value.
        """
        return self._mean(error.pow(2), batch), {}

    def _judge(self, model: Network, output: Output, batch: Sequences) -> dict[str, Any]:
        """A network's values of the actions taken."""
        return model.judge(during(output), during(batch["obs"]), batch["action"])

    @torch.no_grad()
    def _targets(self, batch: Sequences, online: Output) -> tuple[Tensor, Tensor]:
        """Targets of the joint values, ``[T, B]``: reward plus the value of the next state; and
        this value alone."""
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
    """``nstep`` returns plus the value after them, ``[T, B]``; shorter at a sequence's end.

    Args:
        batch: ``reward``, ``done`` and ``mask``, ``[T, B]``.
        next_value: Value of the observation after each step, ``[T, B]`` or ``[T, B, agents]``.
    """
    reward, mask, done = batch["reward"], batch["mask"], batch["done"]
    if next_value.dim() > reward.dim():
        reward, mask, done = (part.unsqueeze(-1) for part in (reward, mask, done))
    goes_on = gamma * (1 - done)
    target = reward + goes_on * next_value
    for _ in range(nstep - 1):
        # If the next step is padding, the return ends with the value after this step.
        later = torch.where(mask[1:] > 0, target[1:], next_value[:-1])
        target = reward + goes_on * torch.cat([later, next_value[-1:]])
    return target


@POLICY_REGISTRY.register("wqmix")
class WQMIXPolicy(QMIXPolicy):
    """Weighted QMIX (Rashid et al. 2020): QMIX with targets from an unrestricted joint value.

    The unrestricted value is learned in parallel. Errors of the monotonic value have the weight 1
    where it is below the target (optimistic weighting, ``learn.wqmix_ow``), or where the joint
    action is the best one or its target exceeds the best one's value (central weighting), and
    ``learn.alpha`` elsewhere.
    """

    paper = "Rashid et al. 2020"
    actions = ("multi-agent",)
    config = dict(type="wqmix", learn=dict(wqmix_ow=True, alpha=0.1))

    _target_value = "free_q"

    _network = "wqmix"
    _logged: tuple[str, ...] = ("free_q_value", "weighted_loss", "free_loss")

    def _init_learn(self) -> None:
        super()._init_learn()
        self._alpha = self._cfg.learn.alpha
        if not 0 <= self._alpha <= 1:
            raise ConfigError(f"policy.learn.alpha is {self._alpha}; expected a weight, 0 to 1")

    def _loss(
        self, batch: Sequences, online: Output, judged: Output, target: Tensor, error: Tensor
    ) -> LoggedLoss:
        free_error = judged["free_q"] - target
        with torch.no_grad():
            if self._cfg.learn.wqmix_ow:
                counts = error < 0
            else:
                counts = self._is_good(batch, online, target)
            weight = torch.where(counts, 1.0, self._alpha)
        loss = self._mean(weight * error.pow(2), batch)
        free_loss = self._mean(free_error.pow(2), batch)
        log = {"free_q_value": judged["free_q"].mean()}
        return loss + free_loss, {**log, "weighted_loss": loss, "free_loss": free_loss}

    def _is_good(self, batch: Sequences, online: dict[str, Any], target: Tensor) -> Tensor:
        """Where the joint action is the best one, or its target exceeds that value, ``[T, B]``."""
        output, obs = during(online), during(batch["obs"])
        best = best_actions(output["logit"], obs.get("action_mask"))
        best_value = self._model.judge(output, obs, best)["free_q"]
        return (target > best_value) | (best == batch["action"]).all(-1)


@POLICY_REGISTRY.register("qtran")
class QTRANPolicy(QMIXPolicy):
    """QTRAN-base (Son et al. 2019): factorises a joint value that is learned without restrictions.

    The joint value learns from returns, the agents' values learn from the joint value: their sum
    plus a state value has to equal the joint value for the agents' best actions (``opt``) and must
    not be smaller than it for any other (``nopt``).
    """

    paper = "Son et al. 2019"
    actions = ("multi-agent",)
    config = dict(
        type="qtran",
        learn=dict(
            # Weights of the three losses.
            td_weight=1.0,
            opt_weight=1.0,
            nopt_min_weight=1.0,
            clip_value=1.5,
        ),
    )

    _learned_value = _target_value = "joint_q"

    _network = "qtran"
    _logged: tuple[str, ...] = ("td_loss", "opt_loss", "nopt_loss")

    def _loss(
        self, batch: Sequences, online: Output, judged: Output, target: Tensor, error: Tensor
    ) -> LoggedLoss:
        cfg = self._cfg.learn
        output, obs = during(online), during(batch["obs"])
        best_action = best_actions(output["logit"], obs.get("action_mask"))
        best = self._model.judge(output, obs, best_action)
        # The joint value is detached: the other values follow it.
        opt = best["total_q"] - best["joint_q"].detach() + best["value"]
        nopt = (judged["total_q"] - judged["joint_q"].detach() + judged["value"]).clamp(max=0)
        td_loss, opt_loss, nopt_loss = (self._mean(e.pow(2), batch) for e in (error, opt, nopt))
        loss = cfg.td_weight * td_loss + cfg.opt_weight * opt_loss
        log = {"td_loss": td_loss, "opt_loss": opt_loss, "nopt_loss": nopt_loss}
        return loss + cfg.nopt_min_weight * nopt_loss, log


@POLICY_REGISTRY.register("collaq")
class CollaQPolicy(QMIXPolicy):
    """CollaQ (Zhang et al. 2020): QMIX with agent values decomposed by reward attribution.

    An agent's value is the sum of a value that ignores the other agents and one that depends on
    them. The latter must be zero without other agents; ``learn.collaq_loss_weight`` weighs this
    loss, the paper's multi-agent reward attribution. Observations also have ``agent_alone_state``
    and ``agent_alone_padding_state``.
    """

    paper = "Zhang et al. 2020"
    actions = ("multi-agent",)
    config = dict(type="collaq", learn=dict(collaq_loss_weight=1.0))

    _needed_parts = (
        *QMIXPolicy._needed_parts,
        *("agent_alone_state", "agent_alone_padding_state"),
    )

    _network = "collaq"
    _logged: tuple[str, ...] = ("td_loss", "colla_loss")

    def _loss(
        self, batch: Sequences, online: Output, judged: Output, target: Tensor, error: Tensor
    ) -> LoggedLoss:
        td_loss = self._mean(error.pow(2), batch)
        attribution = self._mean(judged["nobody_q"].pow(2).mean(-1), batch)
        loss = td_loss + self._cfg.learn.collaq_loss_weight * attribution
        return loss, {"td_loss": td_loss, "colla_loss": attribution}


@POLICY_REGISTRY.register("madqn")
class MADQNPolicy(QMIXPolicy):
    """Multi-agent DQN by independent Q-learning (Tan 1993).

    Each agent learns the team's return from its own action, without a mixer by default. The targets
    of both networks use the values of a second network, which may see the global state
    (``model.global_cooperation``). Targets take ``nstep`` rewards. With ``model.mixer=True`` both
    values are mixed as in QMIX.
    """

    paper = "Tan 1993"
    actions = ("multi-agent",)
    config = dict(
        type="madqn",
        nstep=3,
        learn=dict(weight_decay=1e-5),
        collect=dict(n_episode=32),
        other=dict(replay_buffer=dict(max_reuse=1e9, max_staleness=1e9)),
    )

    _target_value = "team_q"

    _network = "madqn"
    _logged: tuple[str, ...] = ("current_loss", "cooperation_loss")

    def _loss(
        self, batch: Sequences, online: Output, judged: Output, target: Tensor, error: Tensor
    ) -> LoggedLoss:
        team_error = judged["team_q"] - target
        # Without a mixer, each agent has an error: [T, B, agents].
        squares = (e.pow(2) if e.dim() == 2 else e.pow(2).mean(-1) for e in (error, team_error))
        own_loss, team_loss = (self._mean(square, batch) for square in squares)
        return own_loss + team_loss, {"current_loss": own_loss, "cooperation_loss": team_loss}
