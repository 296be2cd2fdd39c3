"""The per-environment API of a policy, over its batched cores."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ding.data import Columns, tree_map, tree_rows
from ding.envs import is_truncated
from ding.policy._types import Arrays, Lengths, Obs, Output, Row, Tree
from ding.policy.common_utils import as_tensor, flatten_numbers, sample_columns
from ding.rl_utils import get_train_sample
from ding.utils.data import default_collate, default_decollate
from ding.utils.data.collate_fn import STATE_KEYS


class RowAdapter:
    """Dicts of environments in, dicts of environments out; one stacked call in between.

    What the class that mixes this in provides is described there.
    """

    _transition_outputs: tuple[str, ...]
    _collect_columns: Callable[..., Output]
    _eval_columns: Callable[..., Output]
    _get_train_columns: Callable[[Arrays, Lengths], Arrays]
    _get_unroll_len: Callable[[], int]
    _cuts_samples: Callable[[], bool]
    _recurrent: bool

    def _forward_collect(
        self, data: Mapping[int, Obs], *args: Any, **kwargs: Any
    ) -> dict[int, Output]:
        output = self._collect_columns(_collate_obs(data), *args, **kwargs, **self._ids(data))
        return _rows_of(data, output)

    def _process_transition(self, obs: Obs, policy_output: Output, timestep: Any) -> Row:
        return {
            "obs": obs,
            "next_obs": timestep.obs,
            **{name: policy_output[name] for name in ("action", *self._transition_outputs)},
            "reward": timestep.reward,
            # A truncated episode continues unobserved: its value is bootstrapped.
            "done": bool(timestep.done) and not is_truncated(timestep.info),
        }

    def _get_train_sample(self, transitions: Sequence[Row]) -> Sequence[Row]:
        absent = {name for name, value in transitions[0].items() if value is None}
        rows = [{k: v for k, v in row.items() if k not in absent} for row in transitions]
        columns = flatten_numbers(Columns.from_rows(rows).columns)
        columns = tree_map(lambda c: c.numpy() if isinstance(c, torch.Tensor) else c, columns)
        columns["reward"] = columns["reward"].astype(np.float32, copy=False)
        lengths = np.array([len(transitions)])
        samples = sample_columns(self._get_train_columns(columns, lengths))
        if self._cuts_samples():
            return samples
        return get_train_sample(list(samples), self._get_unroll_len())

    def _forward_eval(self, data: Mapping[int, Obs]) -> dict[int, Output]:
        return _rows_of(data, self._eval_columns(_collate_obs(data), **self._ids(data)))

    def _ids(self, data: Mapping[int, Obs]) -> dict[str, list[int]]:
        return {"env_ids": list(data)} if self._recurrent else {}


def _collate_obs(data: Mapping[int, Obs]) -> Tree:
    return default_collate(list(data.values()), cat_1dim=False)


def _rows_of(data: Mapping[int, Obs], output: Output) -> dict[int, Output]:
    """A batch's output by environment, in tensors."""
    parts = tree_map(as_tensor, output)
    for name in STATE_KEYS:
        if name in parts:
            parts[name] = tree_rows(parts[name])
    return dict(zip(data, default_decollate(parts)))
