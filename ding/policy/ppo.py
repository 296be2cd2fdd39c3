"""Proximal policy optimisation (Schulman et al. 2017): on-policy, off-policy, critic-free."""

import copy
import logging
from collections.abc import Mapping
from typing import Any

import torch
from easydict import EasyDict
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from ding.model.wrapper.sample import legal
from ding.policy._types import Log, Losses, Output, Rollout
from ding.policy.advantage_actor_critic import AdvantageActorCritic, CountedSteps
from ding.policy.networks import stochastic_actor
from ding.policy.policy_gradient import MonteCarloPolicyGradient, PolicyGradient
from ding.rl_utils import (
    ppo_info,
    ppo_policy_data,
    ppo_policy_error,
    ppo_policy_loss,
    ppo_value_data,
    ppo_value_error,
)
from ding.rl_utils.log_prob_utils import split_like
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.file_helper import read_file
from ding.utils.types import State

_logger = logging.getLogger(__name__)


class Clipped(PolicyGradient):
    """Base of policies with the clipped surrogate objective (Schulman et al. 2017).

    The choice and the arguments of a hybrid action have separate objectives with the same
    advantages (Fan et al. 2019, "Hybrid actor-critic reinforcement learning in parameterized action
    space").
    """

    paper = "Schulman et al. 2017"
    _action_spaces = {**PolicyGradient._action_spaces, "hybrid": "hybrid"}
    _logged: tuple[str, ...] = ("approx_kl", "clipfrac")
    _pretrained_model: torch.nn.Module | None = None

    def _init_update(self) -> None:
        cfg = self._cfg.learn
        if cfg.ppo_param_init:
            init_parameters(self._model)
            # Each process has initialised different weights.
            if self._joint:
                self._broadcast_model(self._model)
        self._optimizer = Adam(
            self._model.parameters(),
            lr=cfg.learning_rate,
            weight_decay=cfg.get("weight_decay", 0.0),
            grad_clip_type=cfg.grad_clip_type,
            clip_value=cfg.grad_clip_value,
        )

    def _losses(self, batch: Rollout, output: Output, adv: Tensor) -> Losses:
        cfg, pretrained = self._cfg.learn, None
        if self._pretrained_model is not None:
            with torch.no_grad():
                output_before = self._pretrained_model(batch["obs"], **self._eval_options)
                pretrained = legal(output_before, batch["obs"])["logit"]
        new, old, action = output["logit"], batch["logit"], batch["action"]

        def clipped(new: Any, old: Any, action: Tensor, pretrained: Any) -> Any:
            data = ppo_policy_data(new, old, action, adv, batch.get("weight"), pretrained)
            return ppo_policy_error(data, cfg.clip_ratio, kl_type=cfg.get("kl_type", "k1"))

        if self._cfg.action_space == "hybrid":
            (choice, info), (args, args_info) = (
                clipped(new[n], old[n], action[n], pretrained and pretrained[n])
                for n in ("action_type", "action_args")
            )
            policy = ppo_policy_loss(*map(sum, zip(choice, args)))
            clipfrac = (info.clipfrac + args_info.clipfrac) / 2
            info = ppo_info(info.approx_kl + args_info.approx_kl, clipfrac)
        else:
            policy, info = clipped(new, split_like(old, new), action, pretrained)
        losses, facts = policy._asdict(), info._asdict()
        if self._cfg.action_space == "continuous":
            facts["act"] = action.float().mean().item()
        if self._pretrained_model is None:
            del losses["kl_div"]
        if "value" in output:
            value = output["value"], batch["value"], batch["return"], batch.get("weight")
            losses["value_loss"] = ppo_value_error(ppo_value_data(*value), cfg.clip_ratio)
        return losses, facts

    def _monitor_vars_learn(self) -> list[str]:
        names = super()._monitor_vars_learn()
        names += ["act"] * (self._cfg.action_space == "continuous")
        return names if self._pretrained_model is None else [*names, "kl_div"]


