"""What off-policy actor-critic methods share: twin critics, a slow copy of all, two optimisers."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ding.policy._types import Batch, LoggedLoss, Loss
from ding.policy.acting import NStepPolicy
from ding.policy.checks import to_floats
from ding.rl_utils.nstep import nstep_return, nstep_return_data, weighted_mean
from ding.torch_utils import Adam


class QActorCritic(NStepPolicy):
    """Critics of actions, and an actor that learns what they like.

    An algorithm says what the next state is worth (``_next_value``) and what the actor's loss is
    (``_actor_loss``); it may add to the critics' loss (``_critic_loss``). With several agents
    the values have one more dimension, ``[B, agents]``; reward and end are the team's.
    """

    config: dict[str, Any] = dict(
        learn=dict(
            update_per_collect=1,
            batch_size=256,
            # How far the target moves towards the network at each update of the actor.
            target_theta=0.005,
            discount_factor=0.99,
        ),
        other=dict(replay_buffer=dict(replay_buffer_size=1000000)),
    )

    #: Keys under ``learn`` with the learning rates of critics and actor.
    _critic_lr, _actor_lr = "learning_rate_q", "learning_rate_policy"
    _saves_target = True
    _learned: Mapping[str, str] = {
        "optimizer_q": "_optimizer_critic",
        "optimizer_policy": "_optimizer_actor",
        "update_count": "_update_count",
    }

    #: Keys of configs that are elsewhere, or of policies that these have grown out of.
    _silent_keys: tuple[str, ...] = (
        *("discount_factor", "model_type", "expert_random_collect_size", "model.agent_num"),
    )

    network_parts: tuple[str, ...] = ("actor", "critic")
    _explorer = _chooser = "base"
    _collect_options = _eval_options = {"mode": "compute_actor"}
    _model: Any
    _logged: tuple[str, ...] = (
        *("cur_lr_critic", "cur_lr_actor", "total_loss", "critic_loss", "actor_loss"),
        *("q_value", "target_q_value", "td_error"),
    )

    def _set_horizon(self) -> None:
        self._gamma, self._nstep = self._cfg.learn.discount_factor, self._cfg.nstep

    # ------------------------------------------------------------------ learn

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        self._use_priority()
        self._set_horizon()
        self._actor_update_freq = cfg.get("actor_update_freq", 1)
        # Parameters, not modules: an encoder that both share is moved by both.
        self._actor_parameters = list(self._model.actor.parameters())
        self._critic_parameters = list(self._model.critic.parameters())
        self._optimizer_critic = Adam(self._critic_parameters, lr=cfg[self._critic_lr])
        self._optimizer_actor = Adam(self._actor_parameters, lr=cfg[self._actor_lr])
        self._target_model = self._follower(cfg.target_theta)
        self._update_count = 0

    def _learn(self, batch: Batch) -> dict[str, Any]:
        """One update of the critics, and each ``actor_update_freq``-th time of actor and target.

        The ``priority`` of a sample is the mean absolute TD error of the critics.
        """
        if self._cfg.get("reward_batch_norm", False):
            reward = batch["reward"]
            batch["reward"] = (reward - reward.mean()) / (reward.std(correction=0) + 1e-8)
        log = self._update_critic(batch)
        self._update_count += 1
        if self._update_count % self._actor_update_freq == 0:
            log.update(self._update_actor(batch))
            self._target_model.update(self._model)
        # The actor's loss is part of it only when there was one.
        log["total_loss"] = log["critic_loss"] + log.get("actor_loss", 0.0)
        return log

    def _update_critic(self, batch: Batch) -> dict[str, Any]:
        with torch.no_grad():
            data = nstep_return_data(batch["reward"], self._next_value(batch), batch["done"])
            target = nstep_return(data, self._gamma, self._nstep, batch.get("value_gamma"))
        q_values = self._q_values(batch)
        loss, td_error = self._critic_loss(batch, q_values, target)
        return self._descend_critic(batch, loss, td_error, q_values[0].detach(), target)

    def _descend_critic(
        self, batch: Batch, loss: Tensor, td_error: Tensor, q_value: Tensor, target: Tensor
    ) -> dict[str, Any]:
        """One step of the critics; returns what to log of it."""
        loss_value = self._descend(
            loss, batch, self._optimizer_critic, parameters=self._critic_parameters
        )
        q_mean, target_mean = to_floats(q_value.mean(), target.mean())
        return {
            "cur_lr_critic": self._optimizer_critic.param_groups[0]["lr"],
            "critic_loss": loss_value,
            "q_value": q_mean,
            "target_q_value": target_mean,
            "td_error": td_error.mean().item(),
            "priority": td_error,
        }

    def _update_actor(self, batch: Batch) -> dict[str, Any]:
        loss, log = self._actor_loss(batch)
        # The actor's loss leaves out the critics' parameters.
        loss_value = self._descend(
            loss, batch, self._optimizer_actor, parameters=self._actor_parameters
        )
        return {
            "cur_lr_actor": self._optimizer_actor.param_groups[0]["lr"],
            "actor_loss": loss_value,
            **log,
        }

    def _next_value(self, batch: Batch) -> Tensor:
        """What the state after each sample is worth, ``[B]``."""
        raise NotImplementedError

    def _actor_loss(self, batch: Batch) -> LoggedLoss:
        """The actor's loss, and what to log besides."""
        raise NotImplementedError

    def _q_values(self, batch: Batch) -> list[Tensor]:
        """What each critic says of the actions that were done, ``[B]`` each."""
        return self._judge(self._model, batch["obs"], batch["action"])

    def _judge(self, model: Any, obs: Any, action: Any) -> list[Tensor]:
        """What each critic says of actions, ``[B]`` each."""
        inputs = self._critic_inputs(obs, action)
        q_value = model(inputs, mode="compute_critic")["q_value"]
        return q_value if isinstance(q_value, list) else [q_value]

    def _first_judge(self, obs: Any, action: Any) -> Tensor:
        """What the first critic says of actions, ``[B]``."""
        first = getattr(self._model, "first_q_value", None)
        if first is None:
            return self._judge(self._model, obs, action)[0]
        return first(self._critic_inputs(obs, action))

    def _critic_inputs(self, obs: Any, action: Any) -> dict[str, Any]:
        return {"obs": obs, "action": action}

    def _critic_loss(self, batch: Batch, q_values: list[Tensor], target: Tensor) -> Loss:
        """The critics' summed losses, and the mean absolute TD error of each sample ``[B]``."""
        errors = [q_value - target for q_value in q_values]
        weight = batch["weight"]
        if weight is not None:
            weight = self._of_team(weight, target)
        losses = [weighted_mean(error.pow(2), weight) for error in errors]
        td_error = torch.stack([error.detach().abs() for error in errors]).mean(0)
        return torch.stack(losses).sum(), td_error if td_error.dim() == 1 else td_error.mean(1)

    @staticmethod
    def _of_team(value: Tensor, like: Tensor) -> Tensor:
        """``[B]`` so that it goes with ``[B]`` or with ``[B, agents]``."""
        return value.unsqueeze(-1) if value.dim() < like.dim() else value


def start_within(layer: torch.nn.Linear, bound: float) -> None:
    """Let a layer's parameters begin uniform in ``[-bound, bound]``."""
    for parameter in layer.parameters():
        torch.nn.init.uniform_(parameter, -bound, bound)


def least(q_values: list[Tensor] | Tensor) -> Tensor:
    """The least of the critics' values: of two, the one that overestimates less.

    Args:
        q_values: One tensor for each critic, or one for all with the critics first.
    """
    if isinstance(q_values, Tensor):
        return q_values.amin(0)
    if len(q_values) == 1:
        return q_values[0]
    if len(q_values) == 2:
        return torch.minimum(*q_values)
    return torch.stack(q_values).amin(0)
