"""The interface of a custom engine: a carrier with eight methods.

A carrier starts workers and brings requests to them (spawn, call, drop), holds samples (put, get,
remove) and weights (publish, newest). Everything else that a run needs is made of these: the stores
below, and the control that starts dead workers again (`ding.worker.engines.control`).
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

#: With few cores the learner comes first: samples that no learner has time for are waste.
COLLECTOR_NICENESS = 5


class NotYetError(OSError):
    """A worker cannot be started yet, such as for want of room; it will be when that has changed.

    Its next try does not count as another start.
    """


@dataclass(frozen=True)
class Answered(Generic[Answer]):
    """An answer, and what its worker has written into the run's folder, which is not its own."""

    answer: Answer
    files: tuple[FileChange, ...] = ()


@dataclass(frozen=True)
class EndWorker(Request[Answered[None]]):
    """The run is over: end your task and close your environments."""


@dataclass(frozen=True)
class WithFiles(Request[Answered[Answer]]):
    """A request, and files of the run's folder, by their paths there, that its worker may read."""

    request: Request[Answer]
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerSpec:
    """What a worker is made of. It can be pickled.

    Attributes:
        name: Such as ``collector0``.
        build: Makes its service, where it lives; a function at the top of a module.
        entry: The worker's part of the compiled config.
        seed: Seed of its random numbers; it differs between workers, but not between runs.
        output: File for what its process prints and logs; ``None``: where that goes anyway.
        logs: What it logs; see `ding.utils.log_helper.set_logs`.
        team: Name of the learner that it is one process of, if that consists of several.
        place_in_team: The rank of its process within its learner, and the number of processes.
        folder: The run's folder, if the coordinator's process writes it: what the worker writes
            there goes along with its answers.
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
        """Prepare the process that the worker is going to live in, before it is built."""
        if self.folder is not None:
            send_files_of(self.folder)
        if self.output is not None:
            redirect_output(self.output)
        set_logs(self.logs)
        # Before the worker is built: its policy and environments draw from these generators.
        set_pkg_seed(self.seed, use_cuda=False)
        if self.kind == "collector" and hasattr(os, "nice"):
            os.nice(COLLECTOR_NICENESS)


def built_elsewhere(spec: WorkerSpec, stores: "Stores") -> WorkerService:
    """The ``build`` of a worker that comes by itself."""
    raise ConfigError(f"{spec.name} is not built by this run: it has to join")


#: Called with the cause when a worker has ended by itself.
OnDeath = Callable[[str], object]


@dataclass(frozen=True)
class ProcessEnd:
    """A worker's process has ended by itself.

    Attributes:
        how: Description of the end, for messages.
        way: ``unbuilt``: it could not be built, and would not be the next time; ``left``: it has
            nothing more to do; else ``died``.
    """

    name: str
    how: str
    way: Literal["died", "left", "unbuilt"] = "died"


class Starter(Protocol):
    """Starts the processes of workers that join, and reports their ends."""

    #: Called when a process has ended by itself.
    on_exit: Callable[[ProcessEnd], object]

    def ensure(self, name: str, address: str) -> None:
        """Have a worker's process live, which joins at an address; one that lives is left alone."""

    def kill(self, name: str) -> None:
        """End a worker's process at once, if it lives."""


class WorkerTable(Protocol):
    """What a control has called when workers come by themselves, and when they go."""

    def names(self) -> Iterable[str]:
        """The names of all workers, including those that have not joined yet."""

    def objection(self, name: str) -> str | None:
        """Why no worker of a name may join, if there is a reason."""

    def adopt(self, kind: Kind, name: str, handle: Any) -> bool:
        """A worker has come, perhaps again; whether it is wanted."""

    def lost(self, name: str, handle: Any, cause: str) -> None:
        """A worker cannot be reached any more; it may come again."""


