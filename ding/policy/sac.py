"""Soft actor-critic (Haarnoja et al. 2018, 2019; for discrete actions Christodoulou 2019)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from easydict import EasyDict
from torch import nn
from torch.nn import functional as F

from ding.model.wrapper.sample import legal
from ding.policy._types import Action, Eps, Log, LoggedLoss, Network, Obs, Output, Steps
from ding.policy.joint import joint_mean
from ding.policy.networks import CHOICES, GAUSSIAN_PAIR, Call, actor_and_q_critic
from ding.policy.q_actor_critic import QActorCritic, least, start_within
from ding.rl_utils.log_prob_utils import log_probabilities
from ding.rl_utils.nstep import of_action
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.types import State


class _SoftActorCritic(QActorCritic):
    """Base of SAC policies: the temperature ``alpha``, the weight of the entropy, fixed or learned.

    A learned one (``learn.auto_alpha``) is adapted so that the entropy approaches
    ``learn.target_entropy``; with ``learn.log_space`` its logarithm is learned.
    """

    config = dict(
        # Number of samples from the untrained policy before the first update.
        random_collect_size=10000,
        transition_with_policy_data=True,
        multi_agent=False,
        model=dict(twin_critic=True),
        learn=dict(
            learning_rate_q=3e-4,
            learning_rate_policy=3e-4,
            learning_rate_alpha=3e-4,
            alpha=0.2,
            auto_alpha=True,
            log_space=True,
            # None: minus the number of action dimensions; 0.98 log(n) for n discrete actions.
            target_entropy=None,
            # Initial bound of the actor's last layers, so that first actions are near 0.
            init_w=3e-3,
        ),
        collect=dict(n_sample=1, collector_logit=False),
    )

    _learned = {
        **QActorCritic._learned,
        "alpha": "_alpha_parameter",
        "optimizer_alpha": "_optimizer_alpha",
    }
    _logged: tuple[str, ...] = ("alpha", "alpha_loss", "entropy")
    _log_names: Mapping[str, str | None] = {
        "cur_lr_critic": "cur_lr_q",
        "cur_lr_actor": "cur_lr_p",
        "actor_loss": "policy_loss",
        "critic_twin_loss": "twin_critic_loss",
    }

    def _init_learn(self) -> None:
        super()._init_learn()
        cfg = self._cfg.learn
        if not cfg.alpha > 0:
            raise ConfigError(f"policy.learn.alpha is {cfg.alpha}; the temperature must be > 0")
        self._auto_alpha, self._log_space = cfg.auto_alpha, cfg.log_space
        self._alpha_value = float(cfg.alpha)
        if cfg.auto_alpha:
            entropy = cfg.target_entropy
            self._target_entropy = self._usual_entropy() if entropy is None else entropy
            start = math.log(cfg.alpha) if cfg.log_space else float(cfg.alpha)
            self._alpha_parameter = torch.tensor([start], device=self._device, requires_grad=True)
            self._optimizer_alpha = Adam([self._alpha_parameter], lr=cfg.learning_rate_alpha)

    def _usual_entropy(self) -> float:
        raise NotImplementedError

    def _update_alpha(self, entropy: torch.Tensor) -> Log:
        """One step of the temperature, towards the target of the policy's mean entropy."""
        if not self._auto_alpha:
            return {"alpha": self._alpha_value}
        mean = joint_mean(entropy, self._joint)
        excess = mean - self._target_entropy
        # The gradient of the loss, which is parameter times excess.
        self._alpha_parameter.grad = excess.reshape(1)
        loss = self._alpha_parameter.item() * excess.item()
        self._optimizer_alpha.step()
        if not self._log_space:
            with torch.no_grad():
                # A step may end below 0, and a negative temperature would penalise entropy.
                self._alpha_parameter.clamp_(min=0)
        self._read_alpha()
        return {"alpha": self._alpha_value, "alpha_loss": loss, "entropy": mean.item()}

    def _read_alpha(self) -> None:
        value = self._alpha_parameter.item()
        self._alpha_value = math.exp(value) if self._log_space else value

    def _init_collect(self) -> None:
        super()._init_collect()
        if self._cfg.collect.collector_logit:
            self._transition_outputs = ("logit",)

    def _load_state_dict_learn(self, state_dict: State) -> None:
        super()._load_state_dict_learn(state_dict)
        if self._auto_alpha:
            self._read_alpha()


