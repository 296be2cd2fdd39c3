"""Samples and weights in Ray's object store: the bytes of their files, which readers map."""

from collections.abc import Iterable

import numpy as np

from ding.data.chunks import chunk_content, parse_chunk
from ding.torch_utils.tensor_file import Buffer, parse_tensors, tensor_content
from ding.torch_utils.weights_file import grow_weights, weight_tensors
from ding.worker.seams import Samples, Weights


def pack_samples(name: str, samples: Samples) -> np.ndarray:
    """A copy of samples, uint8 [bytes].

    Raises:
        DataError: There are none, or something in them is no plain data.
    """
    return _joined(chunk_content(name, samples))


def unpack_samples(name: str, packed: np.ndarray) -> Samples:
    """What `pack_samples` was given; columns are views that cannot be written to.

    Raises:
        ChunkError: It is damaged.
    """
    return parse_chunk(name, packed.data)


def pack_weights(weights: Weights) -> np.ndarray:
    """A copy of weights, uint8 [bytes].

    Raises:
        DataError: Something in them is no plain data.
    """
    return _joined(tensor_content(*weight_tensors(weights.state, weights.facts)))


def unpack_weights(packed: np.ndarray) -> Weights:
    """A copy of what `pack_weights` was given."""
    return Weights(*grow_weights(*parse_tensors(bytearray(packed.data))))


def _joined(pieces: Iterable[Buffer]) -> np.ndarray:
    return np.frombuffer(b"".join(pieces), np.uint8)
