"""The collector worker: its tasks, the samples that it writes and the policies that it reads."""

import logging
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import torch
from easydict import EasyDict

from ding.data import Columns
from ding.data.chunks import chunk_name
from ding.data.tree import tree_leaves
from ding.utils import durations, get_task_uid
from ding.utils.errors import ConfigError, DingError, EnvError
from ding.worker.collector.base_parallel_collector import create_parallel_collector
from ding.worker.collector.collector_link import CollectorLink
from ding.worker.collector.comm.collect_task import CollectTask, own_task
from ding.worker.comm_worker import CommWorker, make_service
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

Answer = TypeVar("Answer")

_logger = logging.getLogger(__name__)

#: Upper bound of the bytes of a stored chunk in addition to the samples.
HEADER_SIZE = 4096


class BaseCommCollector(CommWorker, CollectorLink):
    """Builds a collector for each task, runs it in a thread, and is its `CollectorLink`.

    A subclass defines the transport of samples and policies, in the three abstract methods.

    Args:
        cfg: The worker's config; see `CommWorker`.
    """

    kind: Kind = "collector"

    def __init__(self, cfg: Mapping[str, object]) -> None:
        uid = get_task_uid()
        name = str(cfg.get("name") or uid)
        CommWorker.__init__(self, cfg, name)
        CollectorLink.__init__(self, uid, name)
        self._task: CollectTask | None = None
        self._tasks_change = threading.RLock()  # tasks begin and end one at a time
        self._versions: dict[str, object] = {}  # last seen version of each policy
        self._sample_size = 0.0
        self._kept_policy: str | None = None  # name of the copy of the weights being evaluated

    def _answer_in_task(self, request: Request[Answer]) -> object:
        if not isinstance(request, SamplesRequest):
            return super()._answer_in_task(request)
        task = self._require_task()
        wait = durations.ANSWER_WAIT if request.wait is None else request.wait
        try:
            wait = min(wait, durations.COLLECTOR_LONGEST_WAIT)
            return task.poll(wait, request.quota, request.gather)
        except BaseException as err:
            report = ErrorReport.of(err)
            _logger.error("task %s failed: %s", task.task_id, report)
            with self._tasks_change:
                # Another task may have begun while this one's collector was asked.
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
            # The report follows the collector's last step, so that it counts all steps.
            task.close(durations.COLLECTOR_REPORT)
            try:
                report, kept = task.report(), self._kept_policy
                if kept is None:
                    return report
                self._kept_policy = None  # the coordinator removes the copy
                facts = {"eval_policy": kept, "policy_iter": report.info["train_iter"]}
                return replace(report, info={**report.info, **facts})
            except Exception as err:
                raise ErrorReport.of(err).task_fail() from err
            finally:
                self.end_task()

    def _require_task(self) -> CollectTask:
        if self._task is None:
            text = "no task is running here; expected 'collector_start_task' first"
            raise ErrorReport("NoTask", text).task_fail()
        return self._task

    @property
    def task(self) -> CollectTask | None:
        """The running task; in a collector's thread, that collector's task even after it ended."""
        return own_task.get() or self._task

    def begin_task(self, task_info: Task) -> CollectTask:
        """Start a new collector on a task, in a thread; a running task is closed first.

        Raises:
            ConfigError: A field of the task is missing.
        """
        self.end_task()
        cfg = task_info.get("collector_cfg")
        if not isinstance(cfg, Mapping) or not cfg.get("type"):
            raise ConfigError(
                f"the task's collector_cfg is {cfg!r:.200}; expected a dict with 'type', the name "
                "of a registered parallel collector, for instance 'zergling'"
            )
        collector = create_parallel_collector(EasyDict(cfg))
        collector.attach(self)
        self._task = CollectTask(task_info, collector, self._drop)
        self._task.start()
        return self._task

    def end_task(self) -> None:
        """Stop the running task, if any; failed environments are replaced."""
        task, self._task = self._task, None
        if task is not None:
            task.close()
            # Failed environments may be in any state, and a hanging one is still being stepped in
            # the old task's thread.
            if task.hangs or isinstance(task.error, EnvError):
                self.parts.discard_envs()
        self._drop_kept_policy()

    def _give_up_task(self, cause: str) -> None:
        with self._tasks_change:
            if self._task is not None:
                _logger.warning("task %s is given up: %s", self._task.task_id, cause)
                self.end_task()

    def _finish(self) -> None:
        self.parts.close()

    def _ask_to_end(self) -> None:
        if self._task is not None:
            self._task.collector.close()

    def policy_changed(self, path: str) -> bool:
        """Whether the policy may have been published again since the last call; cheap."""
        version = self.stores.weights.version(path)
        if version is None or version == self._versions.get(path):
            return False
        self._versions[path] = version
        return True

    @abstractmethod
    def get_policy_update_info(self, path: str) -> Any:
        """The newest published state of a policy, in the form for its ``load_state_dict``, with
        the training iteration as ``iter``.

        Raises:
            CheckpointError: It cannot be read; also a `FileNotFoundError` if there is none.
        """

    def _keep(self, path: str) -> str | None:
        """Copy the weights being evaluated under a separate name, so that the best can be kept."""
        task = self.task
        if task is None or not task.collector_cfg.get("eval_flag"):
            return None
        paths = task.collector_cfg.get("policy_update_path")
        first = paths[0] if isinstance(paths, list | tuple) and paths else paths
        if self._kept_policy is not None or path != first:
            return None
        name = f"{path}.{self._next_serial()}"
        if not self.stores.weights.keep(path, name):
            return None
        self._kept_policy = name
        return name

    def _drop_kept_policy(self) -> None:
        kept, self._kept_policy = self._kept_policy, None
        if kept is not None:
            _or_warn(self.stores.weights.remove, kept)

    def new_data_id(self) -> str:
        """A unique name for samples, which contains those of the buffer and the worker."""
        buffer_id = None if self.task is None else self.task.buffer_id
        return chunk_name(buffer_id or "", self._name, self._next_serial())

    def chunk_rows(self, samples: Sequence[object]) -> int:
        """Number of samples to send at once; see `CollectTask.chunk_rows`."""
        if self.task is None:
            return len(samples)
        return self.task.chunk_rows(len(samples), self._expected_size(samples) / len(samples))

    @abstractmethod
    def send_stepdata(self, stepdata: Any, *args: Any) -> None:
        """Store samples under a name. The base class calls, and a subclass defines, it as
        ``send_stepdata(path, stepdata)``. Waits until there is room.

        Args:
            path: The name.
            stepdata: Columns, a list of rows, or one row; or the same as bytes, packed by the
                collector's ``compressor``.

        Raises:
            CheckpointWriteError: The store cannot write the samples.
            DataError: `stepdata` has another type.
        """

    @abstractmethod
    def send_metadata(self, metadata: Mapping[str, Json]) -> None:
        """Report stored samples by ``metadata['data_id']``; see `CollectTask.put`."""

    def backlog(self) -> int:
        return 0 if self.task is None else self.task.backlog()

    def _expected_size(self, rows: Sequence[object]) -> int:
        columns = rows.columns_or_none() if isinstance(rows, Columns) else None
        if columns is None:
            return int(self._sample_size * len(rows)) + HEADER_SIZE
        size: int = sum(leaf.nbytes for leaf in tree_leaves(columns))
        return size + HEADER_SIZE

    def _drop(self, data_id: str) -> None:
        """Remove samples that no message will report."""
        _or_warn(self.stores.samples.remove, data_id)

    @property
    def collector_uid(self) -> str:
        """An id that is unique among all workers and all restarts of this worker."""
        return self._collector_uid


def create_comm_collector(cfg: EasyDict) -> BaseCommCollector:
    """Build the registered comm collector ``cfg.type``; ``cfg.import_names`` are imported first."""
    return cast(BaseCommCollector, make_service("collector", cfg))


def _or_warn(remove: Callable[[str], None], name: str) -> None:
    try:
        remove(name)
    except DingError as err:
        _logger.warning("%s is left behind: %s", name, err)
