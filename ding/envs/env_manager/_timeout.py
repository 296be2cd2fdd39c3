"""Calls that must come back in time."""

import functools
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from types import FrameType
from typing import ParamSpec, TypeVar, overload

Given = ParamSpec("Given")
Result = TypeVar("Result")


class CallTimeoutError(TimeoutError):
    """A call under `timeout_wrapper` did not come back in time."""


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
    """`func`, raising ``TimeoutError`` when it takes longer than `timeout` seconds, if that is set.

    In the main thread an alarm signal interrupts the call where it hangs, unless that is in C code
    that never returns to the interpreter. In other threads the call is left behind in a daemon
    thread, and what it was called on must not be used again. Without `func`, a decorator.
    """
    if func is None:
        return functools.partial(timeout_wrapper, timeout=timeout)
    if timeout is None:
        return func

    @functools.wraps(func)
    def guarded(*args: object, **kwargs: object) -> Result:
        call = functools.partial(func, *args, **kwargs)
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and hasattr(signal, "setitimer"):
            return _call_under_alarm(call, timeout)
        return _call_in_thread(call, timeout)

    return guarded


def _call_under_alarm(call: Callable[[], Result], timeout: float) -> Result:
    running = True

    def on_alarm(signum: int, frame: FrameType | None) -> None:
        if running:
            raise CallTimeoutError(f"no answer within {timeout} s")

    outer_handler = signal.signal(signal.SIGALRM, on_alarm)
    outer_left, _ = signal.setitimer(signal.ITIMER_REAL, timeout)
    start = time.monotonic()
    try:
        return call()
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, outer_handler or signal.SIG_DFL)
        if outer_left:  # another alarm (a test's time limit) continues
            left = outer_left - (time.monotonic() - start)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3))


def _call_in_thread(call: Callable[[], Result], timeout: float) -> Result:
    outcome: Future[Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="env-call", daemon=True).start()
    done, _ = wait([outcome], timeout)
    if not done:
        raise CallTimeoutError(f"no answer within {timeout} s")
    return outcome.result()