class Workers(ABC, Generic[Handle]):
    """How a control starts and reaches workers. Methods are called by several threads at once."""

    #: Whether its workers live in the coordinator's process, whose output, environment and priority
    #: are not theirs.
    in_one_process = False
    #: Whether its workers come by themselves, so that one that was lost may come again. Then what
    #: they write into the run's folder is there.
    workers_join = False
    #: The run's folder.
    exp_name: str = "."

    @abstractmethod
    def spawn(self, worker: WorkerSpec, on_death: OnDeath) -> Handle | None:
        """Start a worker: build a `Worker` where it shall live, and let it answer.

        May return before it is there: the first `call` waits for it. ``None``: it joins by itself.

        Args:
            on_death: To be called when it has ended without having been asked. Carriers that cannot
                detect this may ignore it: the next call fails.

        Raises:
            TaskFail: It cannot be built; no other try would change that.
            NotYetError: It cannot be started yet.
            OSError: It cannot be started now, or it died.
        """

    @abstractmethod
    def call(self, handle: Handle, request: Request[Answer], timeout: float) -> Answer:
        """Have a worker's `Worker.answer` called, and return what that returns.

        Raises:
            TimeoutError: There is no answer after ``timeout`` seconds.
            OSError: The worker is lost (`EOFError` means the same), or was dropped meanwhile.
            TaskFail: As its ``answer`` raised it.
        """

    @abstractmethod
    def drop(self, handle: Handle) -> None:
        """End a worker at once, whatever it does; one that has ended is no error."""

    def find(self, worker: WorkerSpec, on_death: OnDeath) -> Handle | None:
        """A worker of this name that an earlier coordinator of the run has started and that lives.

        Called once for each worker, before its first `spawn`; ``None``: it has to be spawned. The
        worker is asked before it is used: one that does not answer is dropped and spawned.

        Args:
            worker: What `spawn` would be given.
            on_death: As for `spawn`.
        """
        return None

    def address(self, handle: Handle) -> tuple[str, int | None]:
        """Where a worker lives, for humans, and its process if that is known."""
        return type(self).__name__, None

    def place(self, worker: WorkerSpec) -> str:
        """Where a worker that has not come is expected, for humans."""
        return type(self).__name__

    def listener(self, table: WorkerTable, arrivals: Arrivals) -> HttpService | None:
        """The server at which workers join, and which reports the run's status, if there is one.

        Args:
            table: Notified of workers.
            arrivals: Has the run's status, and is notified of what hinders the listener.
        """
        return None


class Carrier(Workers[Handle], Configurable):
    """Base class of engines: register a subclass in ``ENGINE_REGISTRY``, name it in a config.

    The coordinator's process has one. Each worker needs one, too, which reaches the same samples
    and weights: `spawn` hands it over as suits the engine (the same object to a thread, a pickled
    copy to a process). Methods are called by several threads at once.

    Args:
        cfg: The engine's section of the config over the class's own `config`.
        exp_name: The run's folder.
    """

    #: Known keys of the engine's section, with defaults.
    config: dict[str, Any] = {}
    #: Whether each worker is a process on a host, so that ``torch.distributed`` can join several.
    #: If these hosts differ, `spawn` sets ``host`` of a worker's entry: where others reach it.
    has_teams = False

    def __init__(self, cfg: Mapping[str, Any], exp_name: str) -> None:
        self.cfg = EasyDict({**self.default_config(), **cfg})
        self.exp_name = exp_name

    # ------------------------------------------------------------------ samples and weights

    @abstractmethod
    def put(self, name: str, samples: Samples) -> int:
        """Keep samples under a new name; returns their bytes.

        Raises:
            CheckpointWriteError: There is no room; ``errno`` is set.
        """

    @abstractmethod
    def get(self, name: str) -> Samples:
        """The stored samples, read-only; a worker may request them from any host.

        Raises:
            ChunkError: It is not there, or damaged.
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove the samples, or the weights, of a name; nothing there is no error."""

    @abstractmethod
    def publish(self, name: str, weights: Weights) -> None:
        """Replace the weights of a name, whole. The tensors are the publisher's only: copy them,
        unless they are sent away anyhow."""

    @abstractmethod
    def newest(self, name: str) -> Weights | None:
        """The weights that were published last, ``None`` if there are none."""

    # ------------------------------------------------------------------ what need not be defined

    def open(self) -> None:
        """The run begins; called once, in the coordinator's process.

        Raises:
            ConfigError: It cannot, and why.
        """

    def close(self) -> None:
        """The run is over; all workers were dropped."""

    def size(self, name: str) -> int | None:
        """Bytes of the samples under a name; ``None`` if there are none, or it is not known."""
        return None

    def names(self) -> Iterable[str]:
        """All names that have samples. With it, what dead workers have left can be removed before
        the end of the run."""
        return ()

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        """Remove all samples whose whole names match and are not to be kept, of `names`."""
        found = [name for name in self.names() if name not in keep and pattern.fullmatch(name)]
        for name in found:
            self.remove(name)
        return found

    def version(self, name: str) -> object:
        """Equal as long as `newest` is the same; ``None`` if there is nothing. The cheaper, the
        more often collectors may look."""
        weights = self.newest(name)
        return None if weights is None else sorted(weights.facts.items(), key=lambda fact: fact[0])


