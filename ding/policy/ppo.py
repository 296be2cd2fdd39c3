"""Proximal policy optimisation (Schulman et al. 2017) on the data of the current policy."""

import logging
from collections.abc import Mapping

import torch
from easydict import EasyDict
from torch import Tensor

from ding.policy._clipped import Clipped, linear_decay, load_pretrained
from ding.policy._types import Log, Losses, Output, Rollout, State
from ding.policy.advantage_actor_critic import AdvantageActorCritic, CountedSteps
from ding.policy.networks import stochastic_actor
from ding.policy.pg import MonteCarloPolicyGradient
from ding.rl_utils import ppo_value_data, ppo_value_error
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError

_logger = logging.getLogger(__name__)


class _ClippedActorCritic(Clipped, AdvantageActorCritic):
    """The clipped losses of an actor and of its critic."""

    paper = "Schulman et al. 2017"
    actions: tuple[str, ...] = ("discrete", "multi-discrete", "continuous", "hybrid", "multi-agent")
    networks = stochastic_actor("discrete", "continuous", "hybrid")
    _refused: Mapping[str, str] = {"nstep_return": "remove the key"}
    config = dict(
        nstep_return=False,
        transition_with_policy_data=True,
        learn=dict(
            clip_ratio=0.2,
            value_norm=True,
            ppo_param_init=True,
            grad_clip_type="clip_norm",
            grad_clip_value=0.5,
        ),
    )

    def _create_model(self, cfg: EasyDict, model: torch.nn.Module | None) -> torch.nn.Module:
        if cfg.multi_agent and cfg.action_space == "hybrid":
            raise ConfigError(
                "policy.multi_agent=True with policy.action_space='hybrid': agents have discrete "
                "or continuous actions"
            )
        return super()._create_model(cfg, model)

    def _losses(self, batch: Rollout, output: Output, adv: Tensor) -> Losses:
        losses, facts = super()._losses(batch, output, adv)
        data = ppo_value_data(output["value"], batch["value"], batch["return"], batch.get("weight"))
        value_loss = ppo_value_error(data, self._cfg.learn.clip_ratio)
        return {**losses, "value_loss": value_loss}, facts


@POLICY_REGISTRY.register("ppo")
class PPOPolicy(_ClippedActorCritic):
    """PPO for discrete actions, a vector of real ones, or a choice with arguments (hybrid)."""

    _refused = {**_ClippedActorCritic._refused, "priority": "remove the key"}
    config = dict(
        type="ppo",
        # Estimate advantages anew, with the current critic, at the start of each epoch.
        recompute_adv=True,
        learn=dict(
            epoch_per_collect=10,
            learning_rate=3e-4,
            # dict(epoch_num, min_lr_lambda): see `linear_decay`.
            lr_scheduler=None,
            entropy_weight=0.0,
            adv_norm=True,
            # Weight and estimator of the divergence from a pretrained policy.
            kl_type="k1",
            kl_beta=0.0,
            pretrained_model_path=None,
        ),
    )

    # ------------------------------------------------------------------ learn

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        self._recompute_adv = self._cfg.recompute_adv
        self._init_update()
        self._lr_scheduler = linear_decay(self._optimizer, cfg.lr_scheduler)
        if cfg.kl_beta > 0 and cfg.pretrained_model_path is None:
            _logger.warning(
                "policy.learn.kl_beta=%s has no effect without policy.learn.pretrained_model_path",
                cfg.kl_beta,
            )
        elif cfg.kl_beta > 0:
            self._pretrained_model = load_pretrained(self._model, cfg.pretrained_model_path)
        self._init_returns()

    def _learn(self, batch: Rollout) -> list[Log]:
        """``learn.epoch_per_collect`` passes; returns one log for each minibatch."""
        logs = []
        for epoch in range(self._cfg.learn.epoch_per_collect):
            if epoch == 0 or self._recompute_adv:
                self._estimate_returns(batch, first=epoch == 0)
            logs += self._pass_over(batch)
        if self._lr_scheduler is not None:
            self._lr_scheduler.step()
        return logs

    def _state_dict_learn(self) -> State:
        state = super()._state_dict_learn()
        if self._lr_scheduler is not None:
            # Without the function: it is made from the config.
            state["lr_scheduler"] = {"last_epoch": self._lr_scheduler.last_epoch}
        return state

    def _load_state_dict_learn(self, state_dict: State) -> None:
        super()._load_state_dict_learn(state_dict)
        if self._lr_scheduler is not None and "lr_scheduler" in state_dict:
            self._lr_scheduler.last_epoch = state_dict["lr_scheduler"]["last_epoch"]


@POLICY_REGISTRY.register("ppo_offpolicy")
class PPOOffPolicy(_ClippedActorCritic):
    """PPO's update on samples of a replay buffer: those of policies that were not long ago.

    Advantages are those of the critic at the time of collecting. Keep the buffer small, or
    ``other.replay_buffer.max_use``, so that the clipped ratio has something to go by.
    """

    config = dict(
        type="ppo_offpolicy",
        on_policy=False,
        nstep=3,
        learn=dict(update_per_collect=5, weight_decay=0.0),
        other=dict(replay_buffer=dict(replay_buffer_size=10000)),
    )

    _silent_keys = (
        *("recompute_adv", "learn.nstep", "learn.nstep_return"),
        "other.replay_buffer.min_sample_ratio",
    )
    _learned = {**_ClippedActorCritic._learned, "value_norm_counted": "_counted"}
    _log_names = {"value_mean": "value"}

    def _init_learn(self) -> None:
        self._use_priority()
        self._init_update()
        self._init_returns()
        self._counted = CountedSteps(self._cfg.other.replay_buffer.replay_buffer_size)

    def _learn(self, batch: Rollout) -> Log:
        """One update; the ``priority`` of a sample is its absolute advantage, if asked for."""
        new = self._counted.take_new(batch.get("step_id")) if self._value_norm else None
        self._set_returns(batch, new)
        log = self._update(batch)
        if self._priority:
            log["priority"] = batch["adv"].abs()
        return log


@POLICY_REGISTRY.register("ppo_pg")
class PPOPGPolicy(Clipped, MonteCarloPolicyGradient):
    """PPO without a critic: the clipped surrogate with returns in the place of advantages."""

    paper = "Schulman et al. 2017"
    actions: tuple[str, ...] = ("discrete", "multi-discrete", "continuous")
    networks = stochastic_actor("discrete", "continuous", modes=("",))

    config = dict(
        type="ppo_pg",
        multi_agent=False,
        transition_with_policy_data=True,
        learn=dict(
            epoch_per_collect=10,
            learning_rate=3e-4,
            entropy_weight=0.0,
            clip_ratio=0.2,
            ppo_param_init=True,
            grad_clip_type="clip_norm",
            grad_clip_value=0.5,
        ),
    )
    _refused = {"multi_agent": "use ppo"}
    _action_spaces = MonteCarloPolicyGradient._action_spaces

    def _init_learn(self) -> None:
        self._init_update()

    def _learn(self, batch: Rollout) -> list[Log]:
        """``learn.epoch_per_collect`` passes; returns one log for each minibatch."""
        batch["adv"] = batch["return"]
        logs = []
        for _ in range(self._cfg.learn.epoch_per_collect):
            logs += self._pass_over(batch)
        return logs
