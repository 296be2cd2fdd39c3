"""Checks a data set against a policy before training."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike

from ding.data.arrays import Column, Items
from ding.data.columns import Columns
from ding.data.tree import tree_paths
from ding.utils import POLICY_REGISTRY
from ding.utils.default_helper import sizes_of
from ding.utils.errors import DataError
from ding.utils.types import Settings

_BOUNDED = ("regression", "reparameterization")
#: Rounding tolerance for the bounds of actions.
_TOLERANCE = 1e-4


def check_transitions(data: Items, required: Sequence[str], policy: Settings, source: str) -> None:
    """Check that a data set has the columns, shapes and values that a policy needs.

    Observations of several arrays, hybrid actions and rows of different shapes are not checked.

    Args:
        required: Columns that the policy learns from.
        policy: The policy's config, whose ``model`` has ``obs_shape`` and ``action_shape``.
        source: Origin of the data, for messages.

    Raises:
        DataError: A column is missing or has an invalid shape or value.
    """
    columns = data.columns_or_none() if isinstance(data, Columns) else None
    if columns is None:
        _require(required, [row.keys() for row in data], source)
        return
    _require(required, [columns.keys()], source)
    model = policy.get("model") or {}
    for name in ("obs", "next_obs"):
        if name in required:
            _check_obs(columns[name], model.get("obs_shape"), name, source)
    for name in required:
        _check_finite(columns[name], name, source)
    if "action" in required and not isinstance(columns["action"], Mapping):
        _check_action(np.asarray(columns["action"]), policy, source)


def _require(required: Sequence[str], rows: Sequence[Collection[str]], source: str) -> None:
    for i, keys in enumerate(rows):
        missing = [name for name in required if name not in keys]
        if missing:
            where = f"item {i} of {source}" if len(rows) > 1 else source
            raise DataError(
                f"{where} has no {', '.join(map(repr, missing))}; expected "
                f"{', '.join(required)}, it has {', '.join(sorted(map(str, keys)))}"
            )


def _check_obs(column: Column, shape: object, name: str, source: str) -> None:
    if isinstance(column, Mapping) or isinstance(shape, Mapping) or shape is None:
        return
    wanted = sizes_of(shape)
    if list(column.shape[1:]) != wanted:
        raise DataError(
            f"{name!r} of {source} has the shape {list(column.shape[1:])}; expected {wanted}, by "
            "policy.model.obs_shape"
        )


def _check_finite(column: Column, name: str, source: str) -> None:
    for path, leaf in tree_paths({name: column}):
        if isinstance(leaf, np.ndarray | torch.Tensor) and np.asarray(leaf).dtype.kind == "f":
            bad, found = ~np.isfinite(_flat(leaf)).all(1), "has NaN or infinite values"
            _refuse(bad, leaf, ".".join(path), source, found, "finite numbers")


def _check_action(action: np.ndarray, policy: Settings, source: str) -> None:
    model = policy.get("model") or {}
    shape = model.get("action_shape")
    space = model.get("action_space") or policy.get("action_space")
    if policy.get("multi_agent") or isinstance(shape, Mapping) or shape is None:
        return
    sizes = sizes_of(shape)
    is_bounded = policy.get("continuous") or space in _BOUNDED or _has_no_choices(policy)
    is_continuous = is_bounded or space == "continuous"
    width = math.prod(sizes) if is_continuous else len(sizes)
    if math.prod(action.shape[1:]) != width:
        raise DataError(
            f"'action' of {source} has the shape {list(action.shape[1:])}; expected {width} "
            "numbers, by policy.model.action_shape"
        )
    if is_bounded:
        beyond = (np.abs(_flat(action)) > 1 + _TOLERANCE).any(1)
        wanted = (
            "numbers in [-1, 1]. Divide them by the bounds of the environment's actions, and set "
            "env.act_scale"
        )
        _refuse(beyond, action, "action", source, "is out of bounds", wanted)
    for k, size in enumerate([] if is_continuous else sizes):
        choice = _flat(action)[:, k]
        wrong = (choice < 0) | (choice >= size) | (choice != np.floor(choice))
        wanted = f"whole numbers from 0 to {size - 1}, by policy.model.action_shape"
        _refuse(wrong, choice, "action", source, "is no index of an action", wanted)


def _has_no_choices(policy: Settings) -> bool:
    type_ = policy.get("type")
    known = isinstance(type_, str) and type_ in POLICY_REGISTRY
    actions = getattr(POLICY_REGISTRY.get(str(type_)), "actions", ()) if known else ()
    return "continuous" in actions and "discrete" not in actions


def _refuse(
    bad: np.ndarray, rows: ArrayLike, name: str, source: str, what: str, wanted: str
) -> None:
    """Raise a `DataError` about the first bad row, if there is one; `bad` is bool [n]."""
    if not bad.any():
        return
    first = int(bad.argmax())
    row = np.asarray(np.asarray(rows)[first])
    shown = ", ".join([f"{value:g}" for value in row.flat[:8]] + ["..."] * (row.size > 8))
    raise DataError(
        f"{name!r} of {source} {what} in {int(bad.sum())} of {len(bad)} transitions, first in "
        f"number {first}: {f'[{shown}]' if row.ndim else shown}; expected {wanted}"
    )


def _flat(rows: ArrayLike) -> np.ndarray:
    """An array ``[n, ...]`` as ``[n, k]``."""
    array = np.asarray(rows)
    return array.reshape(len(array), math.prod(array.shape[1:]))
