"""Recurrent Q-network."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.encoder import build_encoder
from ding.model.common.head import DiscreteHead, DuelingHead, build_discrete_head
from ding.model.common.recurrent import RECURRENT_LAYERS
from ding.torch_utils.network.activation import Activation
from ding.utils.errors import ConfigError, check_one_of
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("drqn")
class DRQN(nn.Module):
    """Q-values from a history of observations (Hausknecht and Stone 2015).

    Args:
        head_hidden_size: Width of the LSTM and the head; the encoder's last size unless given.
        lstm_type: ``'normal'``, an LSTM with layer norm; ``'pytorch'``, torch's LSTM, which is
            faster; or ``'gru'``.
        res_link: Add the encoder's output to the LSTM's; both must have the same width.
    """

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        dueling: bool = True,
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        lstm_type: str | None = "normal",
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        res_link: bool = False,
    ) -> None:
        super().__init__()
        check_one_of("DRQN: lstm_type", lstm_type, RECURRENT_LAYERS)
        self.encoder = build_encoder(obs_shape, encoder_hidden_size_list, activation, norm_type)
        width = head_hidden_size or self.encoder.output_size
        if res_link and width != self.encoder.output_size:
            raise ConfigError(
                f"DRQN: res_link adds the encoder's {self.encoder.output_size} values to the "
                f"LSTM's {width}; give head_hidden_size={self.encoder.output_size}"
            )
        self.rnn: nn.Module = RECURRENT_LAYERS[lstm_type](self.encoder.output_size, width)
        self.res_link = res_link
        self.head = build_discrete_head(
            DuelingHead if dueling else DiscreteHead,
            width,
            action_shape,
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
        )

    def forward(
        self,
        inputs: dict[str, Any],
        inference: bool = False,
        saved_state_timesteps: list[Any] | None = None,
    ) -> dict[str, Any]:
        """One step of acting, or a whole sequence.

        Args:
            inputs: ``obs``, ``[B, *obs_shape]`` for one step and ``[T, B, *obs_shape]`` for a
                sequence, and ``prev_state``, a list of B states (None for initial ones) or one
                state of the batch, in the format of recurrent layers.
            inference: Whether the input is one step.
            saved_state_timesteps: Steps (the first is 1) after which to return the states.

        Returns:
            ``logit`` ``[B, N]`` or ``[T, B, N]``; ``next_state``, the states after the last step;
            for a sequence ``hidden_state`` ``[T, B, width]``; and if requested ``saved_state``, the
            B states after each of ``saved_state_timesteps``.
        """
        obs, state = inputs["obs"], inputs["prev_state"]
        if inference:
            obs = obs.unsqueeze(0)
        steps = obs.shape[0]
        feature = self.encoder(obs.flatten(0, 1)).unflatten(0, (steps, -1))
        hidden, state, saved = self._unroll(feature, state, saved_state_timesteps or [])
        if self.res_link:
            hidden = hidden + feature
        if inference:
            return {**self.head(hidden.squeeze(0)), "next_state": state}
        output = {**self.head(hidden), "next_state": state, "hidden_state": hidden}
        if saved_state_timesteps is not None:
            output["saved_state"] = saved
        return output

    def _unroll(
        self, feature: torch.Tensor, state: Any, stops: list[int]
    ) -> tuple[torch.Tensor, Any, list[Any]]:
        """Run the LSTM in pieces that end at the ``stops``."""
        pieces, saved, start = [], [], 0
        for stop in [*stops, feature.shape[0]]:
            if not start <= stop <= feature.shape[0]:
                raise ValueError(
                    f"saved_state_timesteps is {stops}; expected rising steps from 1 to "
                    f"{feature.shape[0]}"
                )
            if stop > start:
                hidden, state = self.rnn(feature[start:stop], state)
                pieces.append(hidden)
            saved.append(state)
            start = stop
        return torch.cat(pieces), state, saved[:-1]
