"""A collector worker: tasks over HTTP, samples and policies through shared folders."""

import contextlib
import logging
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ding.data import Columns, tree_map
from ding.data.chunks import SharedFolder, chunk_name, write_chunk
from ding.torch_utils.weights_file import WeightsWatch, read_weights
from ding.utils import COMM_COLLECTOR_REGISTRY, durations, get_data_decompressor
from ding.utils.errors import ConfigError, DataError, DingError
from ding.worker.collector.base_parallel_collector import BaseParallelCollector
from ding.worker.collector.comm.base_comm_collector import BaseCommCollector
from ding.worker.collector.comm.collect_task import CollectTask
from ding.worker.collector.comm.collector_slave import CollectorSlave
from ding.worker.comm_join import Joiner
from ding.worker.error_report import ErrorReport

__all__ = ["CollectorSlave", "FlaskFileSystemCollector"]

_logger = logging.getLogger(__name__)

#: Bytes of a chunk's file beside the samples, generously.
HEADER_SIZE = 4096
#: Samples of a chunk even if there is no room for them: then the collector waits.
MIN_ROWS = 16


@COMM_COLLECTOR_REGISTRY.register("flask_fs")
class FlaskFileSystemCollector(BaseCommCollector):
    """Listens for a coordinator, or joins it, and works on its collector tasks.

    Args:
        cfg: ``host``, ``port`` (``'auto'`` or 0 for any), ``path_data``, ``path_policy``; perhaps
            ``name``, ``run_key``, ``coordinator`` (host and port, to be joined at if the port is
            any), ``channel``, ``heartbeat_span``, ``resource``.

    Raises:
        ConfigError: A folder cannot be used.
    """

    def __init__(self, cfg: dict) -> None:
        super().__init__(cfg)
        cfg = self._cfg
        self._data_folder = SharedFolder(cfg.get("path_data", "./data"))
        self._policy_folder = SharedFolder(cfg.get("path_policy", "./policy"))
        self._watches: dict[str, WeightsWatch] = {}
        self._sizes: dict[str, int] = {}  # of files that the coordinator was not told of
        self._sample_size = 0.0
        self._kept_policy: str | None = None  # a copy of the weights that are evaluated
        self._requests = threading.RLock()  # tasks begin and end one by one
        port = cfg.get("port", 0)
        self._slave = CollectorSlave(
            cfg.get("host"),
            0 if port in ("auto", None) else int(port),
            heartbeat_span=cfg.get("heartbeat_span"),
            channel=cfg.get("channel"),
            key=cfg.get("run_key"),
            on_death=self._give_up,
            callback_fn={
                "deal_with_resource": self.deal_with_resource,
                "deal_with_collector_start": self.deal_with_collector_start,
                "deal_with_collector_data": self.deal_with_collector_data,
                "deal_with_collector_close": self.deal_with_collector_close,
                "deal_with_lost_connection": self._lost_coordinator,
                "deal_with_disconnection": self._left_by_coordinator,
            },
        )
        self._joiner = self._make_joiner()

    def _make_joiner(self) -> Joiner | None:
        coordinator = self._cfg.get("coordinator")
        if not coordinator or self._cfg.get("port", "auto") not in ("auto", 0, None):
            return None  # with a port of its own, it is in the coordinator's table
        return Joiner(
            (coordinator[0], int(coordinator[1])),
            "collector",
            str(self._cfg.get("name", self._collector_uid)),
            lambda: self._slave.my_address,
            self._cfg.get("run_key"),
            self._cfg.get("channel"),
            self._give_up,
        )

    # ------------------------------------------------------------------ life

    @property
    def port(self) -> int:
        """Where it listens, once it was started."""
        return self._slave.port

    @property
    def address(self) -> str:
        """Where the coordinator reaches it, as ``host:port``; known once it was started."""
        return self._slave.my_address

    def start(self) -> None:
        """Listen, and join the coordinator if its address is known; does not wait."""
        if not self._end_flag:
            return
        super().start()
        self._slave.start()
        if self._joiner is not None:
            self._joiner.start()

    def close(self) -> None:
        """Stop the task, leave the coordinator. Closing twice does nothing."""
        if self._joiner is not None:
            self._joiner.close()
        self._abort("the worker is closed")
        if not self._end_flag:
            self._slave.close()
        super().close()

    def __del__(self) -> None:
        # Whoever waits here could wait for ever: the task is asked to end, no more.
        with contextlib.suppress(Exception):
            if self._task is not None:
                self._task.collector.close()
            self._ended.set()

    def _give_up(self, cause: str) -> None:
        self._failed = cause
        self._ended.set()

    def _lost_coordinator(self, cause: str) -> None:
        self._abort(cause)
        if self._joiner is not None:
            self._joiner.lost()

    def _left_by_coordinator(self) -> None:
        self._abort("the coordinator has disconnected")
        self._ended.set()  # the run is over

    def _abort(self, cause: str) -> None:
        with self._requests:
            if self._task is not None:
                _logger.warning("task %s is given up: %s", self._task.info.get("task_id"), cause)
                self.end_task()

    # ------------------------------------------------------------------ tasks

    def deal_with_resource(self) -> dict[str, Any]:
        """What this worker has: numbers of CPUs and GPUs, and that it speaks our extensions."""
        given = self._cfg.get("resource") or {}
        found = {"cpu": os.cpu_count() or 1, "gpu": torch.cuda.device_count()}
        return {**found, **given, "ours": 1}

    def deal_with_collector_start(self, task_info: Mapping[str, Any]) -> None:
        """Begin a task; one that still runs is closed first.

        Raises:
            TaskFail: The task cannot be begun; says why.
        """
        with self._requests:
            self._abort("another task was started")
            try:
                self.begin_task(task_info)
            except DingError as err:
                raise ErrorReport.of(err).task_fail() from err

    def deal_with_collector_data(
        self, quota: float | None = None, wait: float | None = None
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """What there is to tell of the task; waits for news.

        Args:
            quota: Bytes that this task may have written by now, if there is a limit.
            wait: Seconds to wait for news.

        Returns:
            Messages and the progress as a list; one of them, if neither argument came: then the
            coordinator is one that takes a sample at a time.

        Raises:
            TaskFail: What the collector raised.
        """
        task = self._require_task()
        foreign = quota is None and wait is None
        span = durations.ANSWER_WAIT if wait is None else _amount("wait", wait)
        span = min(span, durations.COLLECTOR_LONGEST_WAIT)
        quota = None if quota is None else _amount("quota", quota)
        try:
            answer = task.poll(span, quota, single=foreign)
        except BaseException as err:
            failure = ErrorReport.of(err)
            _logger.error("task %s failed: %s", task.ids["task_id"], failure)
            with self._requests:
                if self._task is task:
                    self.end_task()
            raise failure.task_fail() from err
        return answer[0] if foreign else answer

    def deal_with_collector_close(self) -> dict[str, Any]:
        """End the task; returns its report.

        Raises:
            TaskFail: What the collector raised, or that it hangs.
        """
        with self._requests:
            task = self._require_task()
            task.close(durations.COLLECTOR_REPORT)
            try:
                info = task.finish_info()
                if self._kept_policy is not None and not task.foreign:
                    info.update(eval_policy=self._kept_policy, policy_iter=info["train_iter"])
                    self._kept_policy = None  # the coordinator's now
                return info
            except Exception as err:
                raise ErrorReport.of(err).task_fail() from err
            finally:
                self.end_task()

    def end_task(self) -> None:
        super().end_task()
        for name in list(self._sizes):
            self._remove(self._data_folder, name)
        kept, self._kept_policy = self._kept_policy, None
        if kept is not None:
            self._remove(self._policy_folder, kept)

    def _require_task(self) -> CollectTask:
        task = self._task
        if task is None:
            text = "no task is running here; expected 'collector_start_task' first"
            raise ErrorReport("NoTask", text).task_fail()
        return task

    def _create_collector(self, task_info: Mapping[str, Any]) -> BaseParallelCollector:
        self._watches.clear()
        return super()._create_collector(task_info)

    # ------------------------------------------------------------------ the link

    def policy_changed(self, path: str) -> bool:
        watch = self._watches.get(path)
        if watch is None:
            watch = self._watches[path] = WeightsWatch(self._policy_folder, path)
        return watch.changed()

    def get_policy_update_info(self, path: str) -> dict[str, Any]:
        """The weights published under the name, with ``iter``.

        Raises:
            CheckpointError: There are none (then it is a `FileNotFoundError`, too), or they cannot
                be read.
        """
        self.policy_changed(path)  # what is read now is not new any more
        kept = self._keep(path)
        try:
            state, facts = read_weights(self._policy_folder, kept or path)
        except DingError:
            if kept is not None:
                self._kept_policy = None
                self._remove(self._policy_folder, kept)
            raise
        return {**state, "iter": int(facts.get("policy_iter", state.get("iter", 0)))}

    def _keep(self, path: str) -> str | None:
        """Give the weights that an evaluation is of a name of their own; the best will be kept."""
        task = self._task
        if task is None or task.foreign or not task.info["collector_cfg"].get("eval_flag"):
            return None
        if self._kept_policy is not None or path != _first(task.info):
            return None
        name = f"{path}.{super().new_data_id()}"
        source, target = self._policy_folder.file(path), self._policy_folder.file(name)
        try:
            os.link(source, target)
        except FileNotFoundError:
            return None
        except OSError:  # no links in this file system; weights are replaced, never written over
            shutil.copyfile(source, target)
        self._kept_policy = name
        return name

    def new_data_id(self) -> str:
        task = self._task
        buffer_id = "" if task is None else str(task.info.get("buffer_id"))
        name = str(self._cfg.get("name", "collector"))
        return chunk_name(buffer_id, name, super().new_data_id())

    def send_stepdata(self, path: str, stepdata: Any) -> None:  # type: ignore[override]
        """Write samples to a file of the shared folder.

        Args:
            path: Name of the file.
            stepdata: Columns, a list of rows, or one row; or these as the collector's
                ``compressor`` packed them.

        Raises:
            CheckpointWriteError: The folder cannot be written to.
            DataError: It is something else.
        """
        task = self._task
        if isinstance(stepdata, bytes) and task is not None:
            # Learners map files as they are; and what they load, they check no less than this.
            stepdata = get_data_decompressor(task.collector.compressor)(stepdata)
        rows: Any = [stepdata] if isinstance(stepdata, Mapping) else stepdata
        if not isinstance(rows, list):
            raise DataError(
                f"send_stepdata({path!r}) got a {type(stepdata).__name__}; expected samples: "
                "columns, a list of dicts, or a dict"
            )
        if task is not None:
            task.reserve(self._expected_size(rows))

        def write() -> int:
            return write_chunk(self._data_folder, path, rows)

        size = write() if task is None else task.write(write)
        self._sizes[path] = size
        self._sample_size = size / len(rows)
        if task is not None:
            task.count_written(size)

    def send_metadata(self, metadata: dict[str, Any]) -> None:
        """Leave a message for the coordinator.

        Args:
            metadata: ``data_id`` and more; task, buffer and size of the file are added.
        """
        task = self._task
        if task is None:
            raise ConfigError("there is no task that the samples could belong to")
        data_id = metadata.get("data_id", "")
        size = self._sizes.get(data_id)
        task.put(metadata if size is None else {"size": size, **metadata})
        self._sizes.pop(data_id, None)

    def backlog(self) -> int:
        task = self._task
        return 0 if task is None else task.backlog()

    def chunk_rows(self, samples: Sequence[Any]) -> int:
        """One for a coordinator that takes them one by one; what there is room for else."""
        task = self._task
        if task is None:
            return len(samples)
        if task.one_by_one():
            return 1
        room = task.room()
        if room is None:
            return len(samples)
        size = self._expected_size(samples) / len(samples)
        return max(1, min(len(samples), max(MIN_ROWS, int(room // size))))

    def _expected_size(self, rows: Any) -> int:
        columns = rows.columns_or_none() if isinstance(rows, Columns) else None
        if columns is None:
            return int(self._sample_size * len(rows)) + HEADER_SIZE
        total = 0

        def count(leaf: Any) -> None:
            nonlocal total
            total += leaf.nbytes

        tree_map(count, columns)
        return total + HEADER_SIZE

    def _drop(self, metadata: Mapping[str, Any]) -> None:
        self._remove(self._data_folder, str(metadata.get("data_id", "")))

    def _remove(self, folder: SharedFolder, name: str) -> None:
        self._sizes.pop(name, None)
        try:
            folder.remove(name)
        except DingError as err:
            _logger.warning("%s is left behind in %s: %s", name, folder.path, err)


def _amount(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        text = f"'{name}' of 'collector_data_task' is {value!r:.80}; expected a number >= 0"
        raise ErrorReport("BadTask", text).task_fail()
    return value


def _first(task_info: Mapping[str, Any]) -> str | None:
    """Name of the first player's policy."""
    path = task_info["collector_cfg"].get("policy_update_path")
    return path[0] if isinstance(path, list | tuple) and path else path
