"""Calls Adam's fused CPU kernel without torch's overhead.

For networks of a few layers, torch spends as much time on building the kernel's argument lists as
in the kernel. The lists only change when the optimiser changes, and are cached here.
"""

import torch

from ding.utils.types import State, Tree

_STATE = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


class FusedAdam:
    """Steps one optimiser as long as its parameters and state stay the same objects.

    Args:
        optimizer: A ``torch.optim.Adam`` for which `applies` returns true.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._state = optimizer.state
        self._size = len(optimizer.state)
        self._lists = [self._gather(optimizer, group) for group in optimizer.param_groups]

    @staticmethod
    def applies(optimizer: torch.optim.Optimizer) -> bool:
        """Whether all parameters are float32 on the CPU, were stepped before and use no extras."""
        # The kernel is not public: without it, `torch.optim.Adam.step` does the same, more slowly.
        if not hasattr(torch, "_fused_adam_"):
            return False
        if getattr(optimizer, "grad_scale", None) is not None:
            return False
        return all(
            group["fused"]
            and not group["maximize"]
            and not isinstance(group["lr"], torch.Tensor)
            and all(
                p.device.type == "cpu" and p.dtype == torch.float32 and optimizer.state.get(p)
                for p in group["params"]
            )
            for group in optimizer.param_groups
        )

    def step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Step, or return false and do nothing if the optimiser has changed."""
        groups = optimizer.param_groups
        if (
            optimizer.state is not self._state
            or len(self._state) != self._size
            or len(groups) != len(self._lists)
        ):
            return False
        grads = [[param.grad for param in group["params"]] for group in groups]
        for given, (params, *_) in zip(grads, self._lists):
            # The kernel needs a gradient for each parameter; torch's own step skips parameters
            # without one.
            if len(given) != len(params) or any(grad is None for grad in given):
                return False
        for group, given, (params, averages, squares, maxima, count, steps) in zip(
            groups, grads, self._lists
        ):
            count.add_(1)
            torch._fused_adam_(
                params,
                given,
                averages,
                squares,
                maxima,
                steps,
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=group["amsgrad"],
                maximize=False,
            )
        return True

    def _gather(self, optimizer: torch.optim.Optimizer, group: State) -> tuple[Tree, ...]:
        states = [optimizer.state[param] for param in group["params"]]
        moments = [[state[key] for state in states if key in state] for key in _STATE]
        # Views of one tensor, so that one operation increments all step counts.
        steps = torch.stack([state["step"] for state in states])
        for state, step in zip(states, steps.unbind()):
            state["step"] = step
        return (list(group["params"]), *moments, steps, list(steps.unbind()))
