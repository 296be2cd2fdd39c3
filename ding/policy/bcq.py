"""Batch-constrained Q-learning, for offline data (Fujimoto et al. 2019)."""

import torch
from easydict import EasyDict
from torch import nn

from ding.policy._types import Log, LoggedLoss, Network, Steps
from ding.policy.checks import to_floats
from ding.policy.networks import NUMBER, OBS, VECTOR, Call, Shape
from ding.policy.q_actor_critic import QActorCritic, start_within
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY


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
            # The actor's last layer starts uniform within this, so that it changes little.
            init_w=3e-3,
        ),
        collect=dict(n_sample=1),
    )

    _learned = {**QActorCritic._learned, "optimizer_vae": "_optimizer_vae"}
    _collect_options = _eval_options = {"mode": "compute_eval"}
    #: Proposals of which a target takes the best.
    _proposals = 10

    _network = "bcq"
    _logged: tuple[str, ...] = ("vae_loss", "recons_loss", "kld_loss")
    _log_names = {"critic_twin_loss": "twin_critic_loss"}

    def _create_model(self, cfg: EasyDict, model: nn.Module | None) -> nn.Module:
        built: Network = super()._create_model(cfg, model)
        if "learn" in self._enable_field and hasattr(built, "actor"):
            layers = [layer for layer in built.actor.modules() if isinstance(layer, nn.Linear)]
            start_within(layers[-1], cfg.learn.init_w)
        return built

    def _init_learn(self) -> None:
        super()._init_learn()
        cfg = self._cfg.learn
        self._lmbda = cfg.lmbda
        self._vae_parameters = list(self._model.vae.parameters())
        self._optimizer_vae = Adam(self._vae_parameters, lr=cfg.learning_rate_vae)

    def _learn(self, batch: Steps) -> Log:
        """One update of the data's model, and then those of critics and actor."""
        output = self._model(batch, mode="compute_vae")
        reconstruction = (output["recons_action"] - batch["action"]).pow(2).mean()
        mu, variance = output["mu"], output["sigma"].pow(2)
        divergence = 0.5 * (mu.pow(2) + variance - variance.log() - 1).mean()
        loss = reconstruction + 0.5 * divergence
        vae_loss = self._descend(loss, batch, self._optimizer_vae, parameters=self._vae_parameters)
        parts = to_floats(reconstruction.detach(), divergence.detach())
        log = {"vae_loss": vae_loss, **dict(zip(("recons_loss", "kld_loss"), parts))}
        return {**log, **super()._learn(batch)}

    def _next_value(self, batch: Steps) -> torch.Tensor:
        obs = batch["next_obs"].repeat_interleave(self._proposals, 0)
        action = self._proposed(self._target_model, obs)
        values = torch.stack(self._judge(self._target_model, obs, action))
        value = self._lmbda * values.amin(0) + (1 - self._lmbda) * values.amax(0)
        return value.view(-1, self._proposals).amax(-1)

    def _actor_loss(self, batch: Steps) -> LoggedLoss:
        action = self._proposed(self._model, batch["obs"])
        return -self._judge(self._model, batch["obs"], action)[0].mean(), {}

    def _proposed(self, actor: Network, obs: torch.Tensor) -> torch.Tensor:
        """Actions such as the data have, as ``actor`` changes them."""
        with torch.no_grad():
            action = self._model({"obs": obs}, mode="compute_vae")["recons_action"]
        return actor.forward({"obs": obs, "action": action}, mode="compute_actor")["action"]
