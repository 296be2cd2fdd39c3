"""SIGINT and SIGTERM: the first signal ends a run normally, the second one at once."""

import contextlib
import os
import select
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from types import FrameType

from ding.utils import durations
from ding.utils.ending import SIGNALS, Ending
from ding.utils.errors import EnvTimeoutError
from ding.utils.system_helper import ReportingThread

#: Argument and return type of `signal.signal`.
_Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None
#: Seconds after which a signal without a call of its handler is sent again.
_UNHEARD = 0.1


class StopNow(KeyboardInterrupt):
    """Raised by a signal anywhere in the main thread, when there is nothing to wait for."""

    def __init__(self, number: int) -> None:
        super().__init__(SIGNALS[number])
        self.ending = Ending.by_signal(number)


class Stopping(Exception):
    """Raised to leave a collection or an evaluation during which a signal arrived."""


class StopSignal:
    """Handles signals while it is entered, in the main thread only.

    An exception raised by a signal may be lost, in a destructor or in an import that catches
    everything: a nested `StopSignal` raises again for the signal that the inner one received.

    Args:
        numbers: The signals; SIGINT and SIGTERM by default.
        ignored: Signals that are ignored meanwhile.

    Attributes:
        number: The first signal that arrived, ``None`` before.
        came: Time of its arrival, by the monotonic clock.
        patient: Whether the first signal is only recorded, so that the loop ends normally.
    """

    def __init__(
        self, numbers: Collection[int] = tuple(SIGNALS), ignored: Collection[int] = ()
    ) -> None:
        self._numbers, self._ignored = numbers, ignored
        self.number: int | None = None
        self.patient = False
        self.came = 0.0
        self._before: dict[int, _Handler] = {}

    @property
    def name(self) -> str:
        """Name of the received signal."""
        return "" if self.number is None else SIGNALS[self.number]

    @property
    def ending(self) -> Ending | None:
        """The ending of a run that the signal interrupts; ``None`` without a signal."""
        return None if self.number is None else Ending.by_signal(self.number)

    def check(self, grace: float) -> None:
        """Raise `Stopping` if a signal arrived at least ``grace`` seconds ago."""
        if self.number is not None and time.monotonic() - self.came >= grace:
            raise Stopping(self.name)

    def __enter__(self) -> "StopSignal":
        if threading.current_thread() is threading.main_thread():
            for number in self._numbers:
                self._take_over(number, self._on_signal)
            for number in self._ignored:
                self._take_over(number, signal.SIG_IGN)
        return self

    def _take_over(self, number: int, handler: _Handler) -> None:
        before = signal.getsignal(number)
        outer = getattr(before, "__self__", None)
        if isinstance(outer, StopSignal) and outer.number is not None:
            self.__exit__()
            raise StopNow(outer.number)
        self._before[number] = before
        signal.signal(number, handler)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            # None: the handler was not set from Python, which cannot restore it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _on_signal(self, number: int, frame: object) -> None:
        # No printing here: the main thread may be in the middle of a print.
        now = time.monotonic()
        if self.number is None:
            self.number, self.came = number, now
            if self.patient:
                return None
        elif now - self.came < durations.SAME_REQUEST:
            return None
        elif self.patient:
            return self._on_second(number)
        raise StopNow(number)

    def _on_second(self, number: int) -> None:
        """A second signal arrived while the run is ending normally."""
        raise StopNow(number)


class Interrupt(BaseException):
    """Raised in the main thread to leave an environment's step or an update that hangs.

    Attributes:
        cause: The environment's error; ``None`` if a signal is the reason.
    """

    def __init__(self, cause: EnvTimeoutError | None = None) -> None:
        super().__init__("left" if cause is None else str(cause))
        self.cause = cause


class RunStop(StopSignal):
    """The signals of a serial run: the second one interrupts the main thread at once.

    Attributes:
        busy: Whether the main thread does work that may be interrupted anywhere.
        asked_again: Whether a second signal arrived.
        signalled: The signal, from its arrival on: the main thread notices it only when it returns
            to the interpreter.
    """

    def __init__(self) -> None:
        super().__init__()
        self.busy = False
        self.asked_again = False
        self.signalled: int | None = None
        self._interrupt: Interrupt | None = None
        self._main: int | None = None

    @property
    def is_master(self) -> bool:
        """Whether the run has the main thread, where signals arrive, and with it the process."""
        return self._main is not None

    def leave(self, cause: EnvTimeoutError | None = None) -> None:
        """Make the main thread leave its current work; called by another thread."""
        if self._main is not None:
            self._interrupt = Interrupt(cause)
            # A signal also ends sleeps and waits. SIGURG is not used otherwise.
            signal.pthread_kill(self._main, signal.SIGURG)

    def __enter__(self) -> "RunStop":
        super().__enter__()
        if threading.current_thread() is threading.main_thread():
            self._main = threading.get_ident()
            self._take_over(signal.SIGURG, self._on_leave)
        return self

    def pauses_by(self, handler: Callable[[int, FrameType | None], object]) -> None:
        """Handle SIGTSTP, which stops the process, until the end."""
        self._take_over(signal.SIGTSTP, handler)

    def _on_leave(self, number: int, frame: object) -> None:
        if self.busy and self._interrupt is not None:
            interrupt, self._interrupt = self._interrupt, None
            raise interrupt

    def _on_second(self, number: int) -> None:
        self.asked_again = True
        if self.busy:
            raise Interrupt


@contextlib.contextmanager
def heard_at_once(stop: StopSignal) -> Iterator[None]:
    """Let a signal reach the main thread even in a call that never returns to the interpreter.

    A signal ends such a call unless it arrived just before; so it is repeated until it was handled.
    """
    main = threading.get_ident()
    end_read, end_write = os.pipe()

    def send_again(alarm: int) -> None:
        while end_read not in select.select([alarm, end_read], [], [])[0]:
            number = next((n for n in os.read(alarm, 64) if n in SIGNALS), None)
            is_over = bool(select.select([end_read], [], [], _UNHEARD)[0])
            if number is not None and stop.number is None and not is_over:
                signal.pthread_kill(main, number)

    with woken_by_signals() as alarm:
        thread = ReportingThread(send_again, "signals", warnings.warn, (alarm,))
        thread.start()
        try:
            yield
        finally:
            os.write(end_write, b"e")
            thread.join()
            os.close(end_read)
            os.close(end_write)


@contextlib.contextmanager
def woken_by_signals() -> Iterator[int]:
    """A descriptor on which the numbers of signals can be read; only in the main thread."""
    read, write = os.pipe()
    # A signal must not block on a missing reader.
    os.set_blocking(write, False)
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False) if is_main else -1
    try:
        yield read
    finally:
        if is_main:
            signal.set_wakeup_fd(before)
        os.close(read)
        os.close(write)
