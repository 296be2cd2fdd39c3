"""Behaviour cloning: learning a demonstrator's actions as a supervised task (Pomerleau 1991)."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from easydict import EasyDict
from torch import Tensor
from torch.nn import functional as F

from ding.data import tree_map
from ding.policy._types import Eps, Log, LoggedLoss, Obs, Output, Samples, Steps
from ding.policy.acting import ActingPolicy
from ding.policy.common_utils import as_batch, flatten_numbers, sample_weights
from ding.policy.joint import joint_mean
from ding.policy.networks import CHOICES, GAUSSIAN_PAIR, VECTOR, Call
from ding.rl_utils import get_epsilon_greedy_fn
from ding.rl_utils.log_prob_utils import log_prob
from ding.rl_utils.nstep import weighted_mean
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError, check_one_of
from ding.utils.types import Config

_LOSSES: dict[str, Callable[..., Tensor]] = {
    "l1_loss": F.l1_loss,
    "mse_loss": F.mse_loss,
    "smooth_l1_loss": F.smooth_l1_loss,
}
_DISCRETE, _CONTINUOUS = "it is for discrete actions", "it is for continuous actions"
#: Total probability of the other actions with `learn.ce_label_smooth` (Szegedy et al. 2016).
_SMOOTHING = 0.1
#: tanh(1); above it, tanh saturates: its output changes little with its input.
_SATURATED = math.tanh(1)
#: If at most this fraction of the outputs would remain, `learn.tanh_mask` masks none.
_LEAST_UNMASKED = 0.2
#: Largest action whose atanh is finite in float32.
_INNER = 1 - 1e-6


@POLICY_REGISTRY.register("bc")
class BehaviourCloningPolicy(ActingPolicy):
    """Behaviour cloning (Pomerleau 1991): supervised imitation of the actions in a data set.

    The loss is the cross-entropy for discrete actions and a regression loss for continuous ones in
    ``[-1, 1]``. Samples need ``obs`` and ``action``. With
    ``model.action_space='reparameterization'`` and no ``loss_type``, the likelihood of the actions
    under a tanh-squashed Gaussian is maximised.
    """

    paper = "Pomerleau 1991"
    actions = ("discrete", "multi-discrete", "continuous")
    networks = {
        "discrete": (Call({"logit": CHOICES}),),
        "regression": (Call({"action": VECTOR}),),
        "reparameterization": (Call({"logit": GAUSSIAN_PAIR}),),
    }
    pipeline = "serial_bc"
    config = dict(
        type="bc",
        # Prioritised sampling by loss, and importance weights that correct its bias.
        priority=False,
        priority_IS_weight=False,
        continuous=False,
        # Loss for continuous actions: 'l1_loss', 'mse_loss' or 'smooth_l1_loss'. None: squared
        # errors, or the likelihood.
        loss_type=None,
        # Number of actions if `model.action_shape` is not given.
        action_shape=19,
        learn=dict(
            update_per_collect=1,
            batch_size=32,
            learning_rate=1e-5,
            # The learning rate rises from `warmup_lr` to `learning_rate` in `warmup_epoch` epochs,
            # and is then multiplied by `decay_rate` every `decay_epoch` epochs.
            lr_decay=False,
            decay_epoch=30,
            decay_rate=0.1,
            warmup_lr=1e-4,
            warmup_epoch=3,
            # 'SGD', 'Adam' or 'AdamW'.
            optimizer="SGD",
            momentum=0.9,
            weight_decay=1e-4,
            # Label smoothing: a tenth of each label's probability goes to the other actions.
            ce_label_smooth=False,
            # Log the fraction of actions that equal the demonstrator's.
            show_accuracy=False,
            # Mask the loss of outputs beyond tanh(1), unless few would remain.
            tanh_mask=False,
        ),
        collect=dict(
            unroll_len=1,
            # Gaussian noise on continuous actions, clipped to `noise_range`; `noise_sigma` is a
            # number, or dict(type, start, end, decay) as a schedule over environment steps.
            noise=False,
            noise_sigma=0.2,
            noise_range=dict(min=-0.5, max=0.5),
        ),
        other=dict(replay_buffer=dict(replay_buffer_size=10000)),
    )

    data_columns = ("obs", "action")
    # Keys of other cloning algorithms' configs that also name this policy.
    _silent_keys = (
        *("bc_model_path", "env_name", "maze_size", "max_bfs_steps", "num_actions"),
        *("show_train_test_accuracy", "learn.target_update_freq"),
    )
    _any_kind_keys = ("collect.noise_sigma",)
    #: Current epoch; the pipelines set it.
    _epoch = 0

    @property
    def _network(self) -> str:  # type: ignore[override]
        return "continuous_bc" if self._cfg.continuous else "discrete_bc"

    def _create_model(self, cfg: EasyDict, model: torch.nn.Module | None) -> torch.nn.Module:
        own = {"action_shape": cfg.action_shape}
        if cfg.continuous:
            own["action_space"] = "regression"
        self._gaussian = cfg.continuous and cfg.model.get("action_space") == "reparameterization"
        return super()._create_model(EasyDict({**cfg, "model": {**own, **cfg.model}}), model)

    @property
    def network_calls(self) -> tuple[Call, ...]:
        if not self._cfg.continuous:
            return self.networks["discrete"]
        return self.networks["reparameterization" if self._gaussian else "regression"]

    def _settings_without_effect(self) -> Mapping[str, str]:
        if self._cfg.continuous:
            return dict.fromkeys(("learn.ce_label_smooth", "learn.show_accuracy"), _DISCRETE)
        return dict.fromkeys(("loss_type", "learn.tanh_mask", "collect.noise"), _CONTINUOUS)

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        check_one_of("policy.loss_type", self._cfg.loss_type, (None, *_LOSSES))
        self._use_priority()
        self._optimizer = self._build_optimizer(cfg)

    def _build_optimizer(self, cfg: EasyDict) -> torch.optim.Optimizer:
        options = {"lr": self._learning_rate(0), "weight_decay": cfg.weight_decay}
        name = str(cfg.optimizer).lower()
        if name == "sgd":
            parameters = self._model.parameters()
            return torch.optim.SGD(parameters, momentum=cfg.momentum, **options)
        if name in ("adam", "adamw"):
            return Adam(self._model.parameters(), optim_type=name, **options)
        raise ConfigError(
            f"policy.learn.optimizer is {cfg.optimizer!r}; expected 'SGD', 'Adam' or 'AdamW'"
        )

    def _learning_rate(self, epoch: int) -> float:
        cfg = self._cfg.learn
        if not cfg.lr_decay:
            return cfg.learning_rate
        if epoch < cfg.warmup_epoch:
            risen = epoch / cfg.warmup_epoch
            return cfg.warmup_lr + (cfg.learning_rate - cfg.warmup_lr) * risen
        return cfg.learning_rate * cfg.decay_rate ** ((epoch - cfg.warmup_epoch) // cfg.decay_epoch)

    def _learn(self, batch: Steps) -> Log:
        """One update; the ``priority`` of a sample is its loss."""
        if self._cfg.learn.lr_decay:
            for group in self._optimizer.param_groups:
                group["lr"] = self._learning_rate(self._epoch)
        losses, facts = self._losses(self._model(batch["obs"]), batch["action"])
        loss = weighted_mean(losses, batch["weight"])
        loss_value = self._descend(loss, batch, self._optimizer)
        return {
            "cur_lr": self._optimizer.param_groups[0]["lr"],
            "total_loss": loss_value,
            "priority": losses.detach(),
            **facts,
        }

    def _batch(self, data: Samples) -> dict[str, Tensor]:
        batch = flatten_numbers(as_batch(data, ("obs", "action"), self._device))
        batch["obs"] = tree_map(lambda leaf: leaf.float(), batch["obs"])
        batch["weight"] = sample_weights(batch, self._priority, self._priority_IS_weight)
        action = batch["action"]
        if self._cfg.continuous:
            batch["action"] = action.float() if action.dim() > 1 else action.float()[:, None]
        else:
            batch["action"] = action.long()
        return batch

    def _losses(self, output: Output, action: Tensor) -> LoggedLoss:
        """The loss of each sample ``[B]``, and other scalars to log."""
        if self._cfg.continuous:
            return self._regression(output, action), {}
        logits = output["logit"]
        parts = logits if isinstance(logits, list) else [logits]
        actions = action.unbind(1) if isinstance(logits, list) else [action.reshape(-1)]
        smoothing = _SMOOTHING if self._cfg.learn.ce_label_smooth else 0.0
        losses = [
            F.cross_entropy(part, one, reduction="none", label_smoothing=smoothing)
            for part, one in zip(parts, actions)
        ]
        facts = {}
        if self._cfg.learn.show_accuracy:
            same = [(part.argmax(-1) == one).float().mean() for part, one in zip(parts, actions)]
            facts["accuracy"] = torch.stack(same).mean().item()
        return torch.stack(losses).mean(0), facts

    def _regression(self, output: Output, action: Tensor) -> Tensor:
        if self._gaussian and self._cfg.loss_type is None:
            inner = torch.atanh(action.clamp(-_INNER, _INNER))
            mu, sigma = output["logit"]
            # The derivative of tanh at the action is the same for all policies and can be omitted.
            return -log_prob({"mu": mu, "sigma": sigma}, inner)
        mean = torch.tanh(output["logit"][0]) if self._gaussian else output["action"]
        errors = _LOSSES[self._cfg.loss_type or "mse_loss"](mean, action, reduction="none")
        if self._cfg.learn.tanh_mask:
            kept = mean.detach().abs() <= _SATURATED
            share = joint_mean(kept.float(), self._joint)
            if share > _LEAST_UNMASKED:
                # The mean over all outputs then equals the mean over the kept ones.
                errors = errors * kept / share
        return errors.mean(-1)

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), *(["accuracy"] * self._cfg.learn.show_accuracy)]

    @property
    def _explorer(self) -> str:  # type: ignore[override]
        return "base" if self._cfg.continuous else "eps_greedy_sample"

    @property
    def _chooser(self) -> str:  # type: ignore[override]
        return "base" if self._cfg.continuous else "argmax_sample"

    def _forward_collect_batch(
        self, obs: Obs, eps: Eps = 0.0, sigma: float | None = None
    ) -> Output:
        """Actions: a random one with probability ``eps`` (discrete), or with noise ``sigma``."""
        if not self._cfg.continuous:
            return super()._forward_collect_batch(obs, eps=eps)
        action = self._mean_action(self._collect_model.forward(obs))
        if self._cfg.collect.noise:
            sigma = self._noise_sigma(0) if sigma is None else sigma
            limits = self._cfg.collect.noise_range
            noise = (torch.randn_like(action) * sigma).clamp_(limits.min, limits.max)
            action = (action + noise).clamp_(-1, 1)
        return {"action": action}

    def _mean_action(self, output: Output) -> Tensor:
        return torch.tanh(output["logit"][0]) if self._gaussian else output["action"]

    def _noise_sigma(self, envstep: int) -> float:
        sigma = self._cfg.collect.noise_sigma
        if not isinstance(sigma, Mapping):
            return float(sigma)
        fall = get_epsilon_greedy_fn(sigma["start"], sigma["end"], sigma["decay"], sigma["type"])
        return fall(envstep)

    def _get_setting_collect(self, command_info: Config) -> Config:
        """Exploration settings of the command mode at the current environment step."""
        if self._cfg.continuous:
            sigma = self._noise_sigma(command_info["envstep"])
            return {"sigma": sigma} if self._cfg.collect.noise else {}
        return super()._get_setting_collect(command_info)  # type: ignore[misc]

    def _forward_eval_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        if not self._cfg.continuous:
            return super()._forward_eval_batch(obs)
        return {"action": self._mean_action(self._eval_model.forward(obs))}
