"""Data functions that several policies share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ding.data import Columns, as_columns, tree_map, tree_take
from ding.data.arrays import as_tensors, stored_columns
from ding.policy._types import Arrays, Obs, Samples
from ding.rl_utils import nstep_columns
from ding.torch_utils.network import set_noise_mode as _set_noise_mode
from ding.utils.data import default_collate
from ding.utils.errors import ConfigError, DataError
from ding.utils.types import Tree


def set_noise_mode(module: torch.nn.Module, noise_enabled: bool) -> None:
    """Switch the noise of every noisy layer in ``module`` on or off."""
    _set_noise_mode(module, noise_enabled)


def default_preprocess_learn(
    data: Samples,
    use_priority_IS_weight: bool = False,
    use_priority: bool = False,
    use_nstep: bool = False,
    ignore_done: bool = False,
    device: str = "cpu",
) -> Arrays:
    """Convert samples to a batch: a dict of tensors with one leading length B.

    Columns that need no conversion are not copied.

    Args:
        data: Columns, a list of row dicts, or a batch that is already a dict of tensors.
        use_priority_IS_weight: Take ``weight`` from the samples' ``priority_IS`` or ``IS``; needs
            ``use_priority``.
        use_nstep: Return ``reward`` as ``[nstep, B]`` instead of ``[B]``.
        ignore_done: Treat all samples as if the episode continued.
        device: Target device; bytes become floats there, after the transfer.

    Returns:
        At least ``obs`` float32, ``reward`` float32, ``done`` float32 ``[B]`` and ``weight``
        ``[B]`` or ``None``.

    Raises:
        DataError: There are no samples, or they lack ``reward``, ``done`` or the required ``IS``.
        ConfigError: Weights without priorities.
    """
    batch = flatten_numbers(as_batch(data, ("obs", "reward", "done"), device))
    batch["obs"] = tree_map(_float, batch["obs"])
    if "next_obs" in batch:
        batch["next_obs"] = tree_map(_float, batch["next_obs"])
    done = batch["done"]
    batch["done"] = torch.zeros_like(done, dtype=torch.float32) if ignore_done else _float(done)
    reward = _float(batch["reward"])
    if use_nstep:
        # Targets sum over steps: the rewards of each step must be contiguous.
        reward = reward.unsqueeze(0) if reward.dim() == 1 else reward.transpose(0, 1).contiguous()
    batch["reward"] = reward
    batch["weight"] = sample_weights(batch, use_priority, use_priority_IS_weight)
    return batch


def nstep_train_columns(columns: Arrays, lengths: np.ndarray, nstep: int, gamma: float) -> Arrays:
    """Training samples of ``nstep`` rewards each; arguments as of ``Policy._get_train_columns``.

    Returns:
        The columns with ``reward`` ``[N, nstep]``, ``next_obs`` and ``done`` of a window's last
        step, and ``value_gamma`` if ``nstep > 1``.
    """
    if nstep == 1:
        return {**columns, "reward": columns["reward"][:, None]}
    parts = (columns["reward"], columns["done"], columns["next_obs"])
    window = nstep_columns(*parts, lengths, nstep, gamma)
    index = window.pop("next_index")
    return {**columns, **window, "next_obs": tree_take(columns["next_obs"], index)}


def as_batch(data: Samples, required: Sequence[str], device: str = "cpu") -> Arrays:
    """Convert samples to one dict of tensors with a leading length B, on ``device``.

    Args:
        data: Columns, a list of row dicts, or a batch that is already a dict of tensors.
        required: Columns that must exist.

    Raises:
        DataError: There are no samples, they lack a required column, or they are unrolls.
    """
    batch = _batched(data)
    if any(isinstance(batch.get(name), list) for name in ("reward", "done")):
        raise DataError(
            "the samples are unrolls, rows of lists, and this policy learns from single steps: set "
            "policy.collect.unroll_len to 1"
        )
    if device != "cpu":
        batch = {
            name: tree_map(lambda leaf: _moved(leaf, device), col) for name, col in batch.items()
        }
    if not batch.keys() >= set(required):
        missing = [name for name in required if name not in batch]
        raise DataError(f"samples need {missing}, they have {sorted(batch)}")
    return batch


def _batched(data: Samples) -> Arrays:
    if isinstance(data, Mapping):
        return dict(data)
    if len(data) == 0:
        raise DataError("no samples to learn from: got an empty batch")
    columns = data if isinstance(data, Columns) and data.is_columnar else as_columns(_plain(data))
    if columns is None:
        return dict(default_collate(data, cat_1dim=False))
    return columns.collated()


def _plain(rows: Samples) -> list[Arrays]:
    """Rows without entries that cannot become tensors: strings and None."""
    first = rows[0]
    if not isinstance(first, Mapping):
        raise DataError(f"samples must be dicts, got {type(first).__name__}")
    drop = {name for name, value in first.items() if value is None or isinstance(value, str)}
    return [{k: v for k, v in row.items() if k not in drop} for row in rows] if drop else list(rows)


def sample_weights(batch: Arrays, use_priority: bool, use_weight: bool) -> torch.Tensor | None:
    """The weights ``[B]`` of samples, or None; arguments as of `default_preprocess_learn`."""
    if not use_weight:
        return batch.get("weight")
    if not use_priority:
        raise ConfigError("policy.priority_IS_weight=True needs policy.priority=True")
    name = "priority_IS" if "priority_IS" in batch else "IS"
    if name not in batch:
        raise DataError(
            "samples have no importance weights 'IS': policy.priority_IS_weight=True needs a "
            "buffer that gives them, create_config.replay_buffer.type='advanced'"
        )
    return _float(batch[name])


def _moved(leaf: Tree, device: str) -> Tree:
    if isinstance(leaf, list):  # one entry for each of several choices
        return [_moved(part, device) for part in leaf]
    return leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf


def _float(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dtype == torch.float32 else tensor.float()


def single_env_forward_wrapper(forward_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a mode's ``forward``, which takes a dict of environments, for a single environment.

    Args:
        forward_fn: ``policy.eval_mode.forward``, or the collect mode's.

    Returns:
        A function ``(obs) -> action``, both without a batch dimension; the action is an ndarray,
        0-d for a discrete one.

    Example:

        >>> import numpy as np
        >>> from ding.policy import DQNPolicy, single_env_forward_wrapper
        >>> cfg = DQNPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> act = single_env_forward_wrapper(DQNPolicy(cfg).eval_mode.forward)
        >>> act(np.zeros(4, np.float32)).shape
        ()
    """

    def forward(obs: Obs) -> np.ndarray:
        if not isinstance(obs, Mapping | torch.Tensor):
            obs = np.asarray(obs)
        action = forward_fn({0: obs})[0]["action"]
        action = action.detach().cpu().numpy() if isinstance(action, torch.Tensor) else action
        action = np.asarray(action)
        is_index = action.dtype.kind in "iu" and action.shape == (1,)
        return action.reshape(()) if is_index else action

    return forward


