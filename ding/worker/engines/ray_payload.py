"""Samples and weights as Ray's object store takes them: plain arrays, which readers map."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch

from ding.data import Columns
from ding.data.chunks import chunk_columns, chunk_tensors
from ding.data.columns import as_columns
from ding.torch_utils.weights_file import grow_weights, weight_tensors
from ding.utils import safe_serial
from ding.utils.errors import DataError
from ding.worker.messages import Json
from ding.worker.seams import Samples, State, Weights

Leaf: TypeAlias = "np.ndarray | torch.Tensor"
#: What numpy has no type for, and what stands for it.
_STAND_INS = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e5m2: torch.uint8,
}


@dataclass(frozen=True)
class Arrays:
    """Named arrays in one object.

    Attributes:
        arrays: Memory of their own; once they were in the store, they cannot be written to.
        tensors: Which of them were tensors, of which dtype.
        facts: What is needed to put the whole together again.
    """

    arrays: dict[str, np.ndarray]
    tensors: dict[str, torch.dtype]
    facts: dict[str, object]

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(array.nbytes for array in self.arrays.values())


def pack_samples(name: str, samples: Samples) -> Arrays:
    """A copy of samples.

    Raises:
        DataError: There are none, or something in them is no plain data.
    """
    if not len(samples):
        raise DataError(f"chunk {name}: there are no samples to store")
    columns = as_columns(samples)
    if columns is not None:
        try:
            return _pack(*chunk_tensors(columns))
        except DataError:
            pass  # columns of times, texts or complex numbers: rows can hold them
    try:
        content = safe_serial.dumps(list(samples))
    except TypeError as error:
        raise DataError(f"chunk {name}: {error}") from error
    return Arrays({"rows": np.frombuffer(content, np.uint8)}, {}, {})


def unpack_samples(packed: Arrays) -> Samples:
    """What `pack_samples` was given; its arrays are views."""
    if not packed.facts:
        rows: list[dict[str, object]] = safe_serial.loads(packed.arrays["rows"].tobytes())
        return rows
    columns: Columns = chunk_columns(_unpack(packed), packed.facts)
    return columns


def pack_weights(weights: Weights) -> Arrays:
    """A copy of weights.

    Raises:
        DataError: Something in them is no plain data.
    """
    tensors, tree = weight_tensors(weights.state)
    return _pack(tensors, {"tree": tree, "facts": dict(weights.facts)})


def unpack_weights(packed: Arrays) -> Weights:
    """A copy of what `pack_weights` was given."""
    tree, facts = packed.facts["tree"], packed.facts["facts"]
    assert isinstance(tree, list)
    assert isinstance(facts, Mapping)
    own = dataclasses.replace(
        packed, arrays={name: array.copy() for name, array in packed.arrays.items()}
    )
    state: State = grow_weights(tree, _unpack(own))
    told: Mapping[str, Json] = facts
    return Weights(state, told)


def _pack(leaves: Mapping[str, Leaf], facts: Mapping[str, object]) -> Arrays:
    arrays, tensors = {}, {}
    for name, leaf in leaves.items():
        if isinstance(leaf, torch.Tensor):
            tensors[name] = leaf.dtype
            leaf = _array_of(name, leaf)
        if not isinstance(leaf, np.ndarray) or leaf.dtype.hasobject:
            raise DataError(f"{name!r} is a {type(leaf).__name__}: expected a tensor or an array")
        arrays[name] = np.array(leaf, order="C")  # whose memory it was may use it again
    return Arrays(arrays, tensors, dict(facts))


def _array_of(name: str, tensor: torch.Tensor) -> np.ndarray:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise DataError(f"{name!r} is a tensor of layout {tensor.layout}: expected a dense one")
    tensor = tensor.detach().cpu()
    stand_in = _STAND_INS.get(tensor.dtype)
    if stand_in is not None:
        tensor = tensor.contiguous().view(stand_in)
    array: np.ndarray = tensor.resolve_conj().resolve_neg().numpy()
    return array


def _unpack(packed: Arrays) -> dict[str, Leaf]:
    found: dict[str, Leaf] = {}
    for name, array in packed.arrays.items():
        dtype = packed.tensors.get(name)
        if dtype is None:
            found[name] = array
            continue
        tensor = torch.from_numpy(array)
        found[name] = tensor if tensor.dtype == dtype else tensor.view(dtype)
    return found
