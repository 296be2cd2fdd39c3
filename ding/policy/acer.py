"""Sample efficient actor-critic with experience replay (Wang et al. 2017)."""

from typing import Any

import torch

from ding.model.wrapper.sample import legal
from ding.policy._types import Log, Network, Obs, Sequences
from ding.policy.checks import check_loss, floats
from ding.policy.learning import follower
from ding.policy.networks import CHOICES, Call
from ding.policy.unrolled import UnrolledPolicy, flat_steps, piece_priority, with_last_values
from ding.rl_utils import (
    acer_policy_error,
    acer_trust_region_update,
    acer_value_error,
    compute_q_retraces,
)
from ding.rl_utils.log_prob_utils import log_probabilities
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("acer")
class ACERPolicy(UnrolledPolicy):
    """Actor-Critic with Experience Replay (Wang et al. 2017) for one discrete action.

    The critic learns Retrace targets; the actor's gradient has truncated importance weights with
    bias correction, and a trust region around an average of its past parameters
    (``learn.trust_region``).
    """

    _model: Network

    paper = "Wang et al. 2017"
    actions = ("discrete",)
    networks = {
        "discrete": (
            Call({"logit": CHOICES}, "compute_actor"),
            Call({"q_value": CHOICES}, "compute_critic"),
        )
    }
    network_parts: tuple[str, ...] = ("actor", "critic")
    config = dict(
        type="acer",
        learn=dict(
            # Alternative key for `unroll_len`.
            unroll_len=32,
            learning_rate_actor=5e-4,
            learning_rate_critic=5e-4,
            discount_factor=0.9,
            # Upper bound of the importance weights; a correction removes the bias of truncation.
            c_clip_ratio=10,
            # Bound the growth of the divergence from the average policy by `trust_region_value`.
            trust_region=True,
            trust_region_value=1.0,
            # Update rate of the average policy, once per update.
            target_theta=0.01,
            clip_value=None,
        ),
        collect=dict(unroll_len=32),
        eval=dict(evaluator=dict(eval_freq=200)),
    )

    _silent_keys = (
        *("collect.discount_factor", "collect.gae_lambda"),
        *("discount_factor", "nstep"),
    )

    _network = "acer"

    _saves_target = True
    _learned = {"optimizer_actor": "_optimizer_actor", "optimizer_critic": "_optimizer_critic"}
    _logged: tuple[str, ...] = (
        *("cur_lr_actor", "cur_lr_critic", "total_loss", "actor_loss", "critic_loss"),
        *("policy_loss", "bias_correction_loss", "entropy_loss"),
    )
    _log_names = {"bias_correction_loss": "bc_loss"}

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        self._use_priority()
        clip = {"grad_clip_type": cfg.grad_clip_type, "clip_value": cfg.clip_value}
        self._optimizer_actor = Adam(
            self._model.actor.parameters(), lr=cfg.learning_rate_actor, **clip
        )
        self._optimizer_critic = Adam(
            self._model.critic.parameters(), lr=cfg.learning_rate_critic, **clip
        )
        self._target_model = follower(self._model, cfg.target_theta)

    def _learn(self, batch: Sequences) -> Log:
        """One update of actor and critic, and of the average policy."""
        cfg = self._cfg.learn
        batch["action"] = batch["action"].long()
        steps, size = batch["discount"].shape
        obs = flat_steps(batch["obs"])
        logit = legal(self._model(obs, mode="compute_actor"), obs)["logit"]
        logit = logit.unflatten(0, (steps + 1, size))
        q_value = self._model(obs, mode="compute_critic")["q_value"]
        q_value = q_value.unflatten(0, (steps + 1, size))
        with torch.no_grad():
            value = (logit.softmax(-1) * q_value).sum(-1)
            value = with_last_values(value, batch["mask"])
        log_prob = log_probabilities(logit[:-1])
        with torch.no_grad():
            ratio = (log_prob - log_probabilities(batch["logit"])).exp()
            # Padding must not pass traces on.
            ratio = ratio.masked_fill(batch["mask"].unsqueeze(-1) == 0, 0.0)
        q_retrace = compute_q_retraces(
            *(q_value.detach(), value.unsqueeze(-1), batch["reward"], batch["action"]),
            *(batch["discount"], ratio, 1.0, cfg.lambda_),
        )
        critic_loss = _mean(acer_value_error(q_value[:-1], q_retrace[:-1], batch["action"]), batch)
        policy_loss, correction = acer_policy_error(
            *(q_value[:-1].detach(), q_retrace[:-1], value[:-1].unsqueeze(-1)),
            *(log_prob, batch["action"], ratio),
            c_clip_ratio=cfg.c_clip_ratio,
        )
        entropy = -(log_prob.exp() * log_prob).sum(-1, keepdim=True)
        actor_loss = policy_loss + correction - cfg.entropy_weight * entropy
        parts = {
            "actor_loss": actor_loss,
            "policy_loss": policy_loss,
            "bias_correction_loss": correction,
            "entropy_loss": entropy,
        }
        means = {name: _mean(part.detach(), batch) for name, part in parts.items()}
        log: dict[str, Any] = {**floats(means)}
        log["critic_loss"] = critic_loss.item()
        log["total_loss"] = log["actor_loss"] + cfg.value_weight * log["critic_loss"]
        check_loss(self, log["total_loss"], batch)
        share = self._share(batch) if self._joint else 1.0
        self._optimizer_critic.zero_grad()
        if critic_loss.requires_grad:  # unless all of the critic is frozen
            (share * cfg.value_weight * critic_loss).backward()
        self._optimizer_actor.zero_grad()
        if logit.requires_grad:
            self._backward_actor(actor_loss, logit, obs, batch, share)
        if self._joint:
            self.sync_gradients(self._model)
        self._optimizer_critic.step()
        self._optimizer_actor.step()
        self._target_model.update(self._model)
        if self._priority:
            log["priority"] = piece_priority(batch, value)
        return {
            "cur_lr_actor": self._optimizer_actor.param_groups[0]["lr"],
            "cur_lr_critic": self._optimizer_critic.param_groups[0]["lr"],
            **log,
        }

    def _backward_actor(
        self,
        loss: torch.Tensor,
        logit: torch.Tensor,
        obs: Obs,
        batch: Sequences,
        share: float,
    ) -> None:
        """Set the actor's gradients from ``loss`` ``[T, B, 1]``, a function of ``logit``
        ``[T + 1, B, N]``; each state's gradient is limited to the trust region."""
        (descent,) = torch.autograd.grad(loss.sum(), logit)
        if self._cfg.learn.trust_region:
            with torch.no_grad():
                average = legal(self._target_model.forward(obs, mode="compute_actor"), obs)["logit"]
            bound = self._cfg.learn.trust_region_value
            (ascent,) = acer_trust_region_update(
                [-descent], logit, average.unflatten(0, logit.shape[:2]), bound
            )
            descent = -ascent
        if batch["weight"] is not None:
            descent[:-1] *= batch["weight"].unsqueeze(-1)
        logit.backward(descent * (share / batch["mask"].numel()))


def _mean(loss: torch.Tensor, batch: Sequences) -> torch.Tensor:
    """Mean of ``[T, B, 1]`` without padding."""
    loss = loss.squeeze(-1)
    return loss.mean() if batch["weight"] is None else (loss * batch["weight"]).mean()
