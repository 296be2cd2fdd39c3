"""An event that can be awaited in both states, and a serial executor."""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

_logger = logging.getLogger(__name__)


class DblEvent:
    """An event that is open or closed; threads can wait for either state."""

    def __init__(self, opened: bool = False) -> None:
        self._opened = opened
        self._changed = threading.Condition()

    def wait_for_open(self, timeout: float | None = None) -> bool:
        """Wait until it is open; returns false after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._opened, timeout)

    def wait_for_close(self, timeout: float | None = None) -> bool:
        """Wait until it is closed; returns false after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._opened, timeout)

    def open(self) -> None:
        self._set(True)

    def close(self) -> None:
        self._set(False)

    def is_open(self) -> bool:
        return self._opened

    def is_close(self) -> bool:
        return not self._opened

    def _set(self, opened: bool) -> None:
        with self._changed:
            self._opened = opened
            self._changed.notify_all()


class SerialExecutor:
    """Calls functions in the order of submission, in one thread that is started on demand."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, func: Callable[[], object]) -> None:
        with self._lock:
            if self._thread is None:
                self._queue = SimpleQueue()
                thread = threading.Thread(
                    target=self._run, args=(self._queue,), name=self._name, daemon=True
                )
                thread.start()  # may fail if no more threads can be started
                self._thread = thread
            self._queue.put(func)

    def close(self) -> threading.Thread | None:
        """End the thread after all submitted functions; returns it, to be joined."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._queue.put(None)
        return thread

    @staticmethod
    def _run(queue: "SimpleQueue[Callable[[], object] | None]") -> None:
        while (func := queue.get()) is not None:
            try:
                func()
            except BaseException:  # the next functions must still be called
                _logger.exception("a callback failed")
