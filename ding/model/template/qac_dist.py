"""Actor, and a critic that gives the distribution of the return."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.dense import linear_layers
from ding.model.common.distributional_head import DistributionHead
from ding.model.common.head import RegressionHead, column, flat_size, vector_size
from ding.model.template.actor_critic import ByMode
from ding.torch_utils.network.activation import Activation
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("qac_dist")
class QACDIST(ByMode):
    """Continuous actions: an actor, and a critic with probabilities of ``n_atom`` returns.

    Args:
        action_space: ``'regression'``: one action, in (-1, 1).
        critic_head_type: ``'categorical'``: returns from ``v_min`` to ``v_max``.
    """

    mode = ["compute_actor", "compute_critic"]

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        action_space: str = "regression",
        critic_head_type: str = "categorical",
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        v_min: float | None = -10,
        v_max: float | None = 10,
        n_atom: int | None = 51,
    ) -> None:
        super().__init__()
        for name, value, known in (
            ("action_space", action_space, "regression"),
            ("critic_head_type", critic_head_type, "categorical"),
        ):
            if value != known:
                raise ConfigError(f"QACDIST: {name} is {value!r}; it has {known!r} only")
        obs_size, action_size = vector_size(obs_shape, "QACDIST"), flat_size(action_shape)
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        width = actor_head_hidden_size
        self.actor = nn.Sequential(
            *linear_layers([obs_size, width], **common),
            RegressionHead(width, action_size, actor_head_layer_num, final_tanh=True, **common),
        )
        width = critic_head_hidden_size
        atoms: dict[str, Any] = {"n_atom": n_atom, "v_min": v_min, "v_max": v_max}
        self.critic = nn.Sequential(
            *linear_layers([obs_size + action_size, width], **common),
            DistributionHead(width, 1, critic_head_layer_num, **atoms, **common),
        )

    def compute_actor(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'action': [B, A]}``."""
        return {"action": column(self.actor(inputs)["pred"], inputs)}

    def compute_critic(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """``{'q_value': [B], 'distribution': [B, n_atom]}``.

        Args:
            inputs: ``obs``, and ``action`` ``[B, A]`` (or ``[B]`` for a single dimension).
        """
        action = column(inputs["action"], inputs["obs"])
        output = self.critic(torch.cat([inputs["obs"], action], dim=-1))
        return {
            "q_value": output["logit"].squeeze(-1),
            "distribution": output["distribution"].squeeze(-2),
        }
