"""An actor, and as many critics as one likes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.ensemble import ensemble_mlp
from ding.model.common.head import flat_size
from ding.model.template.qac import ContinuousQAC
from ding.torch_utils.network.activation import Activation
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("edac")
class EDAC(ContinuousQAC):
    """The actor of `ContinuousQAC` (a Gaussian), and ``ensemble_num`` critics in one pass.

    Args:
        ensemble_num: Number of critics.
        kwargs: Taken and left alone: ``twin_critic`` and ``action_space`` of `ContinuousQAC`.
    """

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        ensemble_num: int = 2,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        **kwargs: Any,
    ) -> None:
        if ensemble_num < 1:
            raise ConfigError(f"EDAC: ensemble_num is {ensemble_num}; expected at least 1")
        if norm_type is not None:
            raise ConfigError(f"EDAC: norm_type is {norm_type!r}; its critics have no norm")
        super().__init__(
            *(obs_shape, action_shape, "reparameterization"),
            actor_head_hidden_size=actor_head_hidden_size,
            actor_head_layer_num=actor_head_layer_num,
            activation=activation,
        )
        sizes = [
            self.critic_size + flat_size(action_shape),
            *[critic_head_hidden_size] * (critic_head_layer_num + 1),
        ]
        self.critic_head = ensemble_mlp(ensemble_num, sizes, 1, activation)

    def compute_critic(self, inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
        """``{'q_value': [ensemble_num, B]}``.

        Args:
            inputs: ``obs`` ``[B, obs_shape]`` and ``action`` ``[B, A]``, or both with a first
                dimension of the size ``ensemble_num``: each critic its own.
        """
        x = torch.cat([inputs["obs"], inputs["action"]], -1)
        return {"q_value": self.critic_head(x).squeeze(-1)}