@POLICY_REGISTRY.register("sac")
class SACPolicy(_SoftActorCritic):
    """Soft Actor-Critic (Haarnoja et al. 2018) for continuous actions.

    Actions are in ``[-1, 1]``: set ``env.act_scale`` if the environment's range differs. The
    actor's Gaussian is squashed by tanh (appendix C).

    ``learn_mode.forward`` takes a batch, as a list of dicts or as one dict of tensors with ``B``
    rows: ``obs`` and ``next_obs`` ``[B, *obs_shape]``, ``action`` float32 ``[B, action_shape]``,
    ``reward`` ``[B]`` (``[B, nstep]`` if ``nstep > 1``), ``done`` ``[B]`` and, with importance
    weights, ``priority_IS`` ``[B]``. It makes one update and returns its log: numbers such as
    ``critic_loss``, ``policy_loss``, ``alpha`` and ``entropy``, and ``priority`` float32 ``[B]``,
    the TD errors in the form of ``priority_form``.

    Example:

        >>> from ding.policy import SACPolicy
        >>> cfg = SACPolicy.default_config()
        >>> cfg.model.update(obs_shape=3, action_shape=1)
        >>> learn = SACPolicy(cfg).learn_mode.forward  # learn(samples) returns the log
    """

    paper = "Haarnoja et al. 2018"
    actions: tuple[str, ...] = ("continuous", "multi-agent")
    networks = {"continuous": actor_and_q_critic({"logit": GAUSSIAN_PAIR})}
    config = dict(type="sac", model=dict(action_space="reparameterization"))
    _logged: tuple[str, ...] = ("transformed_log_prob",)

    #: Whether targets include the next action's entropy.
    _entropy_in_targets = True

    _network, _team_network = "continuous_qac", "continuous_maqac"

    def _create_model(self, cfg: EasyDict, model: nn.Module | None) -> nn.Module:
        # Here, so that target networks and all processes start with the same weights.
        built: Network = super()._create_model(cfg, model)
        bound = cfg.learn.init_w
        if bound is not None and "learn" in self._enable_field and hasattr(built, "actor"):
            for name, layer in built.actor.named_modules():
                if name.endswith((".mu", ".log_sigma_layer")) and isinstance(layer, nn.Linear):
                    start_within(layer, bound)
        return built

    def _init_collect(self) -> None:
        super()._init_collect()
        if self._cfg.collect.collector_logit:
            # The logit describes the Gaussian, without the change of density by tanh.
            self._transition_outputs = ("logit", "log_prob")

    def _usual_entropy(self) -> float:
        # Haarnoja et al. 2019, appendix D.
        return -float(np.prod(self._cfg.model.action_shape))

    def _next_value(self, batch: Steps) -> torch.Tensor:
        obs = batch["next_obs"]
        # Actions of the current actor: there is no target actor.
        action, log_prob = squashed(self._model(obs, mode="compute_actor")["logit"])
        q_value = least(self._judge(self._target_model, obs, action))
        return q_value - self._alpha_value * log_prob if self._entropy_in_targets else q_value

    def _actor_loss(self, batch: Steps) -> LoggedLoss:
        action, log_prob = squashed(self._model(batch["obs"], mode="compute_actor")["logit"])
        q_value = least(self._judge(self._model, batch["obs"], action))
        loss = (self._alpha_value * log_prob - q_value).mean()
        log = {"transformed_log_prob": log_prob.detach().mean().item()}
        return loss, {**log, **self._update_alpha(-log_prob)}

    def _forward_collect_batch(self, obs: Obs, **kwargs: Any) -> Output:
        mu, sigma = self._collect_model.forward(obs, mode="compute_actor")["logit"]
        output: Output = {"logit": {"mu": mu, "sigma": sigma}}
        if "log_prob" not in self._transition_outputs:
            return {**output, "action": torch.tanh(torch.addcmul(mu, sigma, torch.randn_like(mu)))}
        action, log_prob = squashed((mu, sigma))
        return {**output, "action": action, "log_prob": log_prob}

    def _forward_eval_batch(self, obs: Obs) -> Output:
        mu, sigma = self._eval_model.forward(obs, mode="compute_actor")["logit"]
        return {"action": torch.tanh(mu), "logit": {"mu": mu, "sigma": sigma}}


