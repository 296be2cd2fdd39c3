"""Encoders of entities: transformer (Vaswani et al. 2017, "Attention Is All You Need"), scatter."""

import itertools
import math

import torch
from torch import nn

from ding.torch_utils.network.activation import Activation, activation_or_identity
from ding.torch_utils.network.nn_module import fc_block


class Attention(nn.Module):
    """Multi-head self-attention.

    Args:
        input_dim: Input features per entity.
        head_dim: Features per head.
        output_dim: Output features per entity.
        head_num: Number of heads.
        dropout: Layer that is applied to the attention weights.
    """

    def __init__(
        self, input_dim: int, head_dim: int, output_dim: int, head_num: int, dropout: nn.Module
    ) -> None:
        super().__init__()
        self.head_num, self.head_dim = head_num, head_dim
        self.dropout = dropout
        self.attention_pre = fc_block(input_dim, 3 * head_dim * head_num)
        self.project = fc_block(head_dim * head_num, output_dim)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Attend from each entity to all entities.

        Args:
            x: ``[B, N, input_dim]``.
            mask: bool, broadcastable to ``[B, 1, N, N]``; true where an entity (row) may attend to
                another (column).

        Returns:
            ``[B, N, output_dim]``.
        """
        batch, count, _ = x.shape
        heads = self.attention_pre(x).reshape(batch, count, 3, self.head_num, self.head_dim)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        score = query @ key.transpose(-2, -1) / math.sqrt(self.head_dim)
        if mask is not None:
            # Not minus infinity: the softmax of a fully masked row would be NaN.
            score = score.masked_fill(~mask, torch.finfo(score.dtype).min)
        seen = self.dropout(score.softmax(-1)) @ value
        return self.project(seen.transpose(1, 2).reshape(batch, count, -1))


class TransformerLayer(nn.Module):
    """Self-attention and an MLP, each with a residual connection and post-layer normalisation."""

    def __init__(
        self,
        input_dim: int,
        head_dim: int,
        hidden_dim: int,
        output_dim: int,
        head_num: int,
        mlp_num: int,
        dropout: nn.Module,
        activation: Activation,
    ) -> None:
        super().__init__()
        self.attention = Attention(input_dim, head_dim, output_dim, head_num, dropout)
        self.layernorm1 = nn.LayerNorm(output_dim)
        self.dropout = dropout
        widths = [output_dim] + [hidden_dim] * (mlp_num - 1) + [output_dim]
        self.mlp = nn.Sequential(
            *(fc_block(a, b, activation) for a, b in itertools.pairwise(widths)), dropout
        )
        self.layernorm2 = nn.LayerNorm(output_dim)

    def forward(
        self, inputs: tuple[torch.Tensor, torch.Tensor | None]
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Map ``(x, mask)`` to ``(encoded x, mask)``; shapes as in `Attention`."""
        x, mask = inputs
        x = self.layernorm1(x + self.dropout(self.attention(x, mask)))
        return self.layernorm2(x + self.mlp(x)), mask


class Transformer(nn.Module):
    """Transformer encoder for a set of entities.

    Args:
        input_dim: Input features per entity.
        head_dim: Features per attention head.
        hidden_dim: Width of the hidden layers of the MLPs.
        output_dim: Output features per entity.
        head_num: Attention heads.
        mlp_num: Linear layers per MLP.
        layer_num: Transformer layers.
        dropout_ratio: Dropout probability.
        activation: Activation after each linear layer of the embedding and the MLPs.
    """

    def __init__(
        self,
        input_dim: int,
        head_dim: int = 128,
        hidden_dim: int = 1024,
        output_dim: int = 256,
        head_num: int = 2,
        mlp_num: int = 2,
        layer_num: int = 3,
        dropout_ratio: float = 0.0,
        activation: Activation = nn.ReLU(),
    ) -> None:
        super().__init__()
        self.embedding = fc_block(input_dim, output_dim, activation)
        self.act = activation_or_identity(activation)
        self.dropout = nn.Dropout(dropout_ratio)
        shape = (head_dim, hidden_dim, output_dim, head_num, mlp_num)
        self.main = nn.Sequential(
            *(
                TransformerLayer(output_dim, *shape, self.dropout, activation)
                for _ in range(layer_num)
            )
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Encode entities.

        Args:
            x: ``[B, N, input_dim]``.
            mask: bool ``[B, N]``, true where there is an entity.

        Returns:
            ``[B, N, output_dim]``; values at places without an entity are meaningless.
        """
        if mask is not None:
            mask = mask.bool()[:, None, None, :]
        encoded, _ = self.main((self.dropout(self.embedding(x)), mask))
        return encoded


class ScatterConnection(nn.Module):
    """Scatters the embeddings of entities onto a map (Vinyals et al. 2019, AlphaStar).

    Args:
        scatter_type: For several entities at one location, ``add`` sums their embeddings and
            ``cover`` keeps the last one.
    """

    def __init__(self, scatter_type: str) -> None:
        super().__init__()
        if scatter_type not in ("add", "cover"):
            raise ValueError(f"got scatter_type {scatter_type!r}: expected 'add' or 'cover'")
        self.scatter_type = scatter_type

    def forward(
        self, x: torch.Tensor, spatial_size: tuple[int, int], location: torch.Tensor
    ) -> torch.Tensor:
        """Scatter embeddings onto a map.

        Args:
            x: Embeddings ``[B, M, N]`` of M entities.
            spatial_size: Height and width of the map.
            location: int64 ``[B, M, 2]``: row and column of each entity, clamped to the map.

        Returns:
            ``[B, N, H, W]``, zero where there is no entity.
        """
        row, column = location.unbind(-1)
        return self.xy_forward(x, spatial_size, column, row)

    def xy_forward(
        self,
        x: torch.Tensor,
        spatial_size: tuple[int, int],
        coord_x: torch.Tensor,
        coord_y: torch.Tensor,
    ) -> torch.Tensor:
        """As `forward`, with separate columns ``coord_x`` and rows ``coord_y``, each ``[B, M]``."""
        batch, count, width = x.shape
        rows, columns = spatial_size
        place = coord_y.long().clamp(0, rows - 1) * columns + coord_x.long().clamp(0, columns - 1)
        canvas = x.new_zeros(batch, rows * columns, width)
        if self.scatter_type == "cover":
            # Keep only the last entity at each location; parallel writes have no order.
            same = place.unsqueeze(2) == place.unsqueeze(1)
            covered = same.triu(diagonal=1).any(2)
            x = x.masked_fill(covered.unsqueeze(2), 0)
        canvas = canvas.scatter_add(1, place.unsqueeze(2).expand(batch, count, width), x)
        return canvas.transpose(1, 2).reshape(batch, width, rows, columns)