#: Columns that are Python scalars in rows; all other arrays become tensors.
_SCALAR_COLUMNS = frozenset({"done", "collect_iter", "traj_flag", "step_id"})

#: Columns with one number per sample that are arrays of shape ``(1,)`` in rows.
_VECTOR_COLUMNS = frozenset({"action", "value", "adv"})

#: Columns with one number per sample, whatever shape they have in rows.
_ONE_NUMBER = frozenset(
    {
        *("reward", "done", "traj_flag", "step_id", "value", "adv", "value_gamma", "weight", "IS"),
        *("collect_iter", "return", "priority_IS", "is_expert", "done_1step"),
    }
)


def sample_columns(columns: Arrays) -> Columns:
    """Samples that are read as tensors, except flags and counters, which are scalars in rows.

    ``action``, ``value`` and ``adv`` with one number per sample become ``[N, 1]``.
    """

    def vectors(col: Tree) -> Tree:
        return col[:, None] if getattr(col, "ndim", 0) == 1 and col.dtype != object else col

    own = {name: tree_map(vectors, columns[name]) for name in columns.keys() & _VECTOR_COLUMNS}
    columns = {**columns, **own}
    if (stored := stored_columns(columns, plain=_SCALAR_COLUMNS)) is not None:
        return Columns.of_stored(stored)
    # For tensors on a GPU, for example.
    return Columns(
        {n: col if n in _SCALAR_COLUMNS else as_tensors(col) for n, col in columns.items()}
    )


def flatten_numbers(columns: Arrays) -> Arrays:
    """Flatten ``[N, 1]`` columns with one number per sample to ``[N]``; others stay unchanged.

    In rows, such a number is a scalar or an array of shape ``(1,)``. An action, or a part of one,
    is one number if it is an index; a float action of one dimension stays ``[N, 1]``.
    """
    flat = dict(columns)
    for name in columns.keys() & _ONE_NUMBER:
        column = columns[name]
        # Checked first since most columns have one dimension; faster than comparing shapes.
        if getattr(column, "ndim", 1) == 2 and column.shape[1] == 1:
            flat[name] = column.squeeze(1)
    if "action" in columns:
        flat["action"] = tree_map(_flat_index, columns["action"])
    return flat


def _flat_index(col: Tree) -> Tree:
    if getattr(col, "ndim", 1) != 2 or col.shape[1] != 1:
        return col
    is_float = col.is_floating_point() if isinstance(col, torch.Tensor) else col.dtype.kind == "f"
    return col if is_float else col.squeeze(1)


def as_tensor(leaf: Tree) -> Tree:
    """Convert an array to a tensor that shares its memory; other values stay unchanged."""
    return torch.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf
