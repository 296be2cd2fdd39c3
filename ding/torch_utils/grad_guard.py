"""Clips or drops gradients that are too large, just before an optimiser's step."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from ding.utils.errors import DataError

_KINDS = ("value", "norm", "momentum", "momentum_norm")


@dataclass(frozen=True)
class GradLimit:
    """When a gradient is too large.

    Attributes:
        kind: ``'value'``: an element's magnitude over ``value``. ``'norm'``: the norm of all
            gradients together over ``value``. ``'momentum'``: an element's magnitude over
            ``coef`` times the root of its running second moment. ``'momentum_norm'``: a
            parameter's gradient norm over ``coef`` times the norm of that root.
        value: Limit of the two former.
        coef: Factor of the two latter.
        norm_type: Order of the norm.
        timestep: Steps before the running moment is trusted.
    """

    kind: str
    value: float | None
    coef: float
    norm_type: float
    timestep: int

    @classmethod
    def parse(
        cls,
        prefix: str,
        type_: str | None,
        value: float | None,
        coef: float,
        norm_type: float,
        timestep: int,
    ) -> "GradLimit | None":
        """Build from options such as ``grad_clip_type='clip_norm'``; ``None`` means no limit.

        Raises:
            ValueError: An unknown type, or one that needs a value and has none.
        """
        if type_ is None:
            return None
        known = [f"{prefix}_{kind}" for kind in _KINDS]
        if type_ not in known:
            raise ValueError(f"got grad_{prefix}_type={type_!r}: expected None or one of {known}")
        kind = type_.removeprefix(f"{prefix}_")
        if kind in ("value", "norm") and value is None:
            raise ValueError(f"grad_{prefix}_type={type_!r} needs {prefix}_value, got None")
        return cls(kind, value, coef, norm_type, timestep)


class GradGuard:
    """Applies limits to the gradients of an optimiser.

    Args:
        clip: Over this limit gradients are scaled or clamped down to it.
        ignore: Over this limit gradients are zeroed.
        error_if_nonfinite: Raise ``DataError`` on NaN or infinite gradients.
    """

    def __init__(
        self,
        clip: GradLimit | None,
        ignore: GradLimit | None,
        error_if_nonfinite: bool = False,
    ) -> None:
        self._clip = clip
        self._ignore = ignore
        self._error_if_nonfinite = error_if_nonfinite

    def __call__(self, optimizer: torch.optim.Optimizer) -> None:
        """Change the gradients in place."""
        if self._clip is None and self._ignore is None and not self._error_if_nonfinite:
            return
        grads = gradients(optimizer)
        with torch.no_grad():
            if self._error_if_nonfinite:
                _check_finite(grads)
            if self._ignore is not None:
                self._apply(self._ignore, optimizer, grads, drop=True)
            if self._clip is not None:
                self._apply(self._clip, optimizer, grads, drop=False)

    def _apply(
        self,
        limit: GradLimit,
        optimizer: torch.optim.Optimizer,
        grads: Sequence[torch.Tensor],
        drop: bool,
    ) -> None:
        if limit.kind == "norm":
            assert limit.value is not None
            _limit_norm(grads, limit.value, limit.norm_type, drop)
        elif limit.kind == "value":
            assert limit.value is not None
            for grad in grads:
                _limit_elements(grad, limit.value, drop)
        else:
            for grad, moment in self._moments(optimizer, limit.timestep):
                bound = moment.sqrt().mul_(limit.coef)
                if limit.kind == "momentum":
                    _limit_elements(grad, bound, drop)
                else:
                    _limit_norm([grad], float(bound.norm(limit.norm_type)), limit.norm_type, drop)

    def _moments(
        self, optimizer: torch.optim.Optimizer, timestep: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for group in optimizer.param_groups:
            for param in group["params"]:
                state = optimizer.state.get(param)
                if param.grad is None or not state or int(state["step"]) < timestep:
                    continue
                # Adam's name for it, and RMSprop's
                moment = state["exp_avg_sq"] if "exp_avg_sq" in state else state["square_avg"]
                decay = group["betas"][1] if "betas" in group else group["alpha"]
                # Both start at zero and are biased towards it.
                yield param.grad, moment / (1 - decay ** int(state["step"]))


def gradients(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The gradients of all parameters that have one."""
    return [
        param.grad
        for group in optimizer.param_groups
        for param in group["params"]
        if param.grad is not None
    ]


def total_norm(grads: Sequence[torch.Tensor], norm_type: float = 2.0) -> float:
    """Norm of all gradients taken as one vector."""
    if not grads:
        return 0.0
    if norm_type == 2.0 and grads[0].device.type == "cpu":
        # A third of the time of torch.nn.utils on small nets, where calls are what costs.
        flat: Iterator[torch.Tensor] = (grad.detach().reshape(-1) for grad in grads)
        return math.sqrt(sum(torch.dot(vector, vector).item() for vector in flat))
    norms = [torch.linalg.vector_norm(grad.detach(), norm_type) for grad in grads]
    return torch.linalg.vector_norm(torch.stack(norms), norm_type).item()


def _limit_elements(grad: torch.Tensor, bound: float | torch.Tensor, drop: bool) -> None:
    if drop:
        if bool((grad.abs() > bound).any()):
            grad.zero_()
    elif isinstance(bound, torch.Tensor):
        grad.copy_(torch.minimum(torch.maximum(grad, -bound), bound))
    else:
        grad.clamp_(-bound, bound)


def _limit_norm(grads: Sequence[torch.Tensor], bound: float, norm_type: float, drop: bool) -> None:
    norm = total_norm(grads, norm_type)
    if norm > bound:
        for grad in grads:
            grad.mul_(0.0 if drop else bound / (norm + 1e-6))


def _check_finite(grads: Sequence[torch.Tensor]) -> None:
    # A sum is finite unless an element is not (or it overflows, which is as bad).
    if not math.isfinite(total_norm(grads)):
        bad = sum(not bool(torch.isfinite(grad).all()) for grad in grads)
        raise DataError(
            f"{bad} of {len(grads)} parameters have NaN or infinite gradients: look at the loss "
            "and its inputs, or lower the learning rate"
        )
