"""Log-probabilities of chosen tokens from the logits of all of them."""

from collections.abc import Callable

import torch
from torch import Tensor

#: ``(logits [*, T, V], index int64 [*, T]) -> log-probabilities [*, T]``.
LogProbFunction = Callable[[Tensor, Tensor], Tensor]


def efficient_method(logits: Tensor, index: Tensor) -> Tensor:
    """Log-probabilities ``[*, T]`` of ``index``, without a table of all log-probabilities.

    Args:
        logits: ``[*, T, V]``.
        index: int64 ``[*, T]``, below V.
    """
    chosen = logits.gather(-1, index.unsqueeze(-1)).squeeze(-1)
    return chosen - torch.logsumexp(logits, -1)


#: Elsewhere these variants differ in memory use; here they are the same function.
naive_method = less_efficient_method = efficient_method
