"""Statistics with the arguments of numpy."""

import torch
from numpy.typing import ArrayLike


def cov(
    x: ArrayLike | torch.Tensor,
    rowvar: bool = False,
    bias: bool = False,
    ddof: int | None = None,
    aweights: ArrayLike | torch.Tensor | None = None,
) -> torch.Tensor:
    """Covariance matrix with ``numpy.cov``'s options, except that variables are columns.

    Args:
        x: Observations, as a tensor, an array or lists: ``[N]`` or ``[N, D]`` (``[D, N]`` with
            ``rowvar``).
        bias: Whether to divide by N instead of N - 1, unless ``ddof`` is given.
        aweights: Weight of each observation ``[N]``.

    Returns:
        ``[D, D]``, a scalar for one variable.
    """
    x = torch.as_tensor(x)
    if aweights is not None:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        aweights = torch.as_tensor(aweights, dtype=dtype, device=x.device)
    if x.dim() == 2 and not rowvar:
        x = x.t()
    correction = ddof if ddof is not None else int(not bias)
    return torch.cov(x, correction=correction, aweights=aweights)
