"""Sequences of transitions as training samples, for policies whose networks have a memory.

A sample holds ``burnin + length`` consecutive steps of one trajectory: what comes before the part
that is learned from lets the network's state grow out of its present weights (Kapturowski et al.
2019). In columns time is the second dimension, in batches the first.
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

#: Columns with one value per sequence; all others have a dimension of time.
PER_SEQUENCE = frozenset(
    {
        *STATE_KEYS,
        *("collect_iter", "seed", "weight", "IS", "priority_IS", "priority", "use", "staleness"),
        *("replay_unique_id", "replay_buffer_idx", "is_expert"),
    }
)


#: Columns of one number per step.
_PER_STEP = frozenset({"reward", "done", "null", "eps"})


@dataclass(frozen=True, slots=True)
class SequenceWindows:
    """Which rows of consecutive trajectories make up each sequence.

    Attributes:
        rows: int64 ``[n, burnin + length]``; at padding, some row of the same trajectory.
        null: bool, the same shape: True at padding.
        first: int64 ``[n]``, the first row that is no padding: whose state the network starts with.
    """

    rows: np.ndarray
    null: np.ndarray
    first: np.ndarray


def sequence_counts(lengths: np.ndarray, length: int) -> np.ndarray:
    """How many sequences trajectories of these lengths make."""
    return np.maximum(-(-np.asarray(lengths) // length), 1)


def sequence_windows(
    lengths: np.ndarray, length: int, burnin: int = 0, overlap: bool = True
) -> SequenceWindows:
    """Cut trajectories into sequences so that each step is learned from.

    The learned parts lie end to end; the last of a trajectory ends with it and may begin before the
    one before it ends. A trajectory shorter than ``length`` is followed by padding; without
    `overlap`, so is each last part that is shorter, and no step is in two. The ``burnin``
    steps before a learned part are padding where the trajectory does not have as many.

    Args:
        lengths: int64 ``[n_traj]``, lengths of the trajectories, which follow each other.
        length: Steps that are learned from.
        burnin: Steps before them.
        overlap: Whether the last sequence may begin within the one before it.
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
            ``next_obs``, ``reward`` and ``done``; states may be among them (``prev_state``).

    Returns:
        Columns ``[n, T, ...]`` with T = ``burnin + length``, zero reward and no ``done`` at
        padding; bool ``null`` ``[n, T]``, true there. ``obs`` has one step more, ``T + 1``: what
        the last transition led to, in place of ``next_obs``. States are those before the first step
        that is no padding, ``[n, ...]``.
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
    """Make a batch of sequences, time first.

    Args:
        data: Samples as `sequence_columns` makes them: columns, a list of rows, or a dict. Without
            ``null`` nothing is padding.

    Returns:
        ``obs`` float32 ``[T + 1, B, ...]``; ``reward``, ``done`` and ``mask`` (0 at padding)
        float32 ``[T, B]``; ``weight`` ``[B]`` or None; the other columns ``[T, B, ...]``, but
        those of `PER_SEQUENCE`, which are ``[B, ...]``.
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
    # The rest of it is checked where a layout is first seen; these are combined before that.
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
    """One number per sequence as ``[B]`` and one per step as ``[B, T]``."""
    for name, column in batch.items():
        leading = 1 if name in PER_SEQUENCE else 2 if name in _PER_STEP else None
        if leading is not None and getattr(column, "shape", ())[leading:] == (1,):
            batch[name] = column.squeeze(-1)
    return batch


def stack_states(states: Sequence[Tree], like: Tree) -> Tree:
    """States of a batch as one tree of tensors ``[B, ...]``; None, one that begins, as zeros.

    Args:
        states: Trees of tensors, nested dicts of one structure, or None.
        like: Some state, for its structure.
    """
    if isinstance(like, Mapping):
        return {
            name: stack_states([None if s is None else s[name] for s in states], part)
            for name, part in like.items()
        }
    return torch.stack([torch.zeros_like(like) if s is None else s for s in states])
