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

from collections.abc import Mapping
from dataclasses import dataclass, field

from ray import ObjectRef

from ding.worker.error_report import ErrorReport
from ding.worker.messages import Request


@dataclass(frozen=True)
class Location:
    """Where samples or weights are: under a key of a stored object.

    The reference is inside of this object, so that Ray does not fetch what it stands for.
    """

    ref: ObjectRef
    key: str


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
        weights: Names of weights in the freight.
        removed: Samples and weights that this worker wants to be removed.
        kept: Second names of weights, which the worker has given.
        files: Whether files of the run folder have changed.
    """

    answer: object = None
    failure: ErrorReport | None = None
    chunks: Mapping[str, int] = field(default_factory=dict)
    weights: tuple[str, ...] = ()
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
