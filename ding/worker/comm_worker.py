"""The base class of collector and learner workers, which answer a coordinator's requests: creation
from the config, requests, start and end."""

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TypeVar, cast

from easydict import EasyDict

from ding.utils import COMM_COLLECTOR_REGISTRY, COMM_LEARNER_REGISTRY, import_module
from ding.utils.errors import ConfigError
from ding.worker.engines.carrier import Stores, WorkerSpec
from ding.worker.engines.http_messages import answer_to_json
from ding.worker.engines.http_worker import HttpWorker
from ding.worker.error_report import ErrorReport
from ding.worker.messages import (
    CloseTask,
    Json,
    Kind,
    Request,
    ResourceRequest,
    Resources,
    StartTask,
    Task,
    TaskReport,
)
from ding.worker.seams import WorkerService

Answer = TypeVar("Answer")
#: The comm type of workers whose config entry names none.
USUAL_TYPE = "flask_fs"


class CommWorker(ABC):
    """A `ding.worker.seams.WorkerService`: the engine calls `handle` with each request.

    If it ``listens``, `start` serves requests over HTTP.

    Args:
        cfg: The worker's config: the keys of `HttpWorker`; ``path_data``, ``path_policy`` and
            ``exp_name``, the folders of `stores` if an engine does not set these; ``resource``.
        name: The worker's name.
    """

    kind: Kind
    listens = False

    def __init__(self, cfg: Mapping[str, object], name: str) -> None:
        self._cfg, self._name = EasyDict(cfg), name
        if cfg.get("coordinator") or cfg.get("port", "auto") not in ("auto", 0, None):
            self.listens = True
        self._http: HttpWorker | None = None
        self._end_flag = True
        self._closing = threading.Event()
        self._ended = threading.Event()
        self._failed: str | None = None

    @cached_property
    def stores(self) -> Stores:
        """The stores of samples, weights and states."""
        return Stores.in_folders(self._cfg)

    # ------------------------------------------------------------------ requests

    def handle(self, request: Request[Answer]) -> Answer:
        """Answer a request.

        Raises:
            TaskFail: The request failed or is not supported; with type, message and traceback.
        """
        answer: object
        match request:
            case ResourceRequest():
                answer = self._resources()
            case StartTask(kind=self.kind, info=info):
                answer = self._start_task(info)
            case CloseTask(kind=self.kind):
                answer = self._close_task()
            case _:
                answer = self._answer_in_task(request)
        return cast(Answer, answer)

    def _answer_json(self, request: Request[Answer]) -> Json:
        """The answer in the form that the documented method returns."""
        return answer_to_json(request, self.handle(request))

    @abstractmethod
    def _resources(self) -> Resources:
        """The worker's resources."""

    @abstractmethod
    def _start_task(self, info: Task) -> None:
        """Begin a task; the previous task is ended first."""

    @abstractmethod
    def _close_task(self) -> TaskReport:
        """End the task and return its report."""

    def _answer_in_task(self, request: Request[Answer]) -> object:
        """Answer a request that only this kind of worker supports."""
        text = f"a {self.kind} does not support {type(request).__name__}"
        raise ErrorReport("UnknownTask", text).task_fail()

    @abstractmethod
    def _give_up_task(self, cause: str) -> None:
        """End the task, if any, since no coordinator needs it any more."""

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Start to accept requests."""
        if not self._end_flag:
            return
        self._end_flag = False
        self._closing.clear()
        self._ended.clear()
        if self.listens:
            self._http = HttpWorker(self, self._cfg, self._fail)
            self._http.start()

    def coordinator_lost(self, cause: str) -> None:
        """The coordinator was lost without notice: end the task; another coordinator may join."""
        self._give_up_task(cause)

    def released(self) -> None:
        """The coordinator has reported the end of the run."""
        self._give_up_task("the coordinator has disconnected")
        self._ended.set()

    def close(self) -> None:
        """End the task and the worker. Closing twice does nothing."""
        http = self._http if not self._end_flag else None
        if http is not None:
            http.stop_joining()
        self._closing.set()
        self._give_up_task("the worker is closed")
        if http is not None:
            http.close()
        self._finish()
        self._end_flag = True
        self._ended.set()

    def _finish(self) -> None:  # noqa: B027
        """Close open resources; may be called again."""

    def join(self, timeout: float | None = None) -> bool:
        """Whether it ends within ``timeout`` seconds, by `close` or because it `failed`."""
        return self._ended.wait(timeout)

    def __del__(self) -> None:
        # Waiting here could block forever, so the task is only asked to end.
        with contextlib.suppress(Exception):
            self._closing.set()
            self._ask_to_end()
            self._ended.set()

    @abstractmethod
    def _ask_to_end(self) -> None:
        """Ask the task, if any, to end; does not wait."""

    def _fail(self, cause: str) -> None:
        """Record why the worker cannot continue; only the first cause is kept."""
        self._failed = self._failed or cause
        self._ended.set()

    @property
    def failed(self) -> str | None:
        """The cause if the worker cannot continue."""
        return self._failed

    @property
    def address(self) -> str:
        """Address for the coordinator, ``host:port``; known after `start`."""
        if self._http is None:
            raise ConfigError(f"{self._name} does not listen: it was not started, or not for HTTP")
        return self._http.my_address

    @property
    def port(self) -> int:
        """The port on which it listens, after `start`."""
        return int(self.address.rsplit(":", 1)[1])


def build_service(spec: WorkerSpec, stores: Stores) -> WorkerService:
    """Build the service of a worker to which an engine transports requests."""
    return make_service(spec.kind, EasyDict(spec.entry), stores)


def make_service(kind: Kind, entry: EasyDict, stores: Stores | None = None) -> WorkerService:
    """Build a worker of the comm type in its entry of the compiled config.

    Args:
        stores: The stores of the engine that transports requests; without them, the worker listens
            on HTTP, and the entry contains its folders.
    """
    import_module(entry.get("import_names", []))
    registry = COMM_COLLECTOR_REGISTRY if kind == "collector" else COMM_LEARNER_REGISTRY
    worker: WorkerService = registry.build(entry.get("type", USUAL_TYPE), cfg=entry)
    if stores is not None and isinstance(worker, CommWorker):
        worker.stores, worker.listens = stores, False
    return worker
