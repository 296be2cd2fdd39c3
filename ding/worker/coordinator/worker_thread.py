"""The thread that drives the core for one worker."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from ding.worker.messages import Request
from ding.worker.seams import WorkerFailed

from .core import SideFailed
from .reported_values import error_line
from .worker_session import FOREVER, Ask, Leave, Move, Wait, WorkerSession

_logger = logging.getLogger(__name__)


class WorkerThread:
    """Does for one worker what the core decides.

    Args:
        decide: Is given what came of the last move, and returns the next.
        limit: Returns the seconds for the answer to a request.
        fatal: Ends the run.
    """

    def __init__(
        self,
        worker: WorkerSession,
        decide: Callable[[WorkerSession, object], Move],
        limit: Callable[[Request[Any]], float],
        fatal: Callable[[str], None],
    ) -> None:
        self.worker, self._decide, self._limit, self._fatal = worker, decide, limit, fatal
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"worker-{worker.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Let it ask the core again, if it waits."""
        self._woken.set()

    def join(self, timeout: float) -> bool:
        """Whether it has ended within ``timeout`` seconds."""
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        given: object = None
        try:
            while not isinstance(move := self._decide(self.worker, given), Leave):
                if isinstance(move, Ask):
                    given = self._ask(move)
                else:
                    given = None
                    self._wait(move)
        except BaseException as err:  # whatever it was: nothing else looks after the worker
            name = self.worker.name
            self._fatal(f"the session of {name} failed: {error_line(err)}")
            _logger.exception("the session of %s failed", name)

    def _ask(self, move: Ask) -> object:
        try:
            return self.worker.arrival.peer.ask(move.request, self._limit(move.request))
        except WorkerFailed as err:
            return err
        except Exception as err:  # a bug of the carrier's: it must not end the run
            _logger.exception("the carrier of %s failed", self.worker.name)
            return SideFailed(error_line(err))

    def _wait(self, move: Wait) -> None:
        seconds = move.until - time.monotonic()
        self._woken.wait(None if seconds == FOREVER else max(seconds, 0.0))
        self._woken.clear()
