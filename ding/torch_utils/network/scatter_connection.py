"""Entities drawn onto a map at their places."""

import torch
from torch import nn


class ScatterConnection(nn.Module):
    """Puts the embeddings of entities onto a map (Vinyals et al. 2019, AlphaStar).

    Args:
        scatter_type: What becomes of several entities in one place: ``add`` sums their embeddings,
            ``cover`` keeps that of the last one.
    """

    def __init__(self, scatter_type: str) -> None:
        super().__init__()
        if scatter_type not in ("add", "cover"):
            raise ValueError(f"got scatter_type {scatter_type!r}: expected 'add' or 'cover'")
        self.scatter_type = scatter_type

    def forward(
        self, x: torch.Tensor, spatial_size: tuple[int, int], location: torch.Tensor
    ) -> torch.Tensor:
        """Draw entities.

        Args:
            x: Embeddings ``[B, M, N]`` of M entities.
            spatial_size: Height and width of the map.
            location: int64 ``[B, M, 2]``: row and column of each; beyond the map, nearest inside.

        Returns:
            ``[B, N, H, W]``, zero where there is nothing.
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
        """As `forward`, with columns ``coord_x`` and rows ``coord_y`` apart, each ``[B, M]``."""
        batch, count, width = x.shape
        rows, columns = spatial_size
        place = coord_y.long().clamp(0, rows - 1) * columns + coord_x.long().clamp(0, columns - 1)
        canvas = x.new_zeros(batch, rows * columns, width)
        if self.scatter_type == "cover":
            # Of entities in one place only the last is drawn, also where writes run in parallel.
            same = place.unsqueeze(2) == place.unsqueeze(1)
            covered = same.triu(diagonal=1).any(2)
            x = x.masked_fill(covered.unsqueeze(2), 0)
        canvas = canvas.scatter_add(1, place.unsqueeze(2).expand(batch, count, width), x)
        return canvas.transpose(1, 2).reshape(batch, width, rows, columns)
