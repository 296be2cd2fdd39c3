"""One-hot encoding."""

import torch


def one_hot(val: torch.LongTensor, num: int, num_first: bool = False) -> torch.FloatTensor:
    """Encode class indices.

    Args:
        val: Any shape ``[*]``, values in ``[0, num)``.
        num: Number of classes.
        num_first: Put the class dimension first instead of last.

    Returns:
        float32 ``[*, num]`` or ``[num, *]``.
    """
    if not isinstance(val, torch.Tensor):
        raise TypeError(f"got {type(val).__name__}: one_hot takes a tensor of class indices")
    index = val.long().unsqueeze(-1)
    encoded = torch.zeros(*val.shape, num, device=val.device).scatter_(-1, index, 1.0)
    return encoded.movedim(-1, 0) if num_first else encoded  # type: ignore[return-value]
