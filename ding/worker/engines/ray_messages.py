"""What travels between the driver of a run on Ray and its workers, beside the messages themselves.

::

    driver                                             worker (an actor)
      Parcel: request, places of chunks and weights ->   ask(parcel)
      <- Reply: answer, names of what comes with it
      <- freight: chunks, or weights                     a second return value
      <- files: what has changed in the run folder       a third one

Return values belong to the caller: chunks and weights survive the worker that made them. They stay
in the object store, where other workers map them; the driver has references alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from ray import ObjectRef

from ding.data.chunks import chunk_content, parse_chunk
from ding.torch_utils.tensor_file import Buffer, parse_tensors, tensor_content
from ding.torch_utils.weights_file import grow_weights, weight_tensors
from ding.worker.error_report import ErrorReport
from ding.worker.messages import Request
from ding.worker.seams import Samples, Weights


@dataclass(frozen=True)
class Location:
    """Where samples or weights are: under a key of a stored object.

    The reference is inside of this object, so that Ray does not fetch what it stands for.

    Attributes:
        size: Their bytes.
    """

    ref: ObjectRef
    key: str
    size: int


@dataclass(frozen=True)
class RunPath:
    """A path in the run folder, which is another on each host."""

    path: str


@dataclass(frozen=True)
class Parcel:
    """A request and what its worker has to know for it.

    Attributes:
        chunks: Places of samples that it has not been told of.
        gone: Samples and weights that nobody needs any more.
        weights: Versions and places of weights that are news to it.
        files: Of the run folder, by their paths in there.
    """

    request: Request[object]
    chunks: Mapping[str, Location] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    weights: Mapping[str, tuple[int, Location]] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """An answer and what comes with it.

    Attributes:
        failure: Why there is no answer.
        chunks: Names and bytes of samples in the freight.
        weights: Names and bytes of weights in the freight.
        removed: Samples and weights that this worker wants to be removed.
        kept: Second names of weights, which the worker has given.
        files: Whether files of the run folder have changed.
    """

    answer: object = None
    failure: ErrorReport | None = None
    chunks: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    kept: Mapping[str, Location] = field(default_factory=dict)
    files: bool = False


@dataclass(frozen=True)
class Life:
    """One life of a worker: its process and its node."""

    pid: int
    node: str
    host: str

    def __str__(self) -> str:
        return f"{self.host} (node {self.node[:8]})"


@dataclass(frozen=True)
class FileChange:
    """What has become of a file of the run folder.

    Attributes:
        start: Where the content goes on from, if the file has grown; else it is all of it.
        content: ``None``: the file was removed.
    """

    path: str
    content: bytes | None
    start: int = 0


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
