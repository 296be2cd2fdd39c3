"""What connects collectors to the rest of a run, whatever messages and samples travel by."""

import contextlib
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import torch
from easydict import EasyDict

from ding.data.chunks import chunk_name
from ding.utils import COMM_COLLECTOR_REGISTRY, durations, get_task_uid, import_module
from ding.utils.errors import ConfigError, DingError, EnvError
from ding.worker.collector.base_parallel_collector import (
    BaseParallelCollector,
    create_parallel_collector,
)
from ding.worker.collector.collector_link import LinkDefaults
from ding.worker.collector.comm.collect_task import CollectTask
from ding.worker.engines.http_worker import HttpWorker
from ding.worker.error_report import ErrorReport
from ding.worker.messages import (
    CloseTask,
    Json,
    Kind,
    Request,
    ResourceRequest,
    Resources,
    SamplesAnswer,
    SamplesRequest,
    StartTask,
    Task,
    TaskReport,
)

Answer = TypeVar("Answer")

_logger = logging.getLogger(__name__)


class BaseCommCollector(LinkDefaults, ABC):
    """A worker that builds collectors for tasks and is their `CollectorLink`.

    It is a `ding.worker.seams.WorkerService`: whatever carries the coordinator's requests calls
    `handle`. If the config says where the coordinator is, `start` has them come over HTTP. A comm
    type of one's own defines the three abstract methods, which say what samples and weights travel
    by.

    Args:
        cfg: The worker's config: ``name``, ``resource``, what the comm type reads, and for HTTP
            what `ding.worker.engines.http_worker.HttpWorker` reads.
    """

    kind: Kind = "collector"

    def __init__(self, cfg: Mapping[str, object]) -> None:
        self._cfg = EasyDict(cfg)
        uid = get_task_uid()
        self._name = str(self._cfg.get("name") or uid)
        super().__init__(uid, self._name)
        self._end_flag = True
        self._ended = threading.Event()
        self._failed: str | None = None
        self._task: CollectTask | None = None
        self._tasks_change = threading.RLock()  # tasks begin and end one by one
        self._http: HttpWorker | None = None

    # ------------------------------------------------------------------ the link of collectors

    @abstractmethod
    def get_policy_update_info(self, path: str) -> Any:
        """The newest published state of a policy, as its ``load_state_dict`` takes it, with the
        training iteration as ``iter``.

        Raises:
            FileNotFoundError: None was published yet (or return ``None``).
        """

    @abstractmethod
    def send_metadata(self, metadata: Mapping[str, Json]) -> None:
        """Tell the coordinator of samples that were sent; ``metadata['data_id']`` names them.

        Call it by ``super()`` to leave the message until the coordinator asks for it, with task and
        buffer added; that waits while there are too many.
        """
        if self._task is None:
            raise ConfigError("there is no task that the samples could belong to")
        self._task.put(metadata)

    @abstractmethod
    def send_stepdata(self, stepdata: Any, *args: Any) -> None:
        """Bring samples to where learners find them.

        Define it as ``send_stepdata(path, stepdata)``: it is called with their name and with them.
        """

    @classmethod
    def remove_stepdata(cls, cfg: EasyDict, path: str) -> None:
        """Remove samples that nobody needs any more; those that are not there are no error.

        Called in the coordinator's process as well, which tells when that is. Samples whose type
        does not define it are never removed.

        Args:
            cfg: The worker's config.
            path: Their name.
        """

    def new_data_id(self) -> str:
        """A name that no other samples of the run have; it tells buffer and worker."""
        buffer_id = None if self._task is None else self._task.buffer_id
        return chunk_name(buffer_id or "", self._name, self._next_serial())

    def backlog(self) -> int:
        """Messages that the coordinator has not asked for yet."""
        return 0 if self._task is None else self._task.backlog()

    # ------------------------------------------------------------------ requests

    def handle(self, request: Request[Answer]) -> Answer:
        """Answer a request.

        Raises:
            TaskFail: It failed, or is none to a collector; with type, message, traceback.
        """
        answer: object
        match request:
            case ResourceRequest():
                answer = self._resources()
            case StartTask(kind="collector", info=info):
                answer = self._start_task(info)
            case SamplesRequest():
                answer = self._tell(request)
            case CloseTask(kind="collector"):
                answer = self._close_task()
            case _:
                text = f"a collector knows no {type(request).__name__}"
                raise ErrorReport("UnknownTask", text).task_fail()
        return cast(Answer, answer)

    def _resources(self) -> Resources:
        found = {"cpu": os.cpu_count() or 1, "gpu": torch.cuda.device_count()}
        found.update(self._cfg.get("resource") or {})
        return Resources(found.pop("cpu"), found.pop("gpu"), others=found)

    def _start_task(self, info: Task) -> None:
        with self._tasks_change:
            self._give_up_task("another task was started")
            try:
                self.begin_task(info)
            except DingError as err:
                raise ErrorReport.of(err).task_fail() from err

    def _tell(self, request: SamplesRequest) -> SamplesAnswer:
        task = self._require_task()
        single = request.wait is None and request.quota is None
        wait = durations.ANSWER_WAIT if request.wait is None else request.wait
        try:
            wait = min(wait, durations.COLLECTOR_LONGEST_WAIT)
            return task.poll(wait, request.quota, single, request.gather)
        except BaseException as err:
            report = ErrorReport.of(err)
            _logger.error("task %s failed: %s", task.task_id, report)
            with self._tasks_change:
                if self._task is task:
                    self.end_task()
            raise report.task_fail() from err

    def _close_task(self) -> TaskReport:
        with self._tasks_change:
            task = self._require_task()
            task.close(durations.COLLECTOR_REPORT)
            try:
                return self._report(task)
            except Exception as err:
                raise ErrorReport.of(err).task_fail() from err
            finally:
                self.end_task()

    def _report(self, task: CollectTask) -> TaskReport:
        """How a task that was closed has ended.

        Raises:
            Exception: What its collector raised.
        """
        return task.report()

    def _require_task(self) -> CollectTask:
        task = self._task
        if task is None:
            text = "no task is running here; expected 'collector_start_task' first"
            raise ErrorReport("NoTask", text).task_fail()
        return task

    # ------------------------------------------------------------------ tasks

    @property
    def task(self) -> CollectTask | None:
        """The task that runs."""
        return self._task

    def begin_task(self, task_info: Task) -> CollectTask:
        """Let a new collector work on a task, in a thread; one that still runs is closed.

        Raises:
            ConfigError: A field of the task is missing.
        """
        if self._task is not None:
            self.end_task()
        task = CollectTask(task_info, self._create_collector(task_info), self._drop)
        self._task = task
        task.start()
        return task

    def end_task(self) -> None:
        """Stop the task that runs, if there is one; environments that failed are replaced."""
        task, self._task = self._task, None
        if task is None:
            return
        task.close()
        if task.hangs or isinstance(task.error, EnvError):
            self.parts.discard_envs()

    def _create_collector(self, task_info: Task) -> BaseParallelCollector:
        """Build the collector that a task names, and be its link."""
        cfg = task_info.get("collector_cfg")
        if not isinstance(cfg, Mapping) or not cfg.get("type"):
            raise ConfigError(
                f"the task's collector_cfg is {cfg!r:.200}; expected a dict with 'type', the name "
                "of a registered parallel collector, for instance 'zergling'"
            )
        collector = create_parallel_collector(EasyDict(cfg))
        collector.attach(self)
        return collector

    def _drop(self, metadata: Mapping[str, object]) -> None:
        """Samples were sent that the coordinator will never be told of."""
        self.remove_stepdata(self._cfg, str(metadata.get("data_id", "")))

    def _give_up_task(self, cause: str) -> None:
        with self._tasks_change:
            if self._task is not None:
                _logger.warning("task %s is given up: %s", self._task.task_id, cause)
                self.end_task()

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin to take requests; over HTTP if the config says where the coordinator is."""
        if not self._end_flag:
            return
        self._end_flag = False
        self._ended.clear()
        self._http = self._listener()
        if self._http is not None:
            self._http.start()

    def _listener(self) -> HttpWorker | None:
        """What lets requests come over HTTP, if they do."""
        return HttpWorker(self, self._cfg, self._fail) if HttpWorker.wanted(self._cfg) else None

    def coordinator_lost(self, cause: str) -> None:
        """The coordinator is gone without a word: the task ends; another one may come."""
        self._give_up_task(cause)

    def released(self) -> None:
        """The coordinator has said that the run is over."""
        self._give_up_task("the coordinator has disconnected")
        self._ended.set()

    def close(self) -> None:
        """Stop the task, close the environments, leave. Closing twice does nothing."""
        if self._http is not None:
            self._http.stop_joining()
        self._give_up_task("the worker is closed")
        if not self._end_flag and self._http is not None:
            self._http.close()
        self._end_flag = True
        self._ended.set()
        self.parts.close()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the worker has nothing more to do; returns whether it has not."""
        return self._ended.wait(timeout)

    def __del__(self) -> None:
        # Whoever waits here could wait for ever: the task is asked to end, no more.
        with contextlib.suppress(Exception):
            if self._task is not None:
                self._task.collector.close()
            self._ended.set()

    def _fail(self, cause: str) -> None:
        self._failed = cause
        self._ended.set()

    @property
    def failed(self) -> str | None:
        """Why the worker cannot go on, if it cannot."""
        return self._failed

    @property
    def address(self) -> str:
        """Where the coordinator reaches it, as ``host:port``; known once it was started."""
        if self._http is None:
            raise ConfigError("it does not listen: its config names no port and no coordinator")
        return self._http.address

    @property
    def collector_uid(self) -> str:
        """Unlike that of any other worker, or of this one in its lives before."""
        return self._collector_uid


def create_comm_collector(cfg: EasyDict) -> BaseCommCollector:
    """Build the registered comm collector ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    collector: BaseCommCollector = COMM_COLLECTOR_REGISTRY.build(cfg.type, cfg=cfg)
    return collector
