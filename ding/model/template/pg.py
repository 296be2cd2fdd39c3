"""An actor without a critic."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.encoder import build_encoder
from ding.model.common.head import build_policy_head
from ding.torch_utils.network.activation import Activation
from ding.utils.errors import check_one_of
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("pg")
class PG(nn.Module):
    """A policy: ``[B, *obs_shape]`` to ``{'logit'}``.

    ``logit`` is ``[B, action_shape]``, a list of such with several action dimensions, or with
    ``action_space='continuous'`` ``{'mu', 'sigma'}``, each ``[B, action_shape]``; sigma is learned
    and the same for every observation.

    Args:
        head_hidden_size: The last of ``encoder_hidden_size_list`` unless given.
    """

    action_spaces = ("discrete", "continuous")

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        action_space: str = "discrete",
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
    ) -> None:
        super().__init__()
        check_one_of("PG: action_space", action_space, self.action_spaces)
        width = encoder_hidden_size_list[-1]
        self.action_space = action_space
        self.encoder = build_encoder(obs_shape, encoder_hidden_size_list, activation, norm_type)
        self.head = build_policy_head(
            *(action_space, action_shape, width, head_hidden_size or width),
            gaussian={"sigma_type": "independent"},
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
        )

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        """``{'logit'}``."""
        output = self.head(self.encoder(x))
        return output if self.action_space == "discrete" else {"logit": output}
