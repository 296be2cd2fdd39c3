"""The interface of a custom engine: a carrier with eight methods.

A carrier starts workers and sends requests to them (spawn, call, drop), stores samples (put, get,
remove) and weights (publish, newest). All other parts of a run are built on these: the stores
below, and the control that restarts dead workers (`ding.worker.engines.control`).
"""

import os
import re
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from easydict import EasyDict

from ding.interaction.base.service import HttpService
from ding.interaction.slave import TaskFail
from ding.utils import set_pkg_seed
from ding.utils.default_helper import Configurable
from ding.utils.errors import CheckpointNotFoundError, ConfigError
from ding.utils.log_file import flush_all, redirect_output
from ding.utils.log_helper import set_logs
from ding.utils.sent_files import FileChange, send_files_of, sent_files
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from ding.worker.error_report import ErrorReport
from ding.worker.messages import CloseTask, Kind, Request
from ding.worker.seams import (
    Arrivals,
    Artifacts,
    Samples,
    SampleStore,
    Weights,
    WeightStore,
    WorkerService,
)

Answer = TypeVar("Answer")
Handle = TypeVar("Handle")

#: Lower priority: with few cores, samples are useless if the learner has no time to use them.
COLLECTOR_NICENESS = 5


class NotYetError(OSError):
    """A worker cannot be started yet, for example without free resources; it will be retried.

    The next try does not count as another start.
    """


@dataclass(frozen=True)
class Answered(Generic[Answer]):
    """An answer, with the files that the worker has written to a run folder on another host."""

    answer: Answer
    files: tuple[FileChange, ...] = ()


@dataclass(frozen=True)
class EndWorker(Request[Answered[None]]):
    """The run is over: end the task and close the environments."""


@dataclass(frozen=True)
class WithFiles(Request[Answered[Answer]]):
    """A request with files of the run's folder, by path, for a worker on another host."""

    request: Request[Answer]
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerSpec:
    """Specification of a worker; can be pickled.

    Attributes:
        name: Such as ``collector0``.
        build: Creates its service in the worker's process; a module-level function.
        entry: The worker's part of the compiled config.
        seed: Seed of its random numbers; differs between workers, not between runs.
        output: File for its process's output and logs; ``None``: not redirected.
        logs: Its logging settings; see `ding.utils.log_helper.set_logs`.
        team: Name of the learner to which the process belongs, if the learner has several.
        place_in_team: The rank of its process within its learner, and the number of processes.
        folder: The run's folder, if the coordinator's process writes it: the worker's files are
            then sent with its answers.
    """

    name: str
    kind: Kind
    build: Callable[["WorkerSpec", "Stores"], WorkerService]
    entry: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    output: str | None = None
    logs: Mapping[str, bool] = field(default_factory=dict)
    team: str | None = None
    place_in_team: tuple[int, int] = (0, 1)
    folder: str | None = None

    def settle_process(self) -> None:
        """Prepare the worker's process before the worker is built."""
        if self.folder is not None:
            send_files_of(self.folder)
        if self.output is not None:
            redirect_output(self.output)
        set_logs(self.logs)
        # Before the worker is built: its policy and environments use these generators.
        set_pkg_seed(self.seed, use_cuda=False)
        if self.kind == "collector" and hasattr(os, "nice"):
            os.nice(COLLECTOR_NICENESS)


def built_elsewhere(spec: WorkerSpec, stores: "Stores") -> WorkerService:
    """The ``build`` of a worker that joins by itself."""
    raise ConfigError(f"{spec.name} is not built by this run: it has to join")


#: Called with the cause when a worker has ended by itself.
OnDeath = Callable[[str], object]


@dataclass(frozen=True)
class ProcessEnd:
    """A worker's process has ended by itself.

    Attributes:
        how: Description of the end, for messages.
        way: ``unbuilt``: it could not be built, and a retry would not help; ``left``: its work is
            done; else ``died``.
    """

    name: str
    how: str
    way: Literal["died", "left", "unbuilt"] = "died"


class Starter(Protocol):
    """Starts the processes of workers that join, and reports their ends."""

    #: Called when a process has ended by itself.
    on_exit: Callable[[ProcessEnd], object]

    def ensure(self, name: str, address: str) -> None:
        """Start a worker's process, which joins at an address, unless it is running."""

    def kill(self, name: str) -> None:
        """Kill a worker's process if it is running."""


class WorkerTable(Protocol):
    """Receives reports of workers that join by themselves or are lost."""

    def names(self) -> Iterable[str]:
        """The names of all workers, including those that have not joined yet."""

    def objection(self, name: str) -> str | None:
        """Why no worker of a name may join; ``None`` if it may."""

    def adopt(self, kind: Kind, name: str, handle: Any) -> bool:
        """A worker has joined, possibly again; returns whether it is accepted."""

    def lost(self, name: str, handle: Any, cause: str) -> None:
        """A worker cannot be reached any more; it may join again."""


