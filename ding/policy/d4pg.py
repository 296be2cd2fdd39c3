"""Distributed distributional deterministic policy gradient (Barth-Maron et al. 2018)."""

import torch

from ding.policy._types import Action, CriticLoss, Network, Obs, Steps
from ding.policy.ddpg import DDPGPolicy
from ding.policy.dqn import atoms_of
from ding.policy.networks import VECTOR, Shape, actor_and_q_critic
from ding.rl_utils import dist_nstep_td_data, dist_nstep_td_error
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("d4pg")
class D4PGPolicy(DDPGPolicy):
    """DDPG with n-step returns, whose critic learns probabilities of ``model.n_atom`` returns.

    These go from ``model.v_min`` to ``model.v_max``; returns beyond count as the nearer one. A
    sample's priority is its cross-entropy.
    """

    paper = "Barth-Maron et al. 2018"
    actions = ("continuous",)
    networks = {
        "continuous": actor_and_q_critic({"action": VECTOR}, distribution=Shape("B n_atom"))
    }
    config = dict(
        type="d4pg",
        priority=True,
        priority_IS_weight=True,
        nstep=3,
        model=dict(v_min=-10, v_max=10, n_atom=51),
        eval=dict(evaluator=dict(eval_freq=1000)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000000)),
    )

    # Its critic has no squared errors.
    _log_names = {"td_error": None}
    _network = "qac_dist"
    _action_spaces = {"continuous": "regression"}

    def _init_learn(self) -> None:
        super()._init_learn()
        self._atoms = atoms_of(self._cfg.model)

    def _critics(self, batch: Steps) -> CriticLoss:
        now = self._judge_all(self._model, batch["obs"], batch["action"])
        with torch.no_grad():
            obs = batch["next_obs"]
            following = self._judge_all(self._target_model, obs, self._next_action(obs))
        # One action that there is a distribution of: the critic was told which.
        only = torch.zeros(len(now["distribution"]), dtype=torch.int64, device=self._device)
        q, next_q = (told["distribution"].unsqueeze(1) for told in (now, following))
        sample = batch["reward"], batch["done"], batch["weight"]
        data = dist_nstep_td_data(q, next_q, only, only, *sample)
        loss, error = dist_nstep_td_error(
            data, self._gamma, *self._atoms, self._nstep, batch.get("value_gamma")
        )
        log = {
            "critic_loss": loss,
            "q_value": now["q_value"].mean(),
            "target_q_value": following["q_value"].mean(),
        }
        return CriticLoss(loss, error.detach(), [loss], log)

    def _judge_all(self, model: Network, obs: Obs, action: Action) -> dict[str, torch.Tensor]:
        return model({"obs": obs, "action": action}, mode="compute_critic")
