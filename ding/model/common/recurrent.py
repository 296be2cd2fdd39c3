"""Recurrent layers with a separate state per environment."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

State = dict[str, torch.Tensor]
_Batched = tuple[torch.Tensor, torch.Tensor]


class StatefulLSTM(nn.Module):
    """An LSTM over time with one state per row of the batch.

    A state is ``{'h', 'c'}``, each ``[layer_num, 1, hidden_size]``; ``None`` is an initial state.
    Instead of a list of B states, one state of the batch is accepted, ``[layer_num, B, ...]``.
    """

    def __init__(self, input_size: int, hidden_size: int, layer_num: int = 1) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.layer_num = layer_num
        self._build(input_size)

    def _build(self, input_size: int) -> None:
        self.lstm = nn.LSTM(input_size, self.hidden_size, self.layer_num)

    def forward(
        self, x: torch.Tensor, prev_state: State | list[State | None] | None
    ) -> tuple[torch.Tensor, Any]:
        """``[T, B, input_size]`` to ``[T, B, hidden_size]`` and the final states."""
        if isinstance(prev_state, Mapping):
            output, (h, c) = self._unroll(x, (prev_state["h"], prev_state["c"]))
            return output, {"h": h, "c": c}
        output, (h, c) = self._unroll(x, self._batched(prev_state, x))
        return output, [{"h": a, "c": b} for a, b in zip(h.split(1, dim=1), c.split(1, dim=1))]

    def _unroll(self, x: torch.Tensor, state: _Batched) -> tuple[torch.Tensor, _Batched]:
        return self.lstm(x, state)

    def _batched(self, states: list[State | None] | None, x: torch.Tensor) -> _Batched:
        rows = x.shape[1]
        if states is None:
            states = [None] * rows
        if len(states) != rows:
            raise ValueError(f"prev_state holds {len(states)} states for a batch of {rows} rows")
        zero = x.new_zeros(self.layer_num, 1, self.hidden_size)
        h = torch.cat([zero if s is None else s["h"] for s in states], dim=1)
        c = torch.cat([zero if s is None else s["c"] for s in states], dim=1)
        return h, c


class NormedLSTM(StatefulLSTM):
    """A `StatefulLSTM` with layer norm on the contributions of input and state to the gates.

    Ba et al. 2016, "Layer Normalization", equation 20 without the norm of the cell. The order of
    the gates is input, forget, output, candidate.
    """

    def _build(self, input_size: int) -> None:
        gates = 4 * self.hidden_size
        sizes = [input_size] + [self.hidden_size] * (self.layer_num - 1)
        self.bias = nn.Parameter(torch.zeros(self.layer_num, gates))
        # For each layer one for the input and one for the state.
        self.norm = nn.ModuleList(nn.LayerNorm(gates) for _ in range(2 * self.layer_num))
        self.wx = nn.ParameterList(_initial(size, gates) for size in sizes)
        self.wh = nn.ParameterList(_initial(self.hidden_size, gates) for _ in sizes)

    def _unroll(self, x: torch.Tensor, state: _Batched) -> tuple[torch.Tensor, _Batched]:
        after = []
        for i, (h, c) in enumerate(zip(*state)):
            # The inputs' contribution does not depend on states: all steps at once.
            from_input = self.norm[2 * i](x @ self.wx[i]) + self.bias[i]
            norm, wh = self.norm[2 * i + 1], self.wh[i]
            outputs = []
            for of_step in from_input:
                gates = of_step + norm(h @ wh)
                opened, candidate = gates.split((3 * self.hidden_size, self.hidden_size), -1)
                into, keep, out = opened.sigmoid().chunk(3, -1)
                c = keep * c + into * candidate.tanh()
                h = out * c.tanh()
                outputs.append(h)
            x = torch.stack(outputs)
            after.append((h, c))
        last_h, last_c = zip(*after)
        return x, (torch.stack(last_h), torch.stack(last_c))


class StatefulGRU(nn.GRUCell):
    """A GRU over time (Cho et al. 2014); states as in `StatefulLSTM`, with ``'h'`` only.

    Its parameters have the names of a GRU cell, as in old checkpoints.
    """

    layer_num = 1

    def forward(  # type: ignore[override]
        self, x: torch.Tensor, prev_state: State | list[State | None] | None
    ) -> tuple[torch.Tensor, Any]:
        """``[T, B, input_size]`` to ``[T, B, hidden_size]`` and the final states."""
        if isinstance(prev_state, Mapping):
            output, h = self._unroll(x, prev_state["h"])
            return output, {"h": h}
        zero = x.new_zeros(1, 1, self.hidden_size)
        states = prev_state or [None] * x.shape[1]
        output, h = self._unroll(
            x, torch.cat([zero if s is None else s["h"] for s in states], dim=1)
        )
        return output, [{"h": one} for one in h.split(1, dim=1)]

    def _unroll(self, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights = [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]
        # cuDNN rejects non-contiguous states, such as slices.
        return torch.gru(x, h.contiguous(), weights, True, 1, 0.0, False, False, False)


#: By ``lstm_type``.
RECURRENT_LAYERS: dict[Any, type[nn.Module]] = {
    "normal": NormedLSTM,
    "pytorch": StatefulLSTM,
    "gru": StatefulGRU,
}


def _initial(size: int, gates: int) -> nn.Parameter:
    # The same bound as the initial weights of `nn.LSTM`.
    bound = 1 / math.sqrt(gates // 4)
    return nn.Parameter(torch.empty(size, gates).uniform_(-bound, bound))
