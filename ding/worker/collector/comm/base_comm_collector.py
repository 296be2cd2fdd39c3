"""What connects collectors to the rest of a run, whatever messages and samples travel by."""

import logging
import os
import re
import threading
from abc import abstractmethod
from collections.abc import Container, Mapping
from typing import Any, TypeVar

import torch
from easydict import EasyDict

from ding.data.chunks import chunk_name
from ding.utils import COMM_COLLECTOR_REGISTRY, durations, get_task_uid, import_module
from ding.utils.errors import ConfigError, DingError, EnvError
from ding.worker.collector.base_parallel_collector import (
    BaseParallelCollector,
    create_parallel_collector,
)
from ding.worker.collector.collector_link import CollectorLink
from ding.worker.collector.comm.collect_task import CollectTask
from ding.worker.comm_worker import CommWorker
from ding.worker.error_report import ErrorReport
from ding.worker.messages import (
    Json,
    Kind,
    Request,
    Resources,
    SamplesRequest,
    Task,
    TaskReport,
)
from ding.worker.seams import Samples, SampleStore

Answer = TypeVar("Answer")

_logger = logging.getLogger(__name__)


class BaseCommCollector(CommWorker, CollectorLink):
    """A worker that builds collectors for tasks and is their `CollectorLink`.

    A comm type of one's own defines the three abstract methods, which say what samples and weights
    travel by.

    Args:
        cfg: The worker's config: ``name``, ``resource``, what the comm type reads, and for HTTP
            what `ding.worker.engines.http_worker.HttpWorker` reads.
    """

    kind: Kind = "collector"
    #: Whether only its own workers know where samples are.
    has_own_samples = True

    def __init__(self, cfg: Mapping[str, object]) -> None:
        uid = get_task_uid()
        name = str(cfg.get("name") or uid)
        CommWorker.__init__(self, cfg, name)
        CollectorLink.__init__(self, uid, name)
        self._task: CollectTask | None = None
        self._tasks_change = threading.RLock()  # tasks begin and end one by one

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

    def _answer_in_task(self, request: Request[Answer]) -> object:
        if not isinstance(request, SamplesRequest):
            return super()._answer_in_task(request)
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
        """How a task that was closed has ended; raises what its collector has raised."""
        return task.report()

    def _require_task(self) -> CollectTask:
        if self._task is None:
            text = "no task is running here; expected 'collector_start_task' first"
            raise ErrorReport("NoTask", text).task_fail()
        return self._task

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
        self.end_task()
        self._task = CollectTask(task_info, self._create_collector(task_info), self._drop)
        self._task.start()
        return self._task

    def end_task(self) -> None:
        """Stop the task that runs, if there is one; environments that failed are replaced."""
        task, self._task = self._task, None
        if task is not None:
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

    def _drop(self, data_id: str) -> None:
        """Samples were sent that the coordinator will never be told of."""
        self.remove_stepdata(self._cfg, data_id)

    def _give_up_task(self, cause: str) -> None:
        with self._tasks_change:
            if self._task is not None:
                _logger.warning("task %s is given up: %s", self._task.task_id, cause)
                self.end_task()

    # ------------------------------------------------------------------ life

    def _finish(self) -> None:
        self.parts.close()

    def _ask_to_end(self) -> None:
        if self._task is not None:
            self._task.collector.close()

    @property
    def collector_uid(self) -> str:
        """Unlike that of any other worker, or of this one in its lives before."""
        return self._collector_uid


def create_comm_collector(cfg: EasyDict) -> BaseCommCollector:
    """Build the registered comm collector ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    collector: BaseCommCollector = COMM_COLLECTOR_REGISTRY.build(cfg.type, cfg=cfg)
    return collector


class CommTypeSamples:
    """A sample store whose samples only the workers of a comm type can put and get.

    Args:
        comm_type: The collectors' class.
        cfg: The config of one of them.
    """

    def __init__(self, comm_type: type[BaseCommCollector], cfg: Mapping[str, object]) -> None:
        self._comm_type, self._cfg = comm_type, EasyDict(cfg)

    def put(self, name: str, samples: Samples) -> int:
        raise ConfigError(f"only a {self._comm_type.__name__} brings samples to their place")

    def get(self, name: str) -> Samples:
        raise ConfigError(f"what a {self._comm_type.__name__} has sent, its learners read")

    def size(self, name: str) -> int | None:
        """It is not known here; collectors may tell it in their metadata."""
        return None

    def remove(self, name: str) -> None:
        self._comm_type.remove_stepdata(self._cfg, name)

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        """Names that nobody has told of are not known here."""
        return []


def samples_of_comm_type(system: Mapping[str, object]) -> SampleStore | None:
    """Where the collectors' samples are, if their comm type has a place of its own for them.

    Args:
        system: The compiled system config, with an entry for each worker.
    """
    for name, entry in system.items():
        if name.startswith("collector") and isinstance(entry, Mapping) and entry.get("type"):
            import_module(entry.get("import_names", []))
            comm_type: object = COMM_COLLECTOR_REGISTRY.get(entry["type"])
            if isinstance(comm_type, type) and issubclass(comm_type, BaseCommCollector):
                return CommTypeSamples(comm_type, entry) if comm_type.has_own_samples else None
            return None
    return None
