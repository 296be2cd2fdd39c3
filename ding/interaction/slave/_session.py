"""A slave's side of the connection to its master."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from ding.interaction.base.messages import AnswerMessage
from ding.interaction.base.network import HttpEngine
from ding.interaction.exception.master import MasterSystemShuttingDown, MasterTaskDataInvalid
from ding.utils import durations
from ding.utils.errors import InteractionError, NotJsonError
from ding.utils.system_helper import ReportingThread

_logger = logging.getLogger(__name__)


class MasterSession:
    """Beats until it is closed or the master is lost, and carries answers to the master.

    Args:
        address: The master's address.
        token: What the two know each other by.
        engine: Client to the master, which is lost if that cannot reach it.
        span: Seconds from beat to beat.
        on_lost: Told once, with the cause, when the master is lost.
    """

    def __init__(
        self,
        address: str,
        token: str,
        engine: HttpEngine,
        span: float,
        on_lost: "Callable[[MasterSession, Exception], object]",
    ) -> None:
        self.address, self.token = address, token
        self._engine, self._span = engine, span
        self._on_lost = on_lost
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._heard = time.monotonic()
        self._thread = ReportingThread(
            self._beat, f"heartbeat-{address}", lambda cause: self._lose(InteractionError(cause))
        )

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    @property
    def silence(self) -> float:
        """Seconds since the master gave a sign of life."""
        return time.monotonic() - self._heard

    def heard(self) -> None:
        """The master gave a sign of life."""
        self._heard = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> bool:
        """Stop beating; whether it was open. Does not wait."""
        with self._lock:
            was_open = not self.closed
            self._closed.set()
        self._engine.close()
        return was_open

    def join(self, timeout: float) -> None:
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def answer(self, kind: str, message: AnswerMessage, *, last: bool = False) -> None:
        """Tell the master how a task ended; if it cannot be told, it is lost.

        Args:
            kind: ``complete`` or ``fail``.
            last: Try once only: there is no time for more.

        Raises:
            NotJsonError: The result cannot be written as JSON.
        """
        hasty: dict[str, Any] = dict(retries=0, timeout=durations.LAST_REQUEST) if last else {}
        try:
            self._engine.request("PUT", f"slave/task/{kind}", message.body(), **hasty)
            self.heard()
        except NotJsonError:
            raise
        except Exception as err:
            if isinstance(err, (MasterTaskDataInvalid, MasterSystemShuttingDown)):
                _logger.info("the answer to task %s is not taken: %s", message.id, err)
            else:
                self._lose(err)

    def _beat(self) -> None:
        # Not at once: there are masters that know a slave only after it has answered to them.
        due = time.monotonic() + self._span
        while not self._closed.wait(max(0.0, due - time.monotonic())):
            due = time.monotonic() + self._span
            try:
                self._engine.request("GET", "slave/heartbeat", timeout=max(2.0, self._span))
                self.heard()
            except MasterSystemShuttingDown:
                continue  # it is about to disconnect; if it does not, the next beats will fail
            except Exception as err:
                self._lose(err)

    def _lose(self, err: Exception) -> None:
        if self.close():
            self._on_lost(self, err)
