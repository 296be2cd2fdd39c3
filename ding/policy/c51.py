"""Distributional Q-learning on fixed atoms (Bellemare et al. 2017, C51)."""

from typing import Any

import torch

from ding.policy.dqn import DQNPolicy
from ding.rl_utils import dist_nstep_td_data, dist_nstep_td_error
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("c51")
class C51Policy(DQNPolicy):
    """Learns probabilities of ``model.n_atom`` returns from ``model.v_min`` to ``model.v_max``.

    Returns beyond these two count as the nearer one: choose them around the returns, discounted
    by ``discount_factor``, that episodes can have. The online network chooses the next action, as
    in Rainbow (Hessel et al. 2018). A sample's priority is its cross-entropy.
    """

    config: dict[str, Any] = dict(type="c51", model=dict(v_min=-10, v_max=10, n_atom=51))

    def default_model(self) -> tuple[str, list[str]]:
        return "c51dqn", ["ding.model.template.q_learning"]

    def _init_learn(self) -> None:
        super()._init_learn()
        model = self._cfg.model
        if not model.v_min < model.v_max or model.n_atom < 2:
            raise ConfigError(
                f"policy.model.v_min={model.v_min}, v_max={model.v_max}, n_atom={model.n_atom}: "
                "the atoms need v_min < v_max and a number of at least 2"
            )
        self._v_min, self._v_max, self._n_atom = model.v_min, model.v_max, model.n_atom

    def _branch_loss(
        self,
        batch: dict[str, Any],
        action: torch.Tensor,
        output: dict[str, torch.Tensor],
        target: dict[str, torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        data = dist_nstep_td_data(
            output["distribution"],
            target["distribution"],
            action,
            target["next_action"],
            batch["reward"],
            batch["done"],
            batch["weight"],
        )
        loss, error = dist_nstep_td_error(
            data,
            self._gamma,
            self._v_min,
            self._v_max,
            self._n_atom,
            self._nstep,
            batch.get("value_gamma"),
        )
        return loss, error.detach()
