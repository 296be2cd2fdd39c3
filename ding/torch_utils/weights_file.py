"""Policy weights that one process publishes and others pick up."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import torch

from ding.torch_utils.tensor_file import Leaf, read_tensors, write_tensors
from ding.utils.errors import CheckpointError, CheckpointNotFoundError, DataError
from ding.utils.shared_folder import SharedFolder
from ding.utils.types import Json, JsonObject, SavedState, State, Tree

#: The keys on the way to a leaf.
_Path: TypeAlias = tuple[str | int, ...]
_PLAIN = (bool, int, float, str, type(None))


def write_weights(
    folder: SharedFolder, name: str, state: SavedState, facts: Mapping[str, Json]
) -> None:
    """Publish weights under a fixed name; readers see the old ones or the new ones, whole.

    Args:
        state: Nested mappings of tensors and arrays, and also numbers, texts and None.
        facts: Plain JSON: ``policy_iter``, ``envstep``, ``time``, ``learner``.

    Raises:
        DataError: Something else is in there; names it. A bad name.
        CheckpointWriteError: Names the file and the cause; what was published before stays.
    """
    write_tensors(folder.file(name), *weight_tensors(state, facts))


def read_weights(folder: SharedFolder, name: str) -> tuple[State, JsonObject]:
    """Read published weights onto the CPU.

    Returns:
        The state as it was written, and the facts.

    Raises:
        CheckpointNotFoundError: Nothing has been published under this name.
        CheckpointError: The file is damaged, or holds something else; names it.
        DataError: A bad name.
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
    """Weights as named tensors and arrays, and what else `grow_weights` needs, as plain
    JSON.

    Raises:
        DataError: Something else is in there; names it.
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
            # An empty mapping has no leaf that would bring it back.
            tree.append([path, None, None, "empty"])
    return tensors, {"facts": dict(facts), "tree": tree}


def weights_pattern(name: str) -> re.Pattern[str]:
    """What the whole names of weights match, and of the copies that evaluations keep of them."""
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
    """The weights that `weight_tensors` was given, and their facts.

    Raises:
        DataError: The parts do not fit each other.
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