class _ClippedActorCritic(Clipped, AdvantageActorCritic):
    """The clipped losses of an actor and its critic."""

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


@POLICY_REGISTRY.register("ppo")
class PPOPolicy(_ClippedActorCritic):
    """Proximal Policy Optimization (Schulman et al. 2017) for discrete, continuous and hybrid
    actions.

    ``learn_mode.forward`` takes the samples of one collection, as a list of dicts or as one dict of
    tensors with ``B`` rows: ``obs`` and ``next_obs`` ``[B, *obs_shape]``, ``action`` int64 ``[B]``
    (continuous: float32 ``[B, action_shape]``) and ``logit`` ``[B, action_shape]`` (continuous: a
    dict of ``mu`` and ``sigma`` of this shape); ``reward``, ``done``, ``value`` and ``adv``
    ``[B]``, with ``value`` and ``adv`` from the critic that collected. Optional are ``traj_flag``
    and ``step_id`` ``[B]``, which mark where trajectories end. It makes ``learn.epoch_per_collect``
    passes and returns a list with the log of each minibatch: dicts of floats such as
    ``policy_loss``, ``value_loss``, ``entropy_loss``, ``approx_kl`` and ``clipfrac``.

    Example:

        >>> from ding.policy import PPOPolicy
        >>> cfg = PPOPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> learn = PPOPolicy(cfg).learn_mode.forward  # learn(samples) returns the log
    """

    _refused = {**_ClippedActorCritic._refused, "priority": "remove the key"}
    _learned = {**_ClippedActorCritic._learned, "lr_scheduler": "_lr_scheduler"}
    config = dict(
        type="ppo",
        # Recompute advantages with the current critic at the start of each epoch.
        recompute_adv=True,
        learn=dict(
            epoch_per_collect=10,
            learning_rate=3e-4,
            # dict(epoch_num, min_lr_lambda): see `linear_decay`.
            lr_scheduler=None,
            entropy_weight=0.0,
            adv_norm=True,
            # Estimator (and weight) of the KL divergence from a pretrained policy.
            kl_type="k1",
            kl_beta=0.0,
            pretrained_model_path=None,
        ),
    )

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
        """All passes; returns one log per minibatch."""
        logs = self._passes(batch)
        if self._lr_scheduler is not None:
            self._lr_scheduler.step()
        return logs

    def _passes(self, batch: Rollout) -> list[Log]:
        """``learn.epoch_per_collect`` passes; returns one log per minibatch."""
        logs = []
        for epoch in range(self._cfg.learn.epoch_per_collect):
            # The critic changes in each pass, so advantages of the first pass are stale in the next
            # one (Andrychowicz et al. 2021).
            if epoch == 0 or self._recompute_adv:
                self._estimate_returns(batch, first=epoch == 0)
            logs += [self._update(part) for part in self._minibatches(batch)]
        return logs


