"""Actor and critic of ACER."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.encoder import build_encoder
from ding.model.common.head import DiscreteHead, RegressionHead
from ding.model.template.actor_critic import ActorCritic
from ding.torch_utils.network.activation import Activation
from ding.utils.default_helper import one_size
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("acer")
class ACER(ActorCritic):
    """Logits of one discrete action, and the values of all actions, each from its own encoder.

    ``forward(x, mode)`` with mode ``'compute_actor'`` gives ``{'logit': [B, N]}``, with
    ``'compute_critic'`` ``{'q_value': [B, N]}``.
    """

    mode = ["compute_actor", "compute_critic"]

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
    ) -> None:
        actions = one_size(action_shape, "ACER: action_shape", "it has one discrete action")
        options = (obs_shape, encoder_hidden_size_list, activation, norm_type)
        encoder = build_encoder(*options)
        super().__init__(encoder, build_encoder(*options))
        width = encoder.output_size
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        # The critic's first: so optimisers of old checkpoints count the parameters.
        self.critic_head = RegressionHead(
            width, actions, critic_head_layer_num, hidden_size=critic_head_hidden_size, **common
        )
        self.actor_head = DiscreteHead(
            actor_head_hidden_size, actions, actor_head_layer_num, input_size=width, **common
        )

    def compute_actor(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'logit': [B, N]}``."""
        return self.actor_head(self.actor_feature(inputs))

    def compute_critic(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'q_value': [B, N]}``."""
        return {"q_value": self.critic_head(self.critic_feature(inputs))["pred"]}