class Workers(ABC, Generic[Handle]):
    """Starts and reaches workers for a control. Methods are called by several threads at once."""

    #: Whether workers live in the coordinator's process, and share its output, environment and
    #: priority.
    in_one_process = False
    #: Whether workers join by themselves, so that a lost one may join again. They then write to the
    #: run's folder directly.
    workers_join = False
    #: The run's folder.
    exp_name: str = "."

    @abstractmethod
    def spawn(self, worker: WorkerSpec, on_death: OnDeath) -> Handle | None:
        """Start a worker: build a `Worker` at its destination, and let it answer requests.

        May return before it is ready: the first `call` waits for it. ``None``: it joins by itself.

        Args:
            on_death: To be called when the worker has ended by itself. Carriers that cannot detect
                this may ignore it: the next call then fails.

        Raises:
            TaskFail: The worker cannot be built, and a retry would not help.
            NotYetError: It cannot be started yet.
            OSError: It cannot be started now, or it died.
        """

    @abstractmethod
    def call(self, handle: Handle, request: Request[Answer], timeout: float) -> Answer:
        """Call a worker's `Worker.answer`, and return its result.

        Raises:
            TimeoutError: There is no answer after ``timeout`` seconds.
            OSError: The worker is lost (or `EOFError`), or was dropped in the meantime.
            TaskFail: Raised by ``answer``.
        """

    @abstractmethod
    def drop(self, handle: Handle) -> None:
        """End a worker at once, whatever it is doing; no error if it has ended."""

    def find(self, worker: WorkerSpec, on_death: OnDeath) -> Handle | None:
        """A running worker of this name that an earlier coordinator of the run has started.

        Called once per worker, before its first `spawn`; ``None``: it must be spawned. The found
        worker gets a request before it is used; if it does not answer, it is dropped and spawned.

        Args:
            worker: The argument for `spawn`.
            on_death: As in `spawn`.
        """
        return None

    def address(self, handle: Handle) -> tuple[str, int | None]:
        """A worker's location for humans, and its process id if known."""
        return type(self).__name__, None

    def place(self, worker: WorkerSpec) -> str:
        """The expected location of a missing worker, for humans."""
        return type(self).__name__

    def listener(self, table: WorkerTable, arrivals: Arrivals) -> HttpService | None:
        """The server at which workers join, and which serves the run's status; ``None`` if there is
        none.

        Args:
            table: Notified of workers.
            arrivals: Provides the run's status, and receives errors of the server.
        """
        return None


class Carrier(Workers[Handle], Configurable):
    """Base class of engines: register a subclass in ``ENGINE_REGISTRY``, and name it in a config.

    The coordinator's process has one instance. Each worker also needs one, with access to the same
    samples and weights: `spawn` passes it on in a suitable way (the same object to a thread, a
    pickled copy to a process). Methods are called by several threads at once.

    Args:
        cfg: The engine's section of the config over the class's own `config`.
        exp_name: The run's folder.
    """

    #: Known keys of the engine's section, with defaults.
    config: dict[str, Any] = {}
    #: Whether each worker is a process on a host, so that ``torch.distributed`` works.
    #: If the hosts differ, `spawn` sets ``host`` of a worker's entry to its reachable address.
    has_teams = False

    def __init__(self, cfg: Mapping[str, Any], exp_name: str) -> None:
        self.cfg = EasyDict({**self.default_config(), **cfg})
        self.exp_name = exp_name

    # ------------------------------------------------------------------ samples and weights

    @abstractmethod
    def put(self, name: str, samples: Samples) -> int:
        """Store samples under a new name; returns their size in bytes.

        Raises:
            CheckpointWriteError: There is no space; ``errno`` is set.
        """

    @abstractmethod
    def get(self, name: str) -> Samples:
        """The stored samples, read-only; a worker may request them from any host.

        Raises:
            ChunkError: The samples are missing or damaged.
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove the samples or weights of a name, if they exist."""

    @abstractmethod
    def publish(self, name: str, weights: Weights) -> None:
        """Replace the weights of a name atomically. The tensors belong to the publisher: copy them
        unless they are sent elsewhere anyway."""

    @abstractmethod
    def newest(self, name: str) -> Weights | None:
        """The weights that were published last; ``None`` if there are none."""

    # ------------------------------------------------------------------ optional methods

    def open(self) -> None:
        """The run begins; called once, in the coordinator's process.

        Raises:
            ConfigError: The run cannot begin; contains the reason.
        """

    def close(self) -> None:
        """The run is over; all workers were dropped."""

    def size(self, name: str) -> int | None:
        """Size of the named samples in bytes; ``None`` if they do not exist or it is unknown."""
        return None

    def names(self) -> Iterable[str]:
        """All names with samples. If defined, remains of dead workers can be removed before the end
        of the run."""
        return ()

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        """Remove all samples in `names` whose full name matches, except `keep`."""
        found = [name for name in self.names() if name not in keep and pattern.fullmatch(name)]
        for name in found:
            self.remove(name)
        return found

    def version(self, name: str) -> object:
        """A value that changes with each new version; ``None`` if there is none. Collectors call it
        often, so it should be cheap."""
        weights = self.newest(name)
        return None if weights is None else sorted(weights.facts.items(), key=lambda fact: fact[0])


