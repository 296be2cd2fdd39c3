"""Optimisers that limit gradients, gradient norms, and weight decay groups."""

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from ding.torch_utils.fused_adam import FusedAdam
from ding.torch_utils.grad_guard import GradGuard, gradients, total_norm
from ding.torch_utils.gradients import PCGrad
from ding.utils.types import State

if TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = [
    "Adam",
    "PCGrad",
    "RMSprop",
    "calculate_grad_norm",
    "calculate_grad_norm_without_bias_two_norm",
    "configure_weight_decay",
]

#: Re-evaluates the model and returns the loss.
Closure: TypeAlias = Callable[[], float]
Loss: TypeAlias = float | None
#: A parameter group: parameters with their settings.
_Group: TypeAlias = dict[str, Any]
#: Either parameters, pairs of names and parameters, or groups.
_Entries: TypeAlias = list[Any]
_FUSED_ON_CPU = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 4)


@functools.cache
def _plain(method: Callable[..., object]) -> Callable[..., Any]:
    """A method of a torch optimiser without torch's wrappers.

    The first call of the wrappers imports torch's compiler, which takes as long as importing torch
    itself; each later call costs a few microseconds.
    """
    return inspect.unwrap(method)


def _unprofiled(step: Callable[..., Loss]) -> Callable[..., Any]:
    """Skip torch's profiler annotation of each step, which takes as long as a small step.

    Step hooks are still called.
    """
    profiled = torch.optim.Optimizer.profile_hook_step(step)

    @functools.wraps(step)
    def call(self: torch.optim.Optimizer, closure: Closure | None = None) -> Loss:
        has_hooks = (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _global_optimizer_pre_hooks
            or _global_optimizer_post_hooks
        )
        return (profiled if has_hooks else step)(self, closure)

    call.hooked = True  # type: ignore[attr-defined]
    return call


class _Guarded(torch.optim.Optimizer):
    """Base of the optimisers below: limits on gradients, and methods without torch's wrappers."""

    _guard: GradGuard

    def get_grad(self) -> float:
        """Norm of all current gradients as one vector."""
        return total_norm(gradients(self), self._guard.norm_type)

    def _guarded_step(self, update: Callable[..., object], closure: Closure | None) -> Loss:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            self._guard(self)
            update(self)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    param.grad = torch.zeros_like(param.grad)

    def add_param_group(self, param_group: _Group) -> None:
        _plain(torch.optim.Optimizer.add_param_group)(self, param_group)

    def state_dict(self) -> State:
        return _plain(torch.optim.Optimizer.state_dict)(self)

    def load_state_dict(self, state_dict: State) -> None:
        _plain(torch.optim.Optimizer.load_state_dict)(self, state_dict)

    def __getstate__(self) -> State:
        # torch's method returns only its own attributes.
        return {**super().__getstate__(), "_guard": self._guard}


class Adam(torch.optim.Adam, _Guarded):
    """``torch.optim.Adam`` with its fused kernel and limits on gradients.

    Args:
        optim_type: ``'adam'`` (weight decay is added to the gradient) or ``'adamw'`` (decoupled
            weight decay).
        limits: ``grad_clip_type`` (``None``, ``'clip_value'``, ``'clip_norm'``,
            ``'clip_momentum'`` or ``'clip_momentum_norm'``; see `GradLimit`) with
            ``clip_value``, ``clip_coef=5``, ``clip_norm_type=2.0`` and
            ``clip_momentum_timestep=100``; the same as ``grad_ignore_type='ignore_…'`` with
            ``ignore_value`` and so on, which zeroes gradients beyond the limit;
            ``grad_norm_type``, the order of the norm that ``get_grad`` returns, by default 2; and
            ``error_if_nonfinite``, which raises ``DataError`` on NaN or infinite gradients.

    Raises:
        ValueError: A type is unknown, or a limit lacks its value.
    """

    _fused: FusedAdam | None = None

    def __init__(
        self,
        params: "ParamsT",
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        optim_type: str = "adam",
        **limits: Any,
    ) -> None:
        if optim_type not in ("adam", "adamw"):
            raise ValueError(f"got optim_type={optim_type!r}: expected 'adam' or 'adamw'")
        guard = GradGuard(**limits)
        params = _read_groups(params)
        super().__init__(
            params,
            lr=lr,
            betas=(betas[0], betas[1]),
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            fused=True if _can_fuse(params) else None,
        )
        self._guard = guard
        if optim_type == "adamw":
            # Hide the decay from torch, which would add it to the gradient.
            for group in self.param_groups:
                group["decoupled_decay"] = group.pop("weight_decay")
                group["weight_decay"] = 0

    @_unprofiled
    def step(self, closure: Closure | None = None) -> Loss:
        return self._guarded_step(_adam_update, closure)


