"""Rejects invalid numbers before they affect weights: losses that are not finite, wrong shapes.

Torch broadcasts ``[B]`` and ``[B, 1]`` to ``[B, B]``: a loss of such columns is wrong, without an
error. Scalars per sample are therefore flattened to ``[B]`` before they reach a loss
(`flatten_numbers`), and columns of other wrong shapes are rejected by name when a layout occurs for
the first time.
"""

import math
from collections.abc import Callable, Collection, Mapping

import torch

from ding.data.tree import tree_leaves
from ding.utils.errors import DataError


def check_loss(policy: object, loss: float, batch: Mapping[str, object]) -> None:
    """Reject a loss that is NaN or infinite, and name the columns of ``batch`` that are."""
    if math.isfinite(loss):
        return
    bad = sorted(_not_finite(batch))
    cause = (
        f"its batch has NaN or infinite values in {', '.join(bad)}: fix the environment or the "
        "wrapper that they come from"
        if bad
        else "its batch is finite, so the network diverged: lower learn.learning_rate or clip "
        "gradients"
    )
    raise DataError(
        f"{type(policy).__name__}: the loss is {loss}; {cause}. No weights were changed by "
        "this loss"
    )


def _not_finite(batch: Mapping[str, object], path: str = "") -> list[str]:
    names = []
    for name, value in batch.items():
        if isinstance(value, Mapping):
            names += _not_finite(value, f"{path}{name}.")
        elif isinstance(value, torch.Tensor) and not bool(torch.isfinite(value).all()):
            names.append(f"{path}{name}")
    return names


def floats(values: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Scalars for the log, in one transfer if they are on another device."""
    if all(value.is_cpu for value in values.values()):
        return {name: value.item() for name, value in values.items()}  # cheaper than stacking
    return dict(zip(values, torch.stack([value.detach() for value in values.values()]).tolist()))


#: Columns with one number per sample that every policy checks.
_NUMBERS = frozenset(
    {
        *("done", "weight", "value_gamma", "is_expert", "done_1step"),
        *("traj_flag", "step_id", "IS", "priority_IS"),
    }
)
#: Columns of any shape per sample.
_ANY = frozenset({"obs", "next_obs", "next_obs_1step", "action", "logit"})
#: Columns of teams, with one number per agent; actions may be vectors.
PER_AGENT = frozenset({"value", "adv", "return", "action"})
#: Columns with one number per step of a sequence.
_PER_STEP = frozenset({"reward", "done", "mask", "eps", "discount"})
#: Columns with one number per sequence.
_PER_SEQUENCE = frozenset({"is_expert", "IS", "priority_IS"})


def layout_of(batch: Mapping[str, object]) -> tuple[object, ...]:
    """Names, shapes and dtypes of a batch's columns; equal for batches of the same layout."""
    return tuple(
        (name, column.shape, column.dtype)
        if type(column) is torch.Tensor
        else (name, layout_of(column) if isinstance(column, Mapping) else None)
        for name, column in batch.items()
    )


def check_samples(
    policy: str,
    batch: Mapping[str, object],
    nstep: int | None,
    agents: int | None,
    used: Collection[str] = (),
) -> None:
    """Reject samples whose columns have inconsistent shapes.

    Unknown columns may have any shape, since they are custom.

    Args:
        policy: The policy's name, for the message.
        batch: Columns ``[B, ...]``.
        nstep: Rewards are ``[nstep, B]``; ``[B]`` if None.
        agents: Columns of `PER_AGENT` are ``[B, agents, ...]``, with any number of agents if 0; if
            None, values are ``[B]``.
        used: Further columns that the policy uses, with one number per sample.

    Raises:
        DataError: Names the column, its shape and the expected one.
    """
    first = next(tree_leaves(batch["obs"]))
    if not isinstance(first, torch.Tensor):
        return  # observations in the format of a custom network
    size = len(first)

    def wanted(name: str, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        if name == "reward":
            return (size,) if nstep is None else (nstep, size)
        if name == "action" and agents is not None:
            return size, agents or shape[1], *shape[2:]
        if name in _ANY:
            return size, *shape[1:]
        if name in PER_AGENT and name in used and agents is not None:
            return size, agents or shape[1]
        return (size,) if name in _NUMBERS or name in used else None

    _check_shapes(policy, batch, wanted)


def check_sequences(policy: str, batch: Mapping[str, object]) -> None:
    """Reject sequences whose columns have inconsistent shapes; errors as in `check_samples`.

    Args:
        batch: A batch of `sequence_batch`, time first: ``mask`` ``[T, B]``.
    """
    steps, size = next(tree_leaves(batch["obs"])).shape[:2]
    steps -= 1

    def wanted(name: str, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        if name == "obs":
            return steps + 1, size, *shape[2:]
        if name in ("action", "logit"):
            return steps, size, *shape[2:]
        if name in _PER_STEP or (name == "weight" and len(shape) > 1):
            return steps, size
        return (size,) if name in _PER_SEQUENCE or name == "weight" else None

    _check_shapes(policy, batch, wanted)


def _check_shapes(
    policy: str,
    batch: Mapping[str, object],
    wanted: Callable[[str, tuple[int, ...]], tuple[int, ...] | None],
) -> None:
    for name, column in batch.items():
        for leaf in tree_leaves(column):
            if isinstance(leaf, torch.Tensor):
                shape = wanted(name, tuple(leaf.shape))
                if shape is not None and shape != leaf.shape:
                    raise wrong_shape(policy, name, leaf, shape)


def wrong_shape(source: str, name: str, column: torch.Tensor, wanted: tuple[int, ...]) -> DataError:
    """The error for a column with an unexpected shape."""
    return DataError(
        f"{source}: the column {name!r} makes a batch of shape {list(column.shape)}, expected "
        f"{list(wanted)}: give it in this shape, or let the collector make the samples"
    )
