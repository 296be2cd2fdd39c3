"""Files of policy weights that one process publishes and others read."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import torch

from ding.torch_utils.tensor_file import Leaf, read_tensors, write_tensors
from ding.utils.errors import CheckpointError, CheckpointNotFoundError, DataError
from ding.utils.shared_folder import SharedFolder
from ding.utils.types import Json, JsonObject, SavedState, State, Tree

#: The keys on the path to a leaf.
_Path: TypeAlias = tuple[str | int, ...]
_PLAIN = (bool, int, float, str, type(None))


def write_weights(
    folder: SharedFolder, name: str, state: SavedState, facts: Mapping[str, Json]
) -> None:
    """Publish weights under a fixed name, atomically: readers get the old or the new weights.

    Args:
        state: Nested mappings of tensors, arrays, numbers, strings and None.
        facts: Plain JSON: ``policy_iter``, ``envstep``, ``time``, ``learner``.

    Raises:
        DataError: The state contains another type, or the name is invalid.
        CheckpointWriteError: The file cannot be written; the previous weights are unchanged.
    """
    write_tensors(folder.file(name), *weight_tensors(state, facts))


def read_weights(folder: SharedFolder, name: str) -> tuple[State, JsonObject]:
    """Read published weights onto the CPU.

    Returns:
        The state as it was written, and the facts.

    Raises:
        CheckpointNotFoundError: No weights have been published under this name.
        CheckpointError: The file is damaged, or does not contain weights.
        DataError: The name is invalid.
    """
    path = folder.file(name)
    try:
        return grow_weights(*read_tensors(path))
    except FileNotFoundError as error:
        raise CheckpointNotFoundError(f"no weights have been published as {path}") from error
    except OSError as error:
        raise CheckpointError(f"cannot read the weights {path}: {error.strerror}") from error
    except DataError as error:
        raise CheckpointError(f"cannot read the weights {path}: {error}") from error


def weight_tensors(
    state: SavedState, facts: Mapping[str, Json]
) -> tuple[dict[str, Leaf], JsonObject]:
    """Weights as named tensors and arrays, and the metadata that `grow_weights` needs, as plain
    JSON.

    Raises:
        DataError: The state contains another type.
    """
    tensors: dict[str, Leaf] = {}
    tree: list[list[Json]] = []
    for path, leaf in _flat(state, ()):
        if isinstance(leaf, torch.Tensor | np.ndarray):
            key = ".".join(map(str, path))
            while key in tensors:
                key += "_"
            tensors[key] = leaf
            tree.append([path, key])
        elif isinstance(leaf, _PLAIN):
            tree.append([path, None, leaf])
        else:
            # An empty mapping has no leaf from which it could be restored.
            tree.append([path, None, None, "empty"])
    return tensors, {"facts": dict(facts), "tree": tree}


def weights_pattern(name: str) -> re.Pattern[str]:
    """Pattern for the full names of weights, and of the copies that evaluations keep."""
    return re.compile(rf"{re.escape(name)}(?:\.[0-9a-f]{{16}}_[0-9]+_[0-9]+)?")


def _flat(state: SavedState, path: _Path) -> Iterator[tuple[_Path, Tree]]:
    for key, value in state.items():
        here = (*path, key)
        if type(key) not in (str, int):
            raise DataError(f"key {key!r} of the weights is a {type(key).__name__}, not text")
        if isinstance(value, Mapping) and value:
            yield from _flat(value, here)
        elif isinstance(value, (Mapping, torch.Tensor, np.ndarray, *_PLAIN)):
            yield here, value
        else:
            place = ".".join(map(str, here))
            raise DataError(
                f"{place} of the weights is a {type(value).__name__}: expected tensors, arrays, "
                f"numbers, texts, or mappings of them"
            )


def grow_weights(tensors: Mapping[str, Leaf], held: Mapping[str, Json]) -> tuple[State, JsonObject]:
    """The inverse of `weight_tensors`: the weights and their facts.

    Raises:
        DataError: The tensors and the metadata are inconsistent.
    """
    if "tree" not in held:
        return dict(tensors), dict(held)
    state: State = {}
    try:
        for path, key, *plain in held["tree"]:
            home = state
            for part in path[:-1]:
                home = home.setdefault(part, {})
            empty_or_plain = plain[0] if len(plain) == 1 else {}
            home[path[-1]] = empty_or_plain if key is None else tensors[key]
        return state, dict(held["facts"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DataError("their tree is damaged") from error