class RMSprop(torch.optim.RMSprop, _Guarded):
    """``torch.optim.RMSprop`` with limits on gradients; ``limits`` as in `Adam`."""

    def __init__(
        self,
        params: "ParamsT",
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        **limits: Any,
    ) -> None:
        guard = GradGuard(**limits)
        super().__init__(
            params,
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            foreach=True,
        )
        self._guard = guard

    @_unprofiled
    def step(self, closure: Closure | None = None) -> Loss:
        return self._guarded_step(_plain(torch.optim.RMSprop.step), closure)


def _adam_update(optimizer: Adam) -> None:
    for group in optimizer.param_groups:
        if decay := group.get("decoupled_decay"):
            for param in group["params"]:
                if param.grad is not None:
                    param.mul_(1 - group["lr"] * decay)
    if optimizer._fused is not None and optimizer._fused.step(optimizer):
        return
    _plain(torch.optim.Adam.step)(optimizer)
    optimizer._fused = FusedAdam(optimizer) if FusedAdam.applies(optimizer) else None


def calculate_grad_norm(model: torch.nn.Module, norm_type: float = 2) -> float:
    """Norm of all gradients of a model as one vector."""
    grads = [param.grad for param in model.parameters() if param.grad is not None]
    return total_norm(grads, float(norm_type))


def calculate_grad_norm_without_bias_two_norm(model: torch.nn.Module) -> float:
    """L2 norm of the gradients of all parameters except biases."""
    grads = [
        param.grad
        for name, param in model.named_parameters()
        if param.grad is not None and not name.endswith("bias")
    ]
    return total_norm(grads)


def configure_weight_decay(model: torch.nn.Module, weight_decay: float) -> list[_Group]:
    """Parameter groups with weight decay only for weights of linear and similar layers.

    Biases, embeddings and parameters of normalisation layers do not decay.

    Returns:
        Two groups for an optimiser: with ``weight_decay`` and with zero.
    """
    spared = (
        torch.nn.LayerNorm,
        torch.nn.GroupNorm,
        torch.nn.Embedding,
        torch.nn.modules.batchnorm._NormBase,
    )
    decay: dict[int, torch.nn.Parameter] = {}
    keep: dict[int, torch.nn.Parameter] = {}
    for module in model.modules():
        for name, param in module.named_parameters(recurse=False):
            fixed = isinstance(module, spared) or "weight" not in name
            (keep if fixed else decay)[id(param)] = param
    # A tensor shared by an embedding and a linear layer is in both dicts; it must not decay.
    decayed = [param for key, param in decay.items() if key not in keep]
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": list(keep.values()), "weight_decay": 0.0},
    ]


def _read_groups(params: "ParamsT") -> _Entries:
    """The parameters or groups, with iterators replaced by lists."""
    entries = list(params)
    for index, entry in enumerate(entries):
        if isinstance(entry, dict) and not isinstance(entry["params"], torch.Tensor):
            entries[index] = {**entry, "params": list(entry["params"])}
    return entries


def _can_fuse(entries: _Entries) -> bool:
    devices = ("cuda", "cpu") if _FUSED_ON_CPU else ("cuda",)
    tensors: list[torch.Tensor | tuple[str, torch.Tensor]] = []
    for entry in entries:
        members = entry["params"] if isinstance(entry, dict) else entry
        tensors += members if isinstance(members, list) else [members]
    # Named parameters are pairs.
    plain = [entry[1] if isinstance(entry, tuple) else entry for entry in tensors]
    return all(t.device.type in devices and t.is_floating_point() for t in plain)
