"""Base of off-policy actor-critics: twin critics, a target network, and two optimisers."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ding.policy._types import Action, CriticLoss, Log, LoggedLoss, Network, Obs, Steps
from ding.policy.acting import NStepPolicy, priorities
from ding.policy.checks import floats
from ding.policy.joint import normalised
from ding.policy.learning import follower
from ding.rl_utils.nstep import nstep_return, nstep_return_data, weighted_mean
from ding.torch_utils import Adam

#: Relative rounding error of the discounts in samples.
_ROUNDING = 1e-6


class QActorCritic(NStepPolicy):
    """Base of off-policy actor-critic policies with Q-value critics.

    Subclasses define the value of the next state (``_next_value``) and the actor's loss
    (``_actor_loss``); they may extend the critics' loss (``_critic_loss``). With several agents
    the values have one more dimension, ``[B, agents]``; reward and ``done`` are the team's.
    """

    config = dict(
        learn=dict(
            update_per_collect=1,
            batch_size=256,
            # Update rate of the target network, at each update of the actor.
            target_theta=0.005,
            discount_factor=0.99,
        ),
        other=dict(replay_buffer=dict(replay_buffer_size=1000000)),
    )

    _discount_key = "learn.discount_factor"
    #: Keys under ``learn`` with the learning rates of critics and actor.
    _critic_lr, _actor_lr = "learning_rate_q", "learning_rate_policy"
    _saves_target = True
    _learned: Mapping[str, str] = {
        "optimizer_q": "_optimizer_critic",
        "optimizer_policy": "_optimizer_actor",
        "update_count": "_update_count",
    }

    #: Keys without effect: their place in configs is elsewhere, or they are of former versions.
    _silent_keys: tuple[str, ...] = (*("discount_factor", "model_type", "model.agent_num"),)

    network_parts: tuple[str, ...] = ("actor", "critic")
    _explorer = _chooser = "base"
    _collect_options = _eval_options = {"mode": "compute_actor"}
    _model: Network
    _logged: tuple[str, ...] = (
        *("cur_lr_critic", "cur_lr_actor", "total_loss", "critic_loss", "actor_loss"),
        *("q_value", "target_q_value", "td_error", "critic_twin_loss", "q_value_twin"),
    )

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        self._use_priority()
        self._set_horizon()
        self._actor_update_freq = cfg.get("actor_update_freq", 1)
        # Parameters, not modules: both optimisers update an encoder that both networks share.
        self._actor_parameters = list(self._model.actor.parameters())
        self._critic_parameters = list(self._model.critic.parameters())
        self._optimizer_critic = Adam(self._critic_parameters, lr=cfg[self._critic_lr])
        self._optimizer_actor = Adam(self._actor_parameters, lr=cfg[self._actor_lr])
        self._target_model = follower(self._model, cfg.target_theta)
        self._update_count = 0

    def _learn(self, batch: Steps) -> Log:
        """One update of the critics; every ``actor_update_freq`` times also of actor and target.

        The ``priority`` of a sample is the mean of the critics' TD errors, see ``priority_form``.
        """
        if self._cfg.get("reward_batch_norm", False):
            batch["reward"] = self._normalised_reward(batch)
        critic = self._critics(batch)
        total_loss = self._descend(
            critic.loss, batch, self._optimizer_critic, parameters=self._critic_parameters
        )
        log: Log = {
            "cur_lr_critic": self._optimizer_critic.param_groups[0]["lr"],
            **floats({name: value.detach() for name, value in critic.log.items()}),
            "priority": critic.priority,
        }
        self._update_count += 1
        if self._update_count % self._actor_update_freq == 0:
            actor_loss, more = self._actor_loss(batch)
            # Gradients of the critics' parameters are not computed.
            log["actor_loss"] = self._descend(
                actor_loss, batch, self._optimizer_actor, parameters=self._actor_parameters
            )
            log.update(more, cur_lr_actor=self._optimizer_actor.param_groups[0]["lr"])
            # Only with the actor (Fujimoto et al. 2018), so that critics converge in between.
            self._target_model.update(self._model)
        return {**log, "total_loss": total_loss + log.get("actor_loss", 0.0)}

    def _normalised_reward(self, batch: Steps) -> Tensor:
        """Rewards ``[nstep, B]``, normalised over all real ones; the padding of samples with fewer
        steps is ignored."""
        reward, discount = batch["reward"], batch.get("value_gamma")
        given = torch.ones_like(reward, dtype=torch.bool)
        if discount is not None:
            # The discount of a sample with n steps is gamma^n.
            steps = torch.arange(1, len(reward) + 1, device=reward.device).unsqueeze(1)
            given = self._gamma**steps >= discount * (1 - _ROUNDING)
        return reward.masked_scatter(given, normalised(reward[given], self._joint))

    def _critics(self, batch: Steps) -> CriticLoss:
        """The critics' loss, for targets from the rewards and the value of the next state."""
        with torch.no_grad():
            next_value = self._next_value(batch)
            data = nstep_return_data(batch["reward"], next_value, batch["done"])
            target = nstep_return(data, self._gamma, self._nstep, batch.get("value_gamma"))
        q_values = self._q_values(batch)
        critic = self._critic_loss(batch, q_values, target)
        with torch.no_grad():
            squares = torch.stack([(q_value - target).square().mean() for q_value in q_values])
            log = {
                "critic_loss": critic.losses[0],
                "q_value": q_values[0].mean(),
                "target_q_value": next_value.mean(),
                "td_error": squares.mean(),
                **critic.log,
            }
            if len(critic.losses) > 1:
                log |= {"critic_twin_loss": critic.losses[1], "q_value_twin": q_values[1].mean()}
        return critic._replace(log=log)

    def _next_value(self, batch: Steps) -> Tensor:
        """Value of the state after each sample, ``[B]``."""
        raise NotImplementedError

    def _actor_loss(self, batch: Steps) -> LoggedLoss:
        """The actor's loss, and other scalars to log."""
        raise NotImplementedError

    def _q_values(self, batch: Steps) -> list[Tensor]:
        """Each critic's values of the actions taken, ``[B]`` each."""
        return self._judge(self._model, batch["obs"], batch["action"])

    def _judge(self, model: Network, obs: Obs, action: Action) -> list[Tensor]:
        """Each critic's values of actions, ``[B]`` each."""
        q_value = model(self._critic_inputs(obs, action), mode="compute_critic")["q_value"]
        return q_value if isinstance(q_value, list) else [q_value]

    def _critic_inputs(self, obs: Obs, action: Action) -> dict[str, Any]:
        return {"obs": obs, "action": action}

    def _critic_loss(self, batch: Steps, q_values: list[Tensor], target: Tensor) -> CriticLoss:
        """The critics' summed losses, the priority of each sample ``[B]``, and each loss."""
        errors = [q_value - target for q_value in q_values]
        weight = batch["weight"]
        if weight is not None:
            weight = of_team(weight, target)
        losses = [weighted_mean(error.pow(2), weight) for error in errors]
        priority = priorities(torch.stack(errors).square(), self._priority_form).mean(0)
        priority = priority if priority.dim() == 1 else priority.mean(1)
        return CriticLoss(torch.stack(losses).sum(), priority, losses)


def of_team(value: Tensor, like: Tensor) -> Tensor:
    """Reshape ``[B]`` for broadcasting with ``[B]`` or ``[B, agents]``."""
    return value.unsqueeze(-1) if value.dim() < like.dim() else value


def start_within(layer: torch.nn.Linear, bound: float) -> None:
    """Initialise a layer's parameters uniformly in ``[-bound, bound]``."""
    for parameter in layer.parameters():
        torch.nn.init.uniform_(parameter, -bound, bound)


def least(q_values: list[Tensor] | Tensor) -> Tensor:
    """The minimum of the critics' values, which reduces overestimation.

    Args:
        q_values: One tensor per critic, or one for all with the critics as first dimension.
    """
    if isinstance(q_values, Tensor):
        return q_values.amin(0)
    if len(q_values) == 1:
        return q_values[0]
    if len(q_values) == 2:
        return torch.minimum(*q_values)
    return torch.stack(q_values).amin(0)
