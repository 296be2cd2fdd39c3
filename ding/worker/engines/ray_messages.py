"""What the driver of a run on Ray and its workers exchange in addition to the messages.

::

    driver                                             worker (an actor)
      Parcel: request, places of chunks and weights ->   ask(parcel)
      <- Reply: answer, names of what comes with it
      <- freight: chunks, or weights                     a second return value
      <- files: what was written in the run's folder     a third one

Return values belong to the caller: chunks and weights survive the worker that made them. They stay
in the object store, where other workers map them; the driver has references alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from ray import ObjectRef

from ding.data.chunks import chunk_content, parse_chunk
from ding.torch_utils.tensor_file import parse_tensors, tensor_content
from ding.torch_utils.weights_file import grow_weights, weight_tensors
from ding.utils.sent_files import FileChange
from ding.worker.engines.carrier import WithFiles
from ding.worker.error_report import ErrorReport
from ding.worker.seams import Samples, Weights

#: What a worker has written in the run's folder.
Files: TypeAlias = tuple[FileChange, ...]


@dataclass(frozen=True)
class Location:
    """Where samples or weights are: under a key of a stored object.

    The reference is inside of this object, so that Ray does not fetch what it refers to.
    """

    ref: ObjectRef
    key: str
    size: int  # in bytes


@dataclass(frozen=True)
class Parcel:
    """A request and what its worker has to know for it.

    Attributes:
        chunks: Places of samples that are news to it.
        gone: Samples and weights that are not needed any more.
        weights: Versions and places of weights that are news to it.
    """

    request: WithFiles[Any]
    chunks: Mapping[str, Location] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    weights: Mapping[str, tuple[int, Location]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes that have to reach the worker before it can answer."""
        files = sum(map(len, self.request.files.values()))
        return files + sum(place.size for place in self.chunks.values())


@dataclass(frozen=True)
class Reply:
    """An answer and what comes with it.

    Attributes:
        failure: Why there is no answer.
        chunks: Names and bytes of samples in the freight.
        weights: Names and bytes of weights in the freight.
        removed: Samples and weights that this worker wants to be removed.
        kept: Second names of weights, which the worker has given.
        files: Bytes of what was written in the run's folder.
    """

    answer: object = None
    failure: ErrorReport | None = None
    chunks: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    kept: Mapping[str, Location] = field(default_factory=dict)
    files: int = 0


@dataclass(frozen=True)
class Life:
    """One life of a worker: its process and its node."""

    pid: int
    node: str
    host: str

    def __str__(self) -> str:
        return f"{self.host} (node {self.node[:8]})"


def pack_samples(name: str, samples: Samples) -> np.ndarray:
    """A copy of samples, uint8 [bytes]."""
    return np.frombuffer(b"".join(chunk_content(name, samples)), np.uint8)


def unpack_samples(name: str, packed: np.ndarray) -> Samples:
    """What `pack_samples` was given; columns are views that cannot be written to."""
    return parse_chunk(name, packed.data)


def pack_weights(weights: Weights) -> np.ndarray:
    """A copy of weights, uint8 [bytes]."""
    pieces = tensor_content(*weight_tensors(weights.state, weights.facts))
    return np.frombuffer(b"".join(pieces), np.uint8)


def unpack_weights(packed: np.ndarray) -> Weights:
    """A copy of what `pack_weights` was given."""
    return Weights(*grow_weights(*parse_tensors(bytearray(packed.data))))
