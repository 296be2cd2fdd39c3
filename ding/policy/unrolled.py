"""Base of policies that learn from unrolls without a recurrent network."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ding.data import Columns, tree_join, tree_map
from ding.policy._types import Arrays, Lengths, Samples, Sequences
from ding.policy.acting import ActingPolicy
from ding.policy.checks import check_sequences
from ding.policy.sequences import sequence_batch, sequence_columns, sequence_counts
from ding.utils.data import default_collate
from ding.utils.types import Tree


class UnrolledPolicy(ActingPolicy):
    """Base of policies that learn from unrolls of ``T = unroll_len`` consecutive transitions.

    See `ding.policy.sequences` for its columns. ``collect.n_sample``, ``learn.batch_size`` and the
    size of the buffer count unrolls.
    """

    config = dict(
        # Prioritised sampling by the mean one-step error of an unroll.
        priority=False,
        priority_IS_weight=False,
        # Number of transitions in a sample.
        unroll_len=32,
        transition_with_policy_data=True,
        learn=dict(
            update_per_collect=4,
            batch_size=16,
            value_weight=0.5,
            entropy_weight=1e-4,
            # Weight of longer corrections, as λ in GAE.
            lambda_=0.95,
            # None, 'clip_norm' or 'clip_value', with the bound `clip_value`.
            grad_clip_type=None,
            ignore_done=False,
        ),
        other=dict(replay_buffer=dict(replay_buffer_size=1000, max_use=16)),
    )

    _discount_key = "learn.discount_factor"
    _transition_outputs = ("logit",)
    _explorer = "multinomial_sample"
    _collect_options = _eval_options = {"mode": "compute_actor"}

    def _get_unroll_len(self) -> int:
        return self._cfg.unroll_len

    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        # Without overlap: each step must be weighted once, by V-trace's or Retrace's ratio only.
        return sequence_columns(columns, lengths, self._get_unroll_len(), overlap=False)

    def _count_train_samples(self, lengths: np.ndarray) -> np.ndarray:
        return sequence_counts(lengths, self._get_unroll_len())

    def _batch(self, data: Samples) -> Sequences:
        """A batch of B unrolls, time first: `sequence_batch`, plus ``discount`` ``[T, B]`` of the
        value after each transition; ``weight`` is ``[T, B]`` with mean 1, or None."""
        cfg = self._cfg
        batch: Any = sequence_batch(
            _from_lists(data, self._transition_outputs),
            self._device,
            cfg.priority,
            cfg.priority_IS_weight,
            cfg.learn.get("ignore_done", False),
        )
        batch["action"] = self._shaped_action(batch["action"], leading=2)
        mask, weight = batch["mask"], batch["weight"]
        # At padding 1, which passes the value of `with_last_values` on backwards.
        batch["discount"] = torch.where(
            mask > 0, cfg.learn.discount_factor * (1 - batch["done"]), 1.0
        )
        if bool(mask.all()):
            batch["weight"] = None if weight is None else weight.expand(mask.shape)
        else:
            shares = mask / mask.mean()
            batch["weight"] = shares if weight is None else shares * weight
        return batch

    def _check_batch(self, batch: Sequences) -> None:
        check_sequences(type(self).__name__, batch)

    def _sample_count(self, batch: Sequences) -> float:
        """Number of transitions without padding, over which ``weight`` makes losses a mean."""
        return batch["mask"].sum().item()


def flat_steps(tree: Tree) -> Tree:
    """Flatten ``[T, B, ...]`` to ``[T * B, ...]``, the shape of network inputs."""
    return tree_map(lambda leaf: leaf.flatten(0, 1), tree)


def with_last_values(value: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Replace values at padding by the value after the last transition.

    Args:
        value: ``[T + 1, B]``.
        mask: ``[T, B]``, 0 at padding.
    """
    if bool(mask.all()):
        return value
    length = mask.sum(0, keepdim=True).long()
    last = value.gather(0, length)
    return torch.cat([torch.where(mask > 0, value[:-1], last), last])


def piece_priority(batch: Sequences, value: torch.Tensor) -> torch.Tensor:
    """Mean absolute one-step error of the values ``[T + 1, B]`` of each unroll, ``[B]``."""
    error = batch["reward"] + batch["discount"] * value[1:] - value[:-1]
    return (error.abs() * batch["mask"]).sum(0) / batch["mask"].sum(0)


def _from_lists(data: Samples, outputs: tuple[str, ...]) -> Samples:
    """Convert rows of lists to a batch of unrolls; other data stays unchanged."""
    if isinstance(data, Mapping | Columns) or not isinstance(data[0].get("reward"), list):
        return data
    names = [*("obs", "next_obs", "action", "reward", "done"), *outputs]
    names += [name for name in ("IS", "priority_IS") if name in data[0]]
    rows = [{name: row[name] for name in names} for row in data]
    collated = dict(default_collate(rows, cat_1dim=False))
    batch = {
        name: tree_map(lambda leaf: torch.stack(leaf, 1) if isinstance(leaf, list) else leaf, col)
        for name, col in collated.items()
    }
    reward, action, done = batch["reward"], batch["action"], batch["done"].bool()
    if not action.is_floating_point() and action.shape[2:] == (1,):
        action = action.squeeze(-1)
    # Steps after an episode's end are padding.
    null = done.cumsum(1) > done
    return {
        **batch,
        "obs": tree_join(
            lambda pair: torch.cat([pair[0], pair[1][:, -1:]], dim=1),
            [batch["obs"], batch.pop("next_obs")],
        ),
        "action": action,
        "reward": reward.reshape(done.shape) * ~null,
        "done": done & ~null,
        "null": null,
    }
