"""Actor-critics for offline data: IQL (Kostrikov et al. 2021) and BCQ (Fujimoto et al. 2019)."""

from typing import Any

import torch
from easydict import EasyDict
from torch import Tensor, nn

from ding.data import tree_map
from ding.policy._types import CriticLoss, Log, LoggedLoss, Network, Obs, Output, Steps
from ding.policy.checks import floats
from ding.policy.networks import (
    GAUSSIAN_PAIR,
    NUMBER,
    OBS,
    VECTOR,
    Call,
    Shape,
    actor_and_q_critic,
)
from ding.policy.q_actor_critic import QActorCritic, least, start_within
from ding.rl_utils.log_prob_utils import log_prob
from ding.rl_utils.nstep import weighted_mean
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("iql")
class IQLPolicy(QActorCritic):
    """Implicit Q-Learning (Kostrikov et al. 2021) for continuous actions, offline.

    The critics are only evaluated at actions of the data. The value of a state is the expectile
    ``learn.tau`` of the target critics' values of its actions (equation 5); close to 1 it
    approaches the value of the best action. The critics' targets use this value (equation 6). The
    actor imitates the data, where each action has the weight ``exp(learn.beta (Q - V))``, at most
    100 (equation 7): choose ``beta`` to match the scale of the rewards.
    """

    paper = "Kostrikov et al. 2021"
    actions = ("continuous",)
    networks = {
        "continuous": (
            *actor_and_q_critic({"logit": GAUSSIAN_PAIR}),
            Call({"v_value": NUMBER}, "compute_value"),
        )
    }

    _refused = {"multi_agent": "it is for one agent"}
    pipeline = "serial_offline"
    config = dict(
        type="iql",
        random_collect_size=10000,
        transition_with_policy_data=True,
        multi_agent=False,
        model=dict(
            twin_critic=True,
            action_space="reparameterization",
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        learn=dict(
            # Learning rate of the critics and the value network.
            learning_rate_q=3e-4,
            learning_rate_policy=3e-4,
            tau=0.7,
            beta=3.0,
        ),
        collect=dict(n_sample=1),
    )

    _network = "continuous_qvac"
    _logged: tuple[str, ...] = ("advantage", "bc_weight")

    def _init_learn(self) -> None:
        super()._init_learn()
        self._tau, self._beta = self._cfg.learn.tau, self._cfg.learn.beta
        if not 0 < self._tau < 1:
            raise ConfigError(f"policy.learn.tau is {self._tau}; expected 0 < tau < 1")

    def _next_value(self, batch: Steps) -> Tensor:
        return self._model(batch["next_obs"], mode="compute_value")["v_value"]

    def _critic_loss(self, batch: Steps, q_values: list[Tensor], target: Tensor) -> CriticLoss:
        critic = super()._critic_loss(batch, q_values, target)
        with torch.no_grad():
            judged = least(self._judge(self._target_model, batch["obs"], batch["action"]))
        advantage = judged - self._model(batch["obs"], mode="compute_value")["v_value"]
        side = torch.where(advantage < 0, 1 - self._tau, self._tau)
        # The actor loss uses it.
        batch["advantage"] = advantage.detach()
        value_loss = weighted_mean(side * advantage.pow(2), batch["weight"])
        return critic._replace(loss=critic.loss + value_loss)

    def _actor_loss(self, batch: Steps) -> LoggedLoss:
        mu, sigma = self._model(batch["obs"], mode="compute_actor")["logit"]
        # With identical actions in the data, sigma would approach 0, and densities infinity.
        gaussian = {"mu": mu, "sigma": sigma.clamp(min=_LEAST_SIGMA)}
        likelihood = log_prob(gaussian, batch["action"])
        weight = (self._beta * batch["advantage"]).exp().clamp(max=_LARGEST_WEIGHT)
        log = {"advantage": batch["advantage"].mean().item(), "bc_weight": weight.mean().item()}
        return -(weight * likelihood).mean(), log

    def _forward_collect_batch(self, obs: Obs, **kwargs: Any) -> Output:
        mu, sigma = self._collect_model.forward(obs, mode="compute_actor")["logit"]
        action = torch.addcmul(mu, sigma, torch.randn_like(mu)).clamp_(-1, 1)
        return {"action": action, "logit": {"mu": mu, "sigma": sigma}}

    def _forward_eval_batch(self, obs: Obs) -> Output:
        mu, sigma = self._eval_model.forward(obs, mode="compute_actor")["logit"]
        return {"action": mu, "logit": {"mu": mu, "sigma": sigma}}


#: As in the paper: log-sigmas are at least -5, weights at most 100.
_LEAST_SIGMA, _LARGEST_WEIGHT = 0.0067, 100.0


@POLICY_REGISTRY.register("bcq")
class BCQPolicy(QActorCritic):
    """Batch-Constrained deep Q-learning (Fujimoto et al. 2019) for continuous actions, offline.

    A generative model of the data proposes actions; the actor perturbs each by at most
    ``model.phi``. The value of a state is that of the best of ten proposals, each rated
    ``learn.lmbda`` times the minimum plus ``1 - learn.lmbda`` times the maximum of two target
    critics (equation 13).
    """

    paper = "Fujimoto et al. 2019"
    actions = ("continuous",)
    networks = {
        "continuous": (
            Call({"action": VECTOR}, "compute_actor", {"obs": OBS, "action": VECTOR}),
            Call({"q_value": NUMBER}, "compute_critic", {"obs": OBS, "action": VECTOR}),
            Call(
                {"recons_action": VECTOR, "mu": Shape("B L"), "sigma": Shape("B L")},
                *("compute_vae", {"obs": OBS, "action": VECTOR}),
            ),
            Call({"recons_action": VECTOR}, "compute_vae", {"obs": OBS}),
            Call({"action": VECTOR}, "compute_eval"),
        )
    }
    network_parts: tuple[str, ...] = ("actor", "critic", "vae")
    _silent_keys = (*QActorCritic._silent_keys, "learn.learning_rate_alpha")

    pipeline = "serial_offline"
    config = dict(
        type="bcq",
        random_collect_size=10000,
        action_space="continuous",
        model=dict(
            actor_head_hidden_size=[400, 300],
            critic_head_hidden_size=[400, 300],
            phi=0.05,
        ),
        learn=dict(
            batch_size=100,
            learning_rate_q=3e-4,
            learning_rate_policy=3e-4,
            learning_rate_vae=3e-4,
            lmbda=0.75,
            # Bound of the actor's last layer at initialisation, so that it first changes little.
            init_w=3e-3,
        ),
        collect=dict(n_sample=1),
    )

    _learned = {**QActorCritic._learned, "optimizer_vae": "_optimizer_vae"}
    _collect_options = _eval_options = {"mode": "compute_eval"}
    #: Number of proposals; a target uses the best one.
    _proposals = 10

    _network = "bcq"
    _logged: tuple[str, ...] = ("vae_loss", "recons_loss", "kld_loss")
    _log_names = {"critic_twin_loss": "twin_critic_loss"}

    def _create_model(self, cfg: EasyDict, model: nn.Module | None) -> nn.Module:
        built: Network = super()._create_model(cfg, model)
        bound = cfg.learn.init_w
        if bound is not None and "learn" in self._enable_field and hasattr(built, "actor"):
            layers = [layer for layer in built.actor.modules() if isinstance(layer, nn.Linear)]
            start_within(layers[-1], bound)
        return built

    def _init_learn(self) -> None:
        super()._init_learn()
        cfg = self._cfg.learn
        self._lmbda = cfg.lmbda
        self._vae_parameters = list(self._model.vae.parameters())
        self._optimizer_vae = Adam(self._vae_parameters, lr=cfg.learning_rate_vae)

    def _learn(self, batch: Steps) -> Log:
        """One update of the generative model, then of critics and actor."""
        output = self._model(batch, mode="compute_vae")
        reconstruction = (output["recons_action"] - batch["action"]).pow(2).mean()
        mu, variance = output["mu"], output["sigma"].pow(2)
        divergence = 0.5 * (mu.pow(2) + variance - variance.log() - 1).mean()
        # Half of the divergence, as in the authors' code.
        loss = reconstruction + 0.5 * divergence
        vae_loss = self._descend(loss, batch, self._optimizer_vae, parameters=self._vae_parameters)
        parts = floats({"recons_loss": reconstruction, "kld_loss": divergence})
        return {"vae_loss": vae_loss, **parts, **super()._learn(batch)}

    def _next_value(self, batch: Steps) -> torch.Tensor:
        many = self._proposals
        obs = tree_map(lambda leaf: leaf.repeat_interleave(many, 0), batch["next_obs"])
        action = self._proposed(self._target_model, obs)
        values = torch.stack(self._judge(self._target_model, obs, action))
        value = self._lmbda * values.amin(0) + (1 - self._lmbda) * values.amax(0)
        return value.view(-1, self._proposals).amax(-1)

    def _actor_loss(self, batch: Steps) -> LoggedLoss:
        action = self._proposed(self._model, batch["obs"])
        return -self._judge(self._model, batch["obs"], action)[0].mean(), {}

    def _proposed(self, actor: Network, obs: Obs) -> torch.Tensor:
        """Actions from the generative model, perturbed by ``actor``."""
        with torch.no_grad():
            # Also for targets: the generative model has no target network (algorithm 1).
            action = self._model({"obs": obs}, mode="compute_vae")["recons_action"]
        return actor.forward({"obs": obs, "action": action}, mode="compute_actor")["action"]
