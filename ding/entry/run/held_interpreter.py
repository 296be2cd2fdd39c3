"""The end of a process whose interpreter is held by code in C."""

import faulthandler
import os
import signal
import sys
import threading


class HeldInterpreter:
    """Ends the process with a traceback where the interpreter is held for too long.

    Code in C that never returns and keeps the interpreter's lock stops every thread, so that
    `faulthandler`, whose timer needs no lock, is all that can end it. The state is the last one
    that was saved.

    Args:
        limit: Seconds from the last `arm` to the end; infinity never ends it.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._paused = False

    def arm(self) -> None:
        """Start the timer again; not in the main thread once `pause` handles a signal."""
        with self._lock:
            if not self._paused and self._limit < float("inf"):
                faulthandler.dump_traceback_later(
                    self._limit, exit=True, file=sys.__stderr__ or sys.stderr
                )

    def disarm(self) -> None:
        with self._lock:
            self._paused = True
            faulthandler.cancel_dump_traceback_later()

    def pause(self, number: int, frame: object) -> None:
        """Handle SIGTSTP (Ctrl-Z): the timer would go on while the process is stopped."""
        self.disarm()
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # stopped here, until SIGCONT
        signal.signal(number, handler)
        self._paused = False
