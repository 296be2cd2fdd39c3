"""A collector in a separate thread, and its messages to the coordinator."""

import errno
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar

from ding.utils import durations
from ding.utils.errors import CheckpointWriteError
from ding.utils.usage import reported_usage
from ding.worker.collector.base_parallel_collector import BaseParallelCollector, TaskClosed
from ding.worker.messages import (
    ChunkReport,
    CollectProgress,
    Json,
    SamplesAnswer,
    Task,
    TaskReport,
)

_logger = logging.getLogger(__name__)

#: Maximum number of pending messages; the collector waits when there are more.
MAX_BACKLOG = 256
#: Minimum number of samples in a chunk, even without room for them: the collector then waits.
MIN_ROWS = 16
#: Maximum number of messages in one answer.
MAX_ANSWER = 256
INF = float("inf")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
#: The task whose collector runs in this thread.
#: Not the worker's current task: a collector that returns late from a hung environment or disk
#: would report its samples to the next task.
own_task: "ContextVar[CollectTask | None]" = ContextVar("own_task", default=None)


class CollectTask:
    """Runs one task; all methods may be called in any thread.

    Args:
        info: The task: ``task_id``, ``buffer_id`` and ``collector_cfg``.
        collector: The task's collector.
        on_unsent: Called with the name of each chunk that no message will report.

    Attributes:
        ids: Fields of every message.
        error: The collector's exception.
    """

    def __init__(
        self,
        info: Task,
        collector: BaseParallelCollector,
        on_unsent: Callable[[str], None] = lambda data_id: None,
    ) -> None:
        self.collector = collector
        self.task_id, self.buffer_id = _text(info.get("task_id")), _text(info.get("buffer_id"))
        given = info.get("collector_cfg")
        self.collector_cfg: Mapping[str, object] = given if isinstance(given, Mapping) else {}
        self.ids: dict[str, Json] = {"task_id": self.task_id, "buffer_id": self.buffer_id}
        self._on_unsent = on_unsent
        self._changed = threading.Condition()  # guards the attributes below
        self.error: BaseException | None = None
        self._pending: deque[ChunkReport] = deque()
        self._unreported: dict[str, int] = {}  # bytes of chunks without a message
        self._ended = False
        self._closed = False
        self._written = 0
        self._quota: float | None = None
        self._is_asked = False
        self._waiting: str | None = None
        self._needed = 0
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    def start(self) -> None:
        """Start collecting in the task's own thread."""
        self._thread.start()

    def put(self, metadata: Mapping[str, Json]) -> None:
        """Queue a message for the coordinator; waits while too many are pending.

        Args:
            metadata: ``data_id`` and further fields; ``size`` if this task did not write the
                samples.

        Raises:
            TaskClosed: The task was closed.
        """
        data_id = str(metadata.get("data_id", ""))
        meta = {**self.ids, **metadata}
        if data_id in self._unreported:
            meta.setdefault("size", self._unreported[data_id])
        size = meta.get("size")
        size = size if isinstance(size, int) else 0
        report = ChunkReport(data_id, _text(meta["task_id"]), _text(meta["buffer_id"]), size, meta)
        with self._changed:
            self._wait("coordinator", lambda: len(self._pending) < MAX_BACKLOG)
            self._pending.append(report)
            self._unreported.pop(data_id, None)
            self._changed.notify_all()

    def backlog(self) -> int:
        """Number of pending messages."""
        return len(self._pending)

    def chunk_rows(self, samples: int, size: float) -> int:
        """Number of ``samples``, of about ``size`` bytes each, to send at once.

        Limited by the free room, which is known after the coordinator's first request.
        """
        with self._changed:
            self._wait("coordinator", lambda: self._is_asked)
            return int(min(samples, max(MIN_ROWS, self._space() / size)))

    def _space(self) -> float:
        """Bytes that may be written now."""
        return INF if self._quota is None else max(0.0, self._quota - self._written)

    def write(self, name: str, size: int, write: Callable[[], int]) -> int:
        """Write a chunk when there is room for it; retry while the disk is full.

        Args:
            name: The chunk's name.
            size: Its approximate size in bytes.
            write: Writes the chunk; returns its size in bytes.

        Raises:
            TaskClosed: The task ended in the meantime.
            CheckpointWriteError: The file cannot be written, or the disk stays full.
        """
        with self._changed:
            self._needed = size
            try:
                self._wait("space", lambda: size <= self._space())
            finally:
                self._needed = 0
        deadline = time.monotonic() + durations.DISK_PATIENCE
        while True:
            try:
                # Without the lock: a hanging disk must not delay answers to the coordinator.
                written = write()
            except CheckpointWriteError as err:
                if err.errno not in _DISK_FULL or time.monotonic() >= deadline:
                    raise
            else:
                self._written += written
                self._unreported[name] = written
                return written
            with self._changed:
                until = time.monotonic() + durations.DISK_PAUSE
                self._wait("disk", lambda until=until: time.monotonic() >= until)  # type: ignore[misc]

    def _wait(self, reason: str, ready: Callable[[], bool]) -> None:
        try:
            while not self._closed and not ready():
                self._waiting = reason
                self._changed.wait(durations.COLLECTOR_WAIT_LOOK)
        finally:
            self._waiting = None
        if self._closed:
            raise TaskClosed

    def _run(self) -> None:
        own_task.set(self)
        error: BaseException | None = None
        try:
            self.collector.start()
        except TaskClosed:
            pass
        except BaseException as err:
            error = err
        with self._changed:
            if not self._closed:  # errors of a closed collector do not matter
                self.error = self.error or error
            self._ended = True
            self._changed.notify_all()
        if self._closed:  # chunks that were written after `close` has stopped waiting
            self._drop_unsent()

    def poll(
        self,
        wait: float = 0.5,
        quota: float | None = None,
        gather: float | None = None,
    ) -> SamplesAnswer:
        """The pending messages, oldest first, and the progress of the task.

        Args:
            wait: Seconds to wait for a message or the end of the task.
            quota: Total bytes that the task may have written so far; ``None`` for no limit.
            gather: Seconds for which the first message waits for more, since a request costs the
                coordinator more than a message; ``None``: a few hundredths.

        Raises:
            Exception: The exception that stopped the collector.
        """
        deadline = time.monotonic() + wait
        gather = durations.MESSAGE_GATHER if gather is None else gather
        with self._changed:
            self._is_asked, self._quota = True, quota
            self._changed.notify_all()
            while not (self._pending or self._ended or self.error or self._closed):
                left = deadline - time.monotonic()
                self.error = self.collector.overdue(self._thread.ident)
                if self.error or left <= 0:
                    break
                # The coordinator must learn that the collector waits for space.
                starved = self._waiting == "space"
                span = 2 * gather if starved else durations.STEP_LOOK
                self._changed.wait(min(left, span))
                if starved and self._waiting == "space":
                    break
            if self._pending:
                self._changed.wait_for(self._is_eager, min(gather, wait))
            if self.error is not None:
                raise self.error
            count = min(len(self._pending), MAX_ANSWER)
            chunks = tuple(self._pending.popleft() for _ in range(count))
            self._changed.notify_all()
            return SamplesAnswer(chunks, self._progress())

    def _is_eager(self) -> bool:
        """Whether an answer should not wait for more messages."""
        over = self._ended or self._closed or self.error is not None
        return over or self._waiting is not None or len(self._pending) >= MAX_ANSWER

    def _progress(self) -> CollectProgress:
        info = {
            **self.collector.progress(),
            **self.ids,
            "written": self._written,
            "usage": reported_usage(),
        }
        return CollectProgress(
            self.task_id,
            self._ended and not self._pending,
            self._waiting or self.collector.waits_for,
            self._needed,
            _text(info.get("warning")),
            info,
        )

    @property
    def hangs(self) -> bool:
        """Whether the collector was abandoned because its thread is still in an environment."""
        return self._thread.is_alive() and self._closed

    def close(self, timeout: float = durations.COLLECTOR_STOP) -> None:
        """Stop the collector and drop pending chunks. Closing twice does nothing.

        Args:
            timeout: Seconds to wait for the end of the current step; fewer if the step hangs.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.collector.close()
        thread, deadline = self._thread, time.monotonic() + timeout
        # `close` may be called in the collector's own thread, which cannot wait for itself.
        if thread is not threading.current_thread():
            while thread.is_alive() and (left := deadline - time.monotonic()) > 0:
                if (overdue := self.collector.overdue(thread.ident)) is not None:
                    self.error = self.error or overdue
                    break
                thread.join(min(left, durations.STEP_LOOK))
        self._drop_unsent()

    def _drop_unsent(self) -> None:
        with self._changed:
            unsent = [*(chunk.data_id for chunk in self._pending), *self._unreported]
            self._pending.clear()
            self._unreported.clear()
        for data_id in unsent:
            self._on_unsent(data_id)

    def report(self) -> TaskReport:
        """The collector's report, with its episodes; raises the collector's exception, if any."""
        if self.error is not None:
            raise self.error
        episodes = self.collector.episode_info()
        info = {**self.collector.get_finish_info(), **self.ids, "episode_info": episodes}
        return TaskReport(self.task_id, info)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
