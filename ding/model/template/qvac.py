"""Actor, critics of actions, and a value of states."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.blocks import linear_layers
from ding.model.common.head import RegressionHead, ReparameterizationHead
from ding.model.template.qac import ContinuousQAC
from ding.torch_utils.network.activation import Activation
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("continuous_qvac")
class ContinuousQVAC(ContinuousQAC):
    """`ContinuousQAC` with a value of the state beside the critics, which it shares its sizes with.

    The actor of the space ``'reparameterization'`` has a mean in (-1, 1) and one sigma for all
    observations (Kostrikov et al. 2021).
    """

    mode = ["compute_actor", "compute_critic", "compute_value"]

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        action_space: str = "reparameterization",
        twin_critic: bool = True,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        encoder_hidden_size_list: Sequence[int] | None = None,
        share_encoder: bool | None = False,
    ) -> None:
        super().__init__(
            obs_shape,
            action_shape,
            action_space,
            twin_critic,
            actor_head_hidden_size,
            actor_head_layer_num,
            critic_head_hidden_size,
            critic_head_layer_num,
            activation,
            norm_type,
            encoder_hidden_size_list,
            share_encoder,
        )
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        width = critic_head_hidden_size
        self.value_head = nn.Sequential(
            *linear_layers([self.critic_size, width], **common),
            RegressionHead(width, 1, critic_head_layer_num, **common),
        )

    def _gaussian_head(self, width: int, size: int, **kwargs: Any) -> nn.Module:
        return ReparameterizationHead(
            width, size, sigma_type="independent", bound_type="tanh", **kwargs
        )

    @property
    def critic(self) -> nn.ModuleList:
        """Encoder and heads of all that judges: actions and states."""
        return nn.ModuleList([*super().critic, self.value_head])

    def compute_value(self, obs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'v_value': [B]}``."""
        return {"v_value": self.value_head(self.critic_feature(obs))["pred"]}
