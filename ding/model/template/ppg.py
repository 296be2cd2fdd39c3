"""A policy with a value head to learn from, and a value network beside it."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.template.actor_critic import ByMode
from ding.model.template.vac import VAC
from ding.torch_utils.network.activation import Activation
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("ppg")
class PPG(ByMode):
    """The two networks of phasic policy gradient (Cobbe et al. 2020).

    ``actor_critic`` is the policy network, whose value is its auxiliary task; ``aux_critic`` is the
    value network, which shares nothing with it. They begin with the same weights.

    Arguments and outputs are those of `VAC`.
    """

    mode = VAC.mode

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        action_space: str = "discrete",
        share_encoder: bool = True,
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 2,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        impala_cnn_encoder: bool = False,
    ) -> None:
        super().__init__()
        self.actor_critic = VAC(
            obs_shape,
            action_shape,
            action_space,
            share_encoder,
            encoder_hidden_size_list,
            actor_head_hidden_size,
            actor_head_layer_num,
            critic_head_hidden_size,
            critic_head_layer_num,
            activation,
            norm_type,
            impala_cnn_encoder=impala_cnn_encoder,
        )
        self.aux_critic = copy.deepcopy(self.actor_critic.critic)

    def compute_actor(self, x: torch.Tensor) -> dict[str, Any]:
        """``{'logit'}`` of the policy network."""
        return self.actor_critic(x, mode="compute_actor")

    def compute_critic(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'value'}`` of the value network."""
        encoder, head = self.aux_critic
        return {"value": head(encoder(x))["pred"]}

    def compute_actor_critic(self, x: torch.Tensor) -> dict[str, Any]:
        """``{'logit', 'value'}`` of the policy network."""
        return self.actor_critic(x, mode="compute_actor_critic")
