"""Timers, and time limits for calls."""

import functools
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar, overload

from ding.utils.errors import UnknownTypeError
from ding.utils.system_helper import PropagatingThread
from ding.utils.types import Settings

Given = ParamSpec("Given")
Result = TypeVar("Result")


class EasyTimer:
    """Measures a ``with`` block; `value` is its duration in seconds.

    Args:
        cuda: Whether to synchronise with the GPU at both ends, if the process uses one.
    """

    def __init__(self, cuda: bool = True) -> None:
        self.cuda = cuda
        self.value = 0.0
        self._start = 0.0

    def __enter__(self) -> "EasyTimer":
        self.value = 0.0
        self._start = self._now()
        return self

    def __exit__(self, *args: object) -> None:
        self.value = self._now() - self._start

    def _now(self) -> float:
        # Without torch, or if CUDA is not in use, there is nothing to wait for.
        torch = sys.modules.get("torch") if self.cuda else None
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        return time.perf_counter()


class TimeWrapperTime:
    """Measures calls in wall-clock time; nested and concurrent calls are supported."""

    _cuda = False

    @classmethod
    def wrapper(cls, fn: Callable[Given, Result]) -> Callable[Given, tuple[Result, float]]:
        """Wrap `fn` to return its result and its duration in seconds."""

        @functools.wraps(fn)
        def timed(*args: Given.args, **kwargs: Given.kwargs) -> tuple[Result, float]:
            with EasyTimer(cls._cuda) as timer:
                result = fn(*args, **kwargs)
            return result, timer.value

        return timed


class TimeWrapperCuda(TimeWrapperTime):
    """As `TimeWrapperTime`, but synchronises with the GPU at both ends."""

    _cuda = True


def build_time_helper(
    cfg: Settings | None = None, wrapper_type: str | None = None
) -> type[TimeWrapperTime]:
    """The wrapper for ``'time'`` or ``'cuda'``.

    Args:
        cfg: A config whose ``common.time_wrapper_type`` replaces `wrapper_type`.
    """
    kind = cfg["common"]["time_wrapper_type"] if cfg is not None else wrapper_type
    wrappers = {"time": TimeWrapperTime, "cuda": TimeWrapperCuda}
    if kind not in wrappers:
        raise UnknownTypeError(
            f"unknown time wrapper {kind!r}; choose one of {', '.join(wrappers)}"
        )
    return wrappers[kind]


class CallTimeoutError(TimeoutError):
    """Code did not finish within a time limit of this module."""


class WatchDog:
    """Raises `CallTimeoutError` in the main thread if `stop` is not called in time.

    It uses the process's alarm signal, so it only works in the main thread. An alarm that was set
    before is restored by `stop`.

    Args:
        timeout: Time limit in seconds.
    """

    def __init__(self, timeout: float = 1) -> None:
        self.timeout = timeout
        self._is_running = False

    def start(self) -> None:
        """Start the timer.

        Raises:
            RuntimeError: The current thread is not the main thread.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a WatchDog works in the main thread only: signals arrive there")
        self._outer = signal.signal(signal.SIGALRM, self._bite)
        self._is_running = True
        left, _ = signal.setitimer(signal.ITIMER_REAL, self.timeout)
        self._outer_end = time.monotonic() + left if left else None

    def stop(self) -> None:
        """Stop the timer, if it is running."""
        if not self._is_running:
            return
        self._is_running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._outer or signal.SIG_DFL)
        if self._outer_end is not None:  # another alarm (a test's time limit) continues
            left = self._outer_end - time.monotonic()
            # 0 would disable the alarm.
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3))

    def __enter__(self) -> "WatchDog":
        self.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.stop()

    def _bite(self, signum: int, frame: FrameType | None) -> None:
        if self._is_running:  # otherwise, the alarm came during `stop`
            self.stop()
            raise CallTimeoutError(f"the watched code did not finish within {self.timeout} s")


@overload
def timeout_wrapper(
    func: Callable[Given, Result], timeout: float | None = None
) -> Callable[Given, Result]: ...


@overload
def timeout_wrapper(
    func: None = None, timeout: float | None = None
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]: ...


def timeout_wrapper(
    func: Callable[..., Result] | None = None, timeout: float | None = None
) -> Callable[..., object]:
    """Wrap `func` to raise ``TimeoutError`` if it takes longer than `timeout` seconds (if set).

    In the main thread, an alarm signal interrupts the call, except in C code that never returns to
    the interpreter. In other threads, the call is abandoned in a daemon thread, and the objects
    that it uses must not be used again. Without `func`, returns a decorator.
    """
    if func is None:
        return functools.partial(timeout_wrapper, timeout=timeout)
    if timeout is None:
        return func

    @functools.wraps(func)
    def guarded(*args: object, **kwargs: object) -> Result:
        if threading.current_thread() is threading.main_thread():
            with WatchDog(timeout):
                return func(*args, **kwargs)
        call = functools.partial(func, *args, **kwargs)
        thread = PropagatingThread(target=call, name="env-call", daemon=True)
        thread.start()
        thread.join(timeout)
        if thread.is_alive():
            raise CallTimeoutError(f"no answer within {timeout} s")
        return thread.join()

    return guarded
