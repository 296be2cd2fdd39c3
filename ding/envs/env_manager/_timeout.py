"""Calls that must come back in time."""

import functools
import signal
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar, overload

from ding.utils.system_helper import PropagatingThread
from ding.utils.time_helper import WatchDog

Given = ParamSpec("Given")
Result = TypeVar("Result")


class CallTimeoutError(TimeoutError):
    """A call under `timeout_wrapper` did not come back in time."""


class _Alarm(WatchDog):
    def error(self) -> TimeoutError:
        return CallTimeoutError(f"no answer within {self.timeout} s")


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
            with _Alarm(timeout):
                return call()
        thread = PropagatingThread(target=call, name="env-call", daemon=True)
        thread.start()
        thread.join(timeout)
        if thread.is_alive():
            raise CallTimeoutError(f"no answer within {timeout} s")
        return thread.join()

    return guarded
