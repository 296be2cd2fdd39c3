"""Recurrent layers whose states come and go per environment."""

from typing import Any

import torch
from torch import nn

State = dict[str, torch.Tensor]


class StatefulLSTM(nn.Module):
    """An LSTM over time with one state per row of the batch.

    A state is ``{'h', 'c'}``, each ``[layer_num, 1, hidden_size]``; ``None`` is one that begins.
    """

    def __init__(self, input_size: int, hidden_size: int, layer_num: int = 1) -> None:
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, layer_num)

    def forward(
        self, x: torch.Tensor, prev_state: list[State | None] | None
    ) -> tuple[torch.Tensor, list[State]]:
        """``[T, B, input_size]`` to ``[T, B, hidden_size]`` and the B states after it."""
        output, state = self.lstm(x, self._batched(prev_state, x))
        return output, _per_row(*state)

    def _batched(
        self, states: list[State | None] | None, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows = x.shape[1]
        if states is None:
            states = [None] * rows
        if len(states) != rows:
            raise ValueError(f"prev_state holds {len(states)} states for a batch of {rows} rows")
        zero = x.new_zeros(self.lstm.num_layers, 1, self.lstm.hidden_size)
        h = torch.cat([zero if s is None else s["h"] for s in states], dim=1)
        c = torch.cat([zero if s is None else s["c"] for s in states], dim=1)
        return h, c


def _per_row(h: torch.Tensor, c: torch.Tensor) -> list[Any]:
    return [{"h": a, "c": b} for a, b in zip(h.split(1, dim=1), c.split(1, dim=1))]