@POLICY_REGISTRY.register("sqil_sac")
class SQILSACPolicy(SACPolicy):
    """Soft Q Imitation Learning (Reddy et al. 2019) with SAC.

    `serial_pipeline_sqil` trains it; it provides the demonstrations and sets the rewards.
    """

    paper = "Reddy et al. 2019"
    pipeline = "serial_sqil"
    config = dict(type="sqil_sac")


@POLICY_REGISTRY.register("discrete_sac")
@POLICY_REGISTRY.register("sac_discrete")
class DiscreteSACPolicy(_SoftActorCritic):
    """Soft Actor-Critic for one discrete action (Christodoulou 2019).

    The critics return the values of all actions, so expectations over the policy are exact. Actions
    that an ``action_mask`` in the observation excludes have probability 0. With ``multi_agent``
    each agent acts on its ``agent_state`` and the critics use ``global_state``.
    """

    paper = "Christodoulou 2019"
    actions: tuple[str, ...] = ("discrete", "multi-agent")
    networks = {
        "discrete": (
            Call({"logit": CHOICES}, "compute_actor"),
            Call({"q_value": CHOICES}, "compute_critic"),
        )
    }
    config = dict(type="discrete_sac")
    _log_names = {"q_value": "q_value_1", "q_value_twin": "q_value_2"}
    _explorer, _chooser = "eps_greedy_multinomial_sample", "argmax_sample"

    _network, _team_network = "discrete_qac", "discrete_maqac"

    def _settings_without_effect(self) -> Mapping[str, str]:
        instead = {"learn.init_w": "it is for the Gaussian of continuous actions"}
        return {**super()._settings_without_effect(), **instead}

    def _usual_entropy(self) -> float:
        # A fraction of the maximum entropy, that of uniform actions (Christodoulou 2019).
        return 0.98 * math.log(float(np.prod(self._cfg.model.action_shape)))

    def _log_prob(self, obs: Obs) -> torch.Tensor:
        """Log-probabilities of the actions, ``[B, N]``."""
        return log_probabilities(legal(self._model(obs, mode="compute_actor"), obs)["logit"])

    def _judge(self, model: Network, obs: Obs, action: Action = None) -> list[torch.Tensor]:
        """Each critic's values of all actions, ``[B, N]``."""
        q_value = model(obs, mode="compute_critic")["q_value"]
        return q_value if isinstance(q_value, list) else [q_value]

    def _q_values(self, batch: Steps) -> list[torch.Tensor]:
        values = self._judge(self._model, batch["obs"])
        return [of_action(value, batch["action"]) for value in values]

    def _next_value(self, batch: Steps) -> torch.Tensor:
        obs = batch["next_obs"]
        log_prob = self._log_prob(obs)
        q_value = least(self._judge(self._target_model, obs))
        return (log_prob.exp() * (q_value - self._alpha_value * log_prob)).sum(-1)

    def _actor_loss(self, batch: Steps) -> LoggedLoss:
        log_prob = self._log_prob(batch["obs"])
        prob = log_prob.exp()
        with torch.no_grad():
            # The expectation over actions is exact, so no gradient passes through the critics.
            q_value = least(self._judge(self._model, batch["obs"]))
        loss = (prob * (self._alpha_value * log_prob - q_value)).sum(-1).mean()
        return loss, self._update_alpha(-(prob * log_prob).sum(-1))

    def _forward_collect_batch(self, obs: Obs, eps: Eps = 0.0) -> Output:  # type: ignore[override]
        """Sample actions from the policy; uniformly with probability ``eps``."""
        return super()._forward_collect_batch(obs, eps=eps)


def squashed(logit: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample from a Gaussian, squash by tanh, and compute log-probabilities.

    Args:
        logit: ``mu`` and ``sigma``, ``[B, A]`` each.

    Returns:
        Actions in (-1, 1) ``[B, A]``, differentiable, and log-probabilities ``[B]``.
    """
    mu, sigma = logit
    noise = torch.randn_like(mu)
    draw = torch.addcmul(mu, sigma, noise)
    # The noise's density, divided by the stretching of sigma and tanh; log(1 - tanh(x)^2) equals
    # 2 (log 2 - x - softplus(-2x)), which keeps its precision far from zero.
    stretch = sigma.log() - 2 * (draw + F.softplus(-2 * draw))
    log_prob = -torch.add(stretch, noise.square(), alpha=0.5).sum(-1)
    constant = mu.shape[-1] * (0.5 * math.log(2 * math.pi) + 2 * math.log(2))
    return torch.tanh(draw), log_prob - constant
