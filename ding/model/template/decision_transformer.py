"""The network of the Decision Transformer: returns, states and actions as one causal sequence."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.utils.default_helper import one_size, sizes_of
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY

#: Number of tokens per step: return-to-go, state, action.
_TOKENS = 3


class _Block(nn.Module):
    """One causal layer of GPT-2: attention, then two linear layers, each on normed inputs."""

    def __init__(self, h_dim: int, n_heads: int, drop_p: float) -> None:
        super().__init__()
        self._n_heads, self._drop_p = n_heads, drop_p
        self.norm_attention, self.norm_mlp = nn.LayerNorm(h_dim), nn.LayerNorm(h_dim)
        self.query_key_value = nn.Linear(h_dim, 3 * h_dim)
        self.project = nn.Linear(h_dim, h_dim)
        self.mlp = nn.Sequential(
            nn.Linear(h_dim, 4 * h_dim), nn.GELU(), nn.Linear(4 * h_dim, h_dim), nn.Dropout(drop_p)
        )

    def forward(self, x: Tensor) -> Tensor:
        size, length, width = x.shape
        heads = self.query_key_value(self.norm_attention(x))
        heads = heads.view(size, length, 3, self._n_heads, width // self._n_heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        dropout = self._drop_p if self.training else 0.0
        found = F.scaled_dot_product_attention(query, key, value, None, dropout, is_causal=True)
        joined = self.project(found.transpose(1, 2).reshape(size, length, width))
        x = x + F.dropout(joined, self._drop_p, self.training)
        return x + self.mlp(self.norm_mlp(x))


@MODEL_REGISTRY.register("dt")
class DecisionTransformer(nn.Module):
    """Predicts each step's action from returns, states and actions up to it (Chen et al. 2021).

    Args:
        state_dim: Size of a state, or its shape if there is a ``state_encoder``.
        act_dim: Number of discrete actions, or size of a continuous one.
        h_dim: Width of the tokens; a multiple of ``n_heads``.
        context_len: Maximum number of steps in a sequence.
        drop_p: Dropout probability.
        max_timestep: Number of time embeddings.
        state_encoder: ``[N, *state_dim]`` to ``[N, h_dim]``; a linear layer by default.
        continuous: Whether actions are vectors in (-1, 1).
    """

    def __init__(
        self,
        state_dim: int | Sequence[int],
        act_dim: int | Sequence[int],
        n_blocks: int,
        h_dim: int,
        context_len: int,
        n_heads: int,
        drop_p: float,
        max_timestep: int = 4096,
        state_encoder: nn.Module | None = None,
        continuous: bool = False,
    ) -> None:
        super().__init__()
        if h_dim % n_heads:
            raise ConfigError(f"h_dim={h_dim} must be a multiple of n_heads={n_heads}")
        state_sizes = sizes_of(state_dim, "DecisionTransformer: state_dim")
        if state_encoder is None and len(state_sizes) > 1:
            raise ConfigError(
                f"state_dim={state_dim!r}: states that are no vectors need a state_encoder"
            )
        act_dim = one_size(act_dim, "DecisionTransformer: act_dim", "the actions")
        self.context_len, self.max_timestep = context_len, max_timestep
        self.continuous, self.act_dim = continuous, act_dim
        self.embed_time = nn.Embedding(max_timestep, h_dim)
        self.embed_return = nn.Linear(1, h_dim)
        self.embed_state = state_encoder or nn.Linear(state_sizes[0], h_dim)
        self.embed_action = (
            nn.Linear(act_dim, h_dim) if continuous else nn.Embedding(act_dim, h_dim)
        )
        self.norm, self.dropout = nn.LayerNorm(h_dim), nn.Dropout(drop_p)
        self.blocks = nn.Sequential(*(_Block(h_dim, n_heads, drop_p) for _ in range(n_blocks)))
        self.norm_out = nn.LayerNorm(h_dim)
        self.predict_return = nn.Linear(h_dim, 1)
        is_vector = len(state_sizes) == 1
        self.predict_state = nn.Linear(h_dim, state_sizes[0]) if is_vector else None
        predict_action: list[nn.Module] = [nn.Linear(h_dim, act_dim)]
        self.predict_action = nn.Sequential(*predict_action, *([nn.Tanh()] * continuous))

    def forward(
        self,
        timesteps: Tensor,
        states: Tensor,
        actions: Tensor,
        returns_to_go: Tensor,
        tar: int | None = None,
    ) -> tuple[Tensor | None, Tensor, Tensor]:
        """Predict the successor of each token, from the tokens up to it.

        Args:
            timesteps: int64 ``[B, T]``, T at most ``context_len``.
            states: float32 ``[B, T, *state_dim]``.
            actions: int64 ``[B, T]``, or float32 ``[B, T, act_dim]``.
            returns_to_go: float32 ``[B, T, 1]``.
            tar: Ignored; for callers of other implementations.

        Returns:
            The next states ``[B, T, state_dim]`` (None with a ``state_encoder`` of images), each
            step's action as logits or in (-1, 1), ``[B, T, act_dim]``, and the next returns
            ``[B, T, 1]``.
        """
        size, length = timesteps.shape
        time = self.embed_time(timesteps.clamp(max=self.max_timestep - 1))
        state = self.embed_state(states.flatten(0, 1)).view(size, length, -1)
        action = self.embed_action(actions)
        tokens = (
            torch.stack([self.embed_return(returns_to_go), state, action], 2) + time[:, :, None]
        )
        tokens = self.dropout(self.norm(tokens.view(size, _TOKENS * length, -1)))
        hidden = self.norm_out(self.blocks(tokens)).view(size, length, _TOKENS, -1)
        after_state, after_action = hidden[:, :, 1], hidden[:, :, 2]
        next_state = None if self.predict_state is None else self.predict_state(after_action)
        return next_state, self.predict_action(after_state), self.predict_return(after_action)
