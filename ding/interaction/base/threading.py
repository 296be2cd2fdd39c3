"""An event with two sides, and a thread that calls functions one after another."""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

_logger = logging.getLogger(__name__)


class DblEvent:
    """A door: threads may wait for it to be open, or to be closed."""

    def __init__(self, opened: bool = False) -> None:
        self._opened = opened
        self._changed = threading.Condition()

    def wait_for_open(self, timeout: float | None = None) -> bool:
        """Whether it was open within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._opened, timeout)

    def wait_for_close(self, timeout: float | None = None) -> bool:
        """Whether it was closed within `timeout` seconds."""
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
    """Calls functions in the order of their submission, in one thread started when needed."""

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
                thread.start()  # may fail where threads are short
                self._thread = thread
            self._queue.put(func)

    def close(self) -> threading.Thread | None:
        """Let the thread end after what was submitted; returns it, to be joined."""
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
            except BaseException:  # the next ones are waited for
                _logger.exception("a callback failed")