# ---------------------------------------------------------------------- stores


class CarrierWeights:
    """A carrier's weights as a `WeightStore`."""

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
        return []  # those that were kept end with the run


@dataclass(frozen=True)
class Stores:
    """Where a worker's samples, weights and artifacts are."""

    samples: SampleStore
    weights: WeightStore
    artifacts: Artifacts

    @classmethod
    def of(cls, carrier: Carrier[Any]) -> "Stores":
        return cls(carrier, CarrierWeights(carrier), FolderArtifacts(carrier.exp_name))

    @classmethod
    def in_folders(cls, cfg: Mapping[str, Any]) -> "Stores":
        """Folders that a worker's config names: ``path_data``, ``path_policy``, ``exp_name``."""
        return cls(
            SharedFolderSamples(cfg.get("path_data", "./data")),
            SharedFolderWeights(cfg.get("path_policy", "./policy")),
            FolderArtifacts(str(cfg.get("exp_name", "default_experiment"))),
        )


# ---------------------------------------------------------------------- the worker's side


class Worker:
    """A worker where its engine has put it.

    Args:
        service: What does the work.

    Attributes:
        ended: Set when it was asked to end, or cannot continue.
    """

    def __init__(self, service: WorkerService) -> None:
        self._service = service
        self.ended = threading.Event()
        service.start()

    @classmethod
    def of(cls, spec: WorkerSpec, carrier: Carrier[Any]) -> "Worker":
        """Prepare the process of a worker, and build it over a carrier.

        Raises:
            TaskFail: It cannot be built.
        """
        return cls.over(spec, Stores.of(carrier), settles=not carrier.in_one_process)

    @classmethod
    def over(cls, spec: WorkerSpec, stores: Stores, settles: bool = True) -> "Worker":
        """Build a worker over stores.

        Args:
            settles: Whether to prepare this process for it.

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
        """Answer a request. They come one by one, but for `EndWorker`, which may come at any time.

        Raises:
            TaskFail: It failed; with type, message and traceback.
        """
        if isinstance(request, EndWorker):
            self.close()
            return Answered(None, _files(at_end=True))  # type: ignore[return-value]
        if isinstance(request, WithFiles):
            # Before the request is answered, which may read them.
            if (sent := sent_files()) is not None and request.files:
                sent.give(request.files)
            answer = self.answer(request.request)
            # Logs are flushed at an end alone: what is buffered meanwhile goes with a later answer.
            at_end = isinstance(request.request, CloseTask)
            return Answered(answer, _files(at_end))  # type: ignore[return-value]
        try:
            return self._service.handle(request)
        except TaskFail:
            raise
        except Exception as error:  # the edge of the worker: reported onward
            raise ErrorReport.of(error).task_fail() from error
        finally:
            if self._service.join(0.0):
                self.ended.set()

    def join(self) -> str | None:
        """Wait for its end; returns the cause if it has failed."""
        self._service.join()
        return self._service.failed

    @property
    def failed(self) -> str | None:
        """The cause if it has failed."""
        return self._service.failed

    def close(self) -> None:
        """End its task and close what it has; again does nothing."""
        self.ended.set()
        self._service.close()


def _files(at_end: bool) -> tuple[FileChange, ...]:
    """What has changed of the run's files, if this process sends them; at an end, all logs."""
    sent = sent_files()
    if sent is None:
        return ()
    if at_end:
        flush_all()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return sent.take()
