"""Networks for value-based policies."""

from collections.abc import Sequence

import torch
from torch import nn

from ding.model.common.encoder import build_encoder
from ding.model.common.head import DiscreteHead, DuelingHead, build_discrete_head
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("dqn")
class DQN(nn.Module):
    """Q-values of actions: ``[B, *obs_shape] float32`` to ``{'logit': [B, action_shape]}``.

    With several action dimensions ``logit`` is a list, one tensor for each.

    Args:
        obs_shape: An int or ``[n]`` for vectors, ``[C, H, W]`` for images.
        head_hidden_size: The encoder's last size unless given.
        init_bias: First bias of the Q-values (of V when dueling): where the values start.
        noise: Noisy linear layers in the head; see `ding.torch_utils.network.NoiseLinearLayer`.
    """

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        dueling: bool = True,
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: nn.Module | None = nn.ReLU(),
        norm_type: str | None = None,
        dropout: float | None = None,
        init_bias: float | None = None,
        noise: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(
            obs_shape, encoder_hidden_size_list, activation, norm_type, dropout
        )
        self.head = build_discrete_head(
            DuelingHead if dueling else DiscreteHead,
            head_hidden_size or self.encoder.output_size,
            action_shape,
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
            dropout=dropout,
            noise=noise,
            input_size=self.encoder.output_size,
        )
        if init_bias is not None:
            self._set_value_bias(init_bias)

    def _set_value_bias(self, value: float) -> None:
        for head in self.head.modules():
            if isinstance(head, (DuelingHead, DiscreteHead)):
                last = (head.V if isinstance(head, DuelingHead) else head.Q)[-1]
                nn.init.constant_(last.bias, value)

    def forward(self, x: torch.Tensor) -> dict:
        return self.head(self.encoder(x))
