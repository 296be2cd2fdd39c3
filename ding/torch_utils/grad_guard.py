"""Clips or drops large gradients before an optimiser's step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ding.utils.errors import DataError

_KINDS = ("value", "norm", "momentum", "momentum_norm")


@dataclass(frozen=True)
class GradLimit:
    """A limit on gradients.

    Attributes:
        kind: Quantity and limit. ``'value'``: the magnitude of each element, ``value``. ``'norm'``:
            the norm of all gradients together, ``value``. ``'momentum'``: the magnitude of each
            element, ``coef`` times the root of its running second moment. ``'momentum_norm'``: the
            norm of each parameter's gradient, ``coef`` times the norm of that root.
        norm_type: Order of the norm.
        timestep: Number of steps before limits from the running moment apply.
        drop: Whether gradients beyond the limit are set to zero, or clipped.
    """

    kind: str
    value: float
    coef: float
    norm_type: float
    timestep: int
    drop: bool


def limit_of(
    verb: str, type_: str | None, value: float | None, coef: float, norm_type: float, timestep: int
) -> list[GradLimit]:
    """The limit of options such as ``grad_clip_type='clip_norm'``; empty without a type.

    Args:
        verb: ``clip`` or ``ignore``.

    Raises:
        ValueError: The type is unknown, or needs a value and has none.
    """
    if type_ is None:
        return []
    known = [f"{verb}_{kind}" for kind in _KINDS]
    if type_ not in known:
        raise ValueError(f"got grad_{verb}_type={type_!r}: expected None or one of {known}")
    kind = type_.removeprefix(f"{verb}_")
    if value is None and kind in ("value", "norm"):
        raise ValueError(f"grad_{verb}_type={type_!r} needs {verb}_value, got None")
    return [GradLimit(kind, value or 0.0, coef, norm_type, timestep, drop=verb == "ignore")]


class GradGuard:
    """Applies limits to the gradients of an optimiser: first drops, then clips them.

    The options are those of `ding.torch_utils.Adam`; see `GradLimit`.
    """

    def __init__(
        self,
        grad_clip_type: str | None = None,
        clip_value: float | None = None,
        clip_coef: float = 5,
        clip_norm_type: float = 2.0,
        clip_momentum_timestep: int = 100,
        grad_norm_type: float | None = None,
        grad_ignore_type: str | None = None,
        ignore_value: float | None = None,
        ignore_coef: float = 5,
        ignore_norm_type: float = 2.0,
        ignore_momentum_timestep: int = 100,
        error_if_nonfinite: bool = False,
    ) -> None:
        clip = (grad_clip_type, clip_value, clip_coef, clip_norm_type, clip_momentum_timestep)
        ignore = (grad_ignore_type, ignore_value, ignore_coef, ignore_norm_type)
        dropping = limit_of("ignore", *ignore, ignore_momentum_timestep)
        self._limits = dropping + limit_of("clip", *clip)
        self._error_if_nonfinite = error_if_nonfinite
        #: Order of the norm that optimisers report.
        self.norm_type = 2.0 if grad_norm_type is None else grad_norm_type

    def __call__(self, optimizer: torch.optim.Optimizer) -> None:
        """Clip or drop the gradients in place.

        Raises:
            DataError: Gradients are NaN or infinite, and ``error_if_nonfinite`` is set.
        """
        if not self._limits and not self._error_if_nonfinite:
            return
        grads = gradients(optimizer)
        with torch.no_grad():
            if self._error_if_nonfinite:
                _check_finite(grads)
            for limit in self._limits:
                _apply(limit, optimizer, grads)


def _apply(limit: GradLimit, optimizer: torch.optim.Optimizer, grads: list[torch.Tensor]) -> None:
    if limit.kind == "norm":
        _limit_norm(grads, limit.value, limit)
    elif limit.kind == "value":
        for grad in grads:
            _limit_elements(grad, limit.value, limit.drop)
    else:
        for grad, moment in _moments(optimizer, limit.timestep):
            bound = moment.sqrt().mul_(limit.coef)
            if limit.kind == "momentum":
                _limit_elements(grad, bound, limit.drop)
            else:
                _limit_norm([grad], float(bound.norm(limit.norm_type)), limit)


def _moments(
    optimizer: torch.optim.Optimizer, timestep: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Gradients with their running second moments."""
    for group in optimizer.param_groups:
        for param in group["params"]:
            state = optimizer.state.get(param)
            if param.grad is None or not state or int(state["step"]) < timestep:
                continue
            # The names in Adam and RMSprop.
            moment = state["exp_avg_sq"] if "exp_avg_sq" in state else state["square_avg"]
            decay = group["betas"][1] if "betas" in group else group["alpha"]
            # Bias correction: the running moment starts at zero.
            yield param.grad, moment / (1 - decay ** int(state["step"]))


def gradients(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """All gradients of an optimiser's parameters that are not None."""
    params = [param for group in optimizer.param_groups for param in group["params"]]
    return [param.grad for param in params if param.grad is not None]


def total_norm(grads: list[torch.Tensor], norm_type: float = 2.0) -> float:
    """Norm of all gradients as one vector."""
    if not grads:
        return 0.0
    norms = torch._foreach_norm(grads, norm_type)
    if norm_type == 2.0 and grads[0].device.type == "cpu":
        # On small networks, calls dominate the time: these are fewer and cheaper.
        return math.hypot(*(norm.item() for norm in norms))
    return torch.linalg.vector_norm(torch.stack(norms), norm_type).item()


def _limit_elements(grad: torch.Tensor, bound: float | torch.Tensor, drop: bool) -> None:
    if drop:
        if bool((grad.abs() > bound).any()):
            grad.zero_()
    elif isinstance(bound, torch.Tensor):
        grad.copy_(torch.minimum(torch.maximum(grad, -bound), bound))
    else:
        grad.clamp_(-bound, bound)


def _limit_norm(grads: list[torch.Tensor], bound: float, limit: GradLimit) -> None:
    norm = total_norm(grads, limit.norm_type)
    if norm > bound:
        torch._foreach_mul_(grads, 0.0 if limit.drop else bound / (norm + 1e-6))


def _check_finite(grads: list[torch.Tensor]) -> None:
    # The norm is finite unless an element is not, or it overflows, which counts as well.
    if not math.isfinite(total_norm(grads)):
        bad = sum(not bool(torch.isfinite(grad).all()) for grad in grads)
        raise DataError(
            f"{bad} of {len(grads)} parameters have NaN or infinite gradients: look at the loss "
            "and its inputs, or lower the learning rate"
        )