# ---------------------------------------------------------------------- stores


class CarrierWeights:
    """A `WeightStore` over a carrier."""

    def __init__(self, carrier: Carrier[Any]) -> None:
        self._carrier = carrier

    def publish(self, name: str, weights: Weights) -> None:
        self._carrier.publish(name, weights)

    def newest(self, name: str) -> Weights:
        weights = self._carrier.newest(name)
        if weights is None:
            raise CheckpointNotFoundError(f"no weights have been published as {name}")
        return weights

    def version(self, name: str) -> object:
        return self._carrier.version(name)

    def keep(self, name: str, as_name: str) -> bool:
        weights = self._carrier.newest(name)
        if weights is None:
            return False
        self._carrier.publish(as_name, weights)
        return True

    def remove(self, name: str) -> None:
        self._carrier.remove(name)

    def clear(self, pattern: re.Pattern[str]) -> list[str]:
        return []  # kept weights end with the run


@dataclass(frozen=True)
class Stores:
    """The stores of a worker's samples, weights and artifacts."""

    samples: SampleStore
    weights: WeightStore
    artifacts: Artifacts

    @classmethod
    def of(cls, carrier: Carrier[Any]) -> "Stores":
        return cls(carrier, CarrierWeights(carrier), FolderArtifacts(carrier.exp_name))

    @classmethod
    def in_folders(cls, cfg: Mapping[str, Any]) -> "Stores":
        """Stores in a worker's folders: ``path_data``, ``path_policy``, ``exp_name``."""
        return cls(
            SharedFolderSamples(cfg.get("path_data", "./data")),
            SharedFolderWeights(cfg.get("path_policy", "./policy")),
            FolderArtifacts(str(cfg.get("exp_name", "default_experiment"))),
        )


# ---------------------------------------------------------------------- worker side


class Worker:
    """A worker in the process or thread where its engine has built it.

    Args:
        service: The collector or learner.

    Attributes:
        ended: Set when the worker was asked to end, or cannot continue.
    """

    def __init__(self, service: WorkerService) -> None:
        self._service = service
        self.ended = threading.Event()
        service.start()

    @classmethod
    def of(cls, spec: WorkerSpec, carrier: Carrier[Any]) -> "Worker":
        """Prepare a worker's process, and build the worker over a carrier.

        Raises:
            TaskFail: It cannot be built.
        """
        return cls.over(spec, Stores.of(carrier), settles=not carrier.in_one_process)

    @classmethod
    def over(cls, spec: WorkerSpec, stores: Stores, settles: bool = True) -> "Worker":
        """Build a worker over stores.

        Args:
            settles: Whether to prepare this process for the worker.

        Raises:
            TaskFail: It cannot be built.
        """
        try:
            if settles:
                spec.settle_process()
            return cls(spec.build(spec, stores))
        except Exception as error:
            raise ErrorReport.of(error).task_fail() from error

    def answer(self, request: Request[Answer]) -> Answer:
        """Answer a request. Requests arrive one at a time, except `EndWorker`.

        Raises:
            TaskFail: The request failed; with type, message and traceback.
        """
        if isinstance(request, EndWorker):
            self.close()
            return Answered(None, _files(at_end=True))  # type: ignore[return-value]
        if isinstance(request, WithFiles):
            # Before the request is answered, which may read the files.
            if (sent := sent_files()) is not None and request.files:
                sent.give(request.files)
            answer = self.answer(request.request)
            # Logs are flushed only at a task's end: buffered lines are sent with a later answer.
            at_end = isinstance(request.request, CloseTask)
            return Answered(answer, _files(at_end))  # type: ignore[return-value]
        try:
            return self._service.handle(request)
        except TaskFail:
            raise
        except Exception as error:  # the edge of the worker: reported to the coordinator
            raise ErrorReport.of(error).task_fail() from error
        finally:
            if self._service.join(0.0):
                self.ended.set()

    def join(self) -> str | None:
        """Wait for the worker's end; returns the cause if it has failed."""
        self._service.join()
        return self._service.failed

    @property
    def failed(self) -> str | None:
        """The cause if the worker has failed."""
        return self._service.failed

    def close(self) -> None:
        """End the task and close all resources; closing twice does nothing."""
        self.ended.set()
        self._service.close()


def _files(at_end: bool) -> tuple[FileChange, ...]:
    """Changes in the run's files, if this process sends them; at a task's end, with all logs."""
    sent = sent_files()
    if sent is None:
        return ()
    if at_end:
        flush_all()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return sent.take()
