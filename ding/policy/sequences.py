"""Sequences of transitions as training samples, for policies with recurrent networks.

A sample contains ``burnin + length`` consecutive steps of one trajectory: in the burn-in, the
network's state is updated to its current weights (Kapturowski et al. 2019). In columns, time is the
second dimension; in batches, the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ding.data import tree_join, tree_map, tree_take
from ding.data.tree import tree_leaves
from ding.policy._types import Arrays, Samples
from ding.policy.checks import wrong_shape
from ding.policy.common_utils import as_batch, sample_weights
from ding.utils.data.collate_fn import STATE_KEYS
from ding.utils.types import Tree

#: Columns with one value per sequence; all others have a time dimension.
PER_SEQUENCE = frozenset(
    {
        *STATE_KEYS,
        *("collect_iter", "seed", "weight", "IS", "priority_IS", "priority", "use", "staleness"),
        *("replay_unique_id", "replay_buffer_idx", "is_expert"),
    }
)


#: Columns with one number per step.
_PER_STEP = frozenset({"reward", "done", "null", "eps"})


@dataclass(frozen=True, slots=True)
class SequenceWindows:
    """The rows of consecutive trajectories that form each sequence.

    Attributes:
        rows: int64 ``[n, burnin + length]``; at padding, any row of the same trajectory.
        null: bool, the same shape: True at padding.
        first: int64 ``[n]``, the first row that is not padding; its state is the initial one.
    """

    rows: np.ndarray
    null: np.ndarray
    first: np.ndarray


def sequence_counts(lengths: np.ndarray, length: int) -> np.ndarray:
    """Number of sequences of each trajectory."""
    return np.maximum(-(-np.asarray(lengths) // length), 1)


def sequence_windows(
    lengths: np.ndarray, length: int, burnin: int = 0, overlap: bool = True
) -> SequenceWindows:
    """Cut trajectories into sequences so that each step is trained on.

    The trained parts follow each other without gaps; the last one of a trajectory ends with it and
    may overlap the part before it. A trajectory shorter than ``length`` is padded at the end;
    without `overlap`, each shorter last part is padded as well, and no step is in two sequences.
    The ``burnin`` steps before a trained part are padding as far as the trajectory lacks them.

    Args:
        lengths: int64 ``[n_traj]``, lengths of the consecutive trajectories.
        length: Number of trained steps.
        burnin: Number of steps before them.
        overlap: Whether the last sequence may overlap the one before it.
    """
    lengths = np.asarray(lengths)
    counts = sequence_counts(lengths, length)
    of_traj = np.repeat(np.arange(len(lengths)), counts)
    number = np.arange(len(of_traj)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = (np.cumsum(lengths) - lengths)[of_traj]
    stop = begin + lengths[of_traj]
    start = begin + number * length
    if overlap:
        start = np.maximum(np.minimum(start, stop - length), begin)
    rows = start[:, None] + np.arange(-burnin, length)
    null = rows >= stop[:, None]
    warms_up = start - burnin >= begin
    null[:, :burnin] |= ~warms_up[:, None]
    first = np.where(warms_up, start - burnin, start)
    return SequenceWindows(np.clip(rows, begin[:, None], stop[:, None] - 1), null, first)


def sequence_columns(
    columns: Arrays,
    lengths: np.ndarray,
    length: int,
    burnin: int = 0,
    overlap: bool = True,
) -> Arrays:
    """Training samples of trajectories; arguments as of `sequence_windows`.

    Args:
        columns: Transitions ``[N, ...]`` of consecutive trajectories, in time, with ``obs``,
            ``next_obs``, ``reward`` and ``done``; optionally states (``prev_state``).

    Returns:
        Columns ``[n, T, ...]`` with T = ``burnin + length``, zero reward and no ``done`` at
        padding; bool ``null`` ``[n, T]``, true at padding. ``obs`` has ``T + 1`` steps: the last
        transition's next observation replaces ``next_obs``. States are those before the first step
        that is not padding, ``[n, ...]``.
    """
    windows = sequence_windows(lengths, length, burnin, overlap)
    rows, null = windows.rows, windows.null
    out: Arrays = {}
    for name, column in columns.items():
        if name in PER_SEQUENCE:
            out[name] = tree_take(column, windows.first)
        elif name not in ("obs", "next_obs"):
            out[name] = tree_map(lambda leaf: leaf.take(rows, axis=0), column)
    out["obs"] = tree_join(
        lambda pair: _joined(pair[0], pair[1], windows), [columns["obs"], columns["next_obs"]]
    )
    extra = [1] * (out["reward"].ndim - null.ndim)
    out["reward"] = np.where(null.reshape(*null.shape, *extra), np.float32(0), out["reward"])
    out["done"] = out["done"] & ~null
    out["null"] = null
    return out


def _joined(obs: np.ndarray, next_obs: np.ndarray, windows: SequenceWindows) -> np.ndarray:
    rows = np.concatenate([windows.rows, windows.rows[:, -1:]], axis=1)
    joined = obs.take(rows, axis=0)
    final = windows.null.shape[1] - 1 - np.argmin(windows.null[:, ::-1], axis=1)
    sequence = np.arange(len(rows))
    joined[sequence, final + 1] = next_obs[rows[sequence, final]]
    return joined


def sequence_batch(
    data: Samples,
    device: str = "cpu",
    use_priority: bool = False,
    use_priority_IS_weight: bool = False,
    ignore_done: bool = False,
) -> Arrays:
    """Convert samples to a batch of sequences, time first.

    Args:
        data: Samples of `sequence_columns`: columns, a list of rows, or a dict. Without ``null``
            there is no padding.

    Returns:
        ``obs`` float32 ``[T + 1, B, ...]``; ``reward``, ``done`` and ``mask`` (0 at padding)
        float32 ``[T, B]``; ``weight`` ``[B]`` or None; the other columns ``[T, B, ...]``,
        except those of `PER_SEQUENCE`, which are ``[B, ...]``.
    """
    batch = _flat_numbers(as_batch(data, ("obs", "reward", "done"), device))
    out = {
        name: column
        if name in PER_SEQUENCE
        else tree_map(lambda leaf: leaf.transpose(0, 1).contiguous(), column)
        for name, column in batch.items()
    }
    out["obs"] = tree_map(lambda leaf: leaf.float(), out["obs"])
    out["reward"] = out["reward"].float()
    out["done"] = out["done"].float() * (0.0 if ignore_done else 1.0)
    null = out.pop("null", None)
    out["mask"] = torch.ones_like(out["done"]) if null is None else 1.0 - null.float()
    out["weight"] = sample_weights(batch, use_priority, use_priority_IS_weight)
    # Other columns are checked when a layout first occurs; these are combined before that.
    steps, size = next(tree_leaves(out["obs"])).shape[:2]
    for name, shape in (
        ("done", (steps - 1, size)),
        ("mask", (steps - 1, size)),
        ("weight", (size,)),
    ):
        if out[name] is not None and out[name].shape != shape:
            raise wrong_shape("sequences", name, out[name], shape)
    return out


def _flat_numbers(batch: Arrays) -> Arrays:
    """Reshape numbers per sequence to ``[B]`` and numbers per step to ``[B, T]``."""
    for name, column in batch.items():
        leading = 1 if name in PER_SEQUENCE else 2 if name in _PER_STEP else None
        if leading is not None and getattr(column, "shape", ())[leading:] == (1,):
            batch[name] = column.squeeze(-1)
    return batch


def stack_states(states: Sequence[Tree], like: Tree) -> Tree:
    """Stack states to one tree of tensors ``[B, ...]``; None, an initial state, becomes zeros.

    Args:
        states: Trees of tensors, nested dicts of one structure, or None.
        like: Any state, for its structure.
    """
    if isinstance(like, Mapping):
        return {
            name: stack_states([None if s is None else s[name] for s in states], part)
            for name, part in like.items()
        }
    return torch.stack([torch.zeros_like(like) if s is None else s for s in states])
