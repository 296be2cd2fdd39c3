"""Finds slaves that give no sign of life."""

import threading
import time
from collections.abc import Callable, Iterable

from .connection import SlaveConnection


class HeartbeatWatch:
    """Gives up connected slaves that were not heard of for too long.

    Args:
        connections: Gives all connections.
        tolerance: Seconds of silence after which a slave is lost, if its connection has no other.
        check_span: Least seconds between two looks at all slaves.
        on_lost: Told of the connection and the cause.
        on_death: Told why it cannot go on.
    """

    def __init__(
        self,
        connections: Callable[[], Iterable[SlaveConnection]],
        tolerance: float,
        check_span: float,
        on_lost: Callable[[SlaveConnection, str], object],
        on_death: Callable[[str], object],
    ) -> None:
        self._connections, self._on_lost, self._on_death = connections, on_lost, on_death
        self._tolerance, self._span = tolerance, check_span
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._ending.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._watch()
        except BaseException as err:  # without it, slaves that are gone would be waited for
            self._on_death(f"the watch over heartbeats cannot go on: {type(err).__name__}: {err}")

    def _watch(self) -> None:
        # A slave that connects during a wait cannot be lost before `tolerance` is over.
        due = time.monotonic() + min(self._span, self._tolerance)
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            # A process that was itself stopped heard nobody: everyone gets a fresh start.
            stalled = now - due > max(0.5, self._tolerance / 2)
            earliest = now + self._tolerance
            for connection in self._connections():
                if not connection.is_connected:
                    continue
                if stalled:
                    connection.seen()
                silent = now - connection.last_seen
                tolerance = connection.tolerance or self._tolerance
                if silent > tolerance:
                    self._lose(connection, silent, tolerance)
                else:
                    earliest = min(earliest, connection.last_seen + tolerance)
            due = max(earliest, now + self._span)

    def _lose(self, connection: SlaveConnection, silent: float, tolerance: float) -> None:
        cause = f"no sign of life for {silent:.1f} s, {tolerance:g} s are tolerated"
        if connection.lose(cause):
            self._on_lost(connection, cause)
