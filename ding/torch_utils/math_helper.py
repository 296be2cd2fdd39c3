"""Statistics that torch words differently."""

import torch


def cov(
    x: torch.Tensor,
    rowvar: bool = False,
    bias: bool = False,
    ddof: int | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor:
    """Covariance matrix with ``numpy.cov``'s options, except that variables are columns.

    Args:
        x: Observations ``[N]`` or ``[N, D]`` (``[D, N]`` with ``rowvar``).
        bias: Divide by N instead of N - 1, unless ``ddof`` says what to subtract.
        aweights: Weight of each observation ``[N]``.

    Returns:
        ``[D, D]``, a scalar for one variable.
    """
    if x.dim() == 2 and not rowvar:
        x = x.t()
    correction = ddof if ddof is not None else int(not bias)
    return torch.cov(x, correction=correction, aweights=aweights)