@POLICY_REGISTRY.register("ppo_offpolicy")
class PPOOffPolicy(_ClippedActorCritic):
    """Proximal Policy Optimization (Schulman et al. 2017) on samples of a replay buffer.

    Advantages come from the critic at the time of collecting. Keep the buffer or
    ``other.replay_buffer.max_use`` small: the clipped ratio is only meaningful for samples of
    recent policies.
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

    def _settings_without_effect(self) -> Mapping[str, str]:
        instead = {"nstep": "set policy.collect.gae_lambda, which weighs longer returns"}
        return {**super()._settings_without_effect(), **instead}

    def _init_learn(self) -> None:
        self._use_priority()
        self._init_update()
        self._init_returns()
        self._counted = CountedSteps(self._cfg.other.replay_buffer.replay_buffer_size)

    def _learn(self, batch: Rollout) -> Log:
        """One update; the ``priority`` of a sample is its absolute advantage, if priorities are
        used; in a team, the mean over agents."""
        new = self._counted.take_new(batch.get("step_id")) if self._value_norm else None
        self._set_returns(batch, new)
        log = self._update(batch)
        if self._priority:
            error = batch["adv"].abs()
            log["priority"] = error if error.dim() == 1 else error.mean(1)
        return log


@POLICY_REGISTRY.register("ppo_pg")
class PPOPGPolicy(Clipped, MonteCarloPolicyGradient):
    """Proximal Policy Optimization (Schulman et al. 2017) without a critic.

    The clipped surrogate objective uses returns in place of advantages.
    """

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
    _refused = {**MonteCarloPolicyGradient._refused, "multi_agent": "use ppo"}
    _action_spaces = MonteCarloPolicyGradient._action_spaces

    def _init_learn(self) -> None:
        self._init_update()

    def _learn(self, batch: Rollout) -> list[Log]:
        """``learn.epoch_per_collect`` passes; returns one log per minibatch."""
        batch["adv"] = batch["return"]
        logs = []
        for _ in range(self._cfg.learn.epoch_per_collect):
            logs += [self._update(part) for part in self._minibatches(batch)]
        return logs


def init_parameters(model: nn.Module) -> None:
    """Orthogonal weights, zero biases, and initial actions that hardly depend on the observation.

    Andrychowicz et al. 2021, "What matters in on-policy reinforcement learning?": the last layer
    of the policy is scaled by 0.01, and a learned standard deviation starts at exp(-0.5).
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.orthogonal_(layer.weight, 2**0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    for name in ("actor_head", "head"):  # `head`: of networks without a critic
        _scale_last(getattr(model, name, None), 0.01)
    _scale_last(getattr(model, "critic_head", None), 1.0)
    for name, parameter in model.named_parameters():
        if name.endswith("log_sigma_param"):
            nn.init.constant_(parameter, -0.5)


def _scale_last(head: nn.Module | None, gain: float) -> None:
    if head is None:
        return
    # A head for each of several actions, or for the choice and the arguments of a hybrid action.
    parts = head if isinstance(head, nn.ModuleList) else getattr(head, "pred", ())
    for part in parts:
        _scale_last(part, gain)
    if len(parts):
        return
    mean = getattr(head, "mu", None)
    layers = [mean] if mean is not None else list(head.modules())
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    if linear:
        nn.init.orthogonal_(linear[-1].weight, gain)


class _Decay(LambdaLR):
    """A schedule whose state excludes the function, which the config determines."""

    def state_dict(self) -> State:
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: State) -> None:
        self.last_epoch = state_dict["last_epoch"]


def linear_decay(
    optimizer: torch.optim.Optimizer, cfg: Mapping[str, Any] | None
) -> LambdaLR | None:
    """A learning rate that decays linearly, once per call of ``forward``.

    Args:
        cfg: ``epoch_num``, the number of calls until the end of the decay, and ``min_lr_lambda``,
            the final fraction of the rate. ``None`` for a constant rate.
    """
    if cfg is None:
        return None
    if set(cfg) != {"epoch_num", "min_lr_lambda"}:
        raise ConfigError(
            f"policy.learn.lr_scheduler must be None or dict(epoch_num=..., min_lr_lambda=...), "
            f"got {dict(cfg)}"
        )
    epochs, least = cfg["epoch_num"], cfg["min_lr_lambda"]
    return _Decay(optimizer, lambda epoch: 1 - min(epoch / epochs, 1) * (1 - least))


def load_pretrained(model: nn.Module, path: str) -> nn.Module:
    """A frozen copy of ``model`` with the weights of a checkpoint.

    Raises:
        CheckpointError: The file contains no weights that fit.
    """
    state = read_file(path)
    pretrained = copy.deepcopy(model).requires_grad_(False).eval()
    try:
        pretrained.load_state_dict(state.get("model", state))
    except (RuntimeError, AttributeError) as error:
        raise CheckpointError(f"{path} does not hold weights of this model: {error}") from error
    return pretrained
