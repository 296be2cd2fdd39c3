"""Watches the main thread of a serial run: reports, interrupts and ends code that hangs."""

import contextlib
import faulthandler
import functools
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
import warnings
from typing import Protocol

from ding.entry.run.signals import RunStop, woken_by_signals
from ding.utils import durations
from ding.utils.disk_writes import stalled_write
from ding.utils.ending import SIGNALS, Ending
from ding.utils.errors import EnvTimeoutError
from ding.utils.run_claims import release_locks
from ding.utils.run_log import RunLog
from ding.utils.system_helper import ReportingThread
from ding.utils.types import Settings
from ding.worker.collector.step_watch import StepWatch, Whereabouts, overdue_error


def _stderr() -> int:
    """The descriptor for errors; an invalid one in a process without stderr, such as a daemon."""
    for stream in (sys.__stderr__, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            return stream.fileno()  # type: ignore[union-attr]
    return _no_file()


@functools.cache
def _no_file() -> int:
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


class HeldInterpreter:
    """Ends the process with a traceback if the interpreter lock is held for too long.

    C code that never returns and keeps the interpreter lock stops every thread, so only
    `faulthandler`, whose timer needs no lock, can end it. The run's state is then the last one
    that was saved.
    """

    def __init__(self) -> None:
        # Reentrant: the main thread may hold it when `pause` interrupts it.
        self._lock = threading.RLock()
        self._paused = False

    def arm(self, limit: float) -> None:
        """Restart the timer.

        Args:
            limit: Seconds until the process is ended; infinity for never.
        """
        with self._lock:
            if not self._paused and limit < float("inf"):
                faulthandler.dump_traceback_later(limit, exit=True, file=_stderr())

    def disarm(self) -> None:
        with self._lock:
            self._paused = True
            faulthandler.cancel_dump_traceback_later()

    def pause(self, number: int, frame: object) -> None:
        """Handle SIGTSTP (Ctrl-Z), since the timer would run while the process is stopped."""
        self.disarm()
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # the process stops here, until SIGCONT
        signal.signal(number, handler)
        self._paused = False


class Watched(Protocol):
    """The run's interface for its watch."""

    def warn(self, text: str) -> None: ...

    def show_signal(self, name: str) -> None: ...

    def save(self) -> None: ...

    def conclude(self, ending: Ending) -> str: ...


class RunWatch:
    """A thread that tracks the main thread's current work and its duration.

    A signal ends a run within seconds: an `Interrupt` leaves a step or an update that does not
    return; if code never returns to the interpreter, this thread saves the state and ends the
    process. If that code keeps the interpreter lock, even this thread cannot run: `HeldInterpreter`
    then ends the process after the time limit of environments. An environment that exceeds its
    time limit ends the run in the same ways.

    Args:
        manager_cfg: Config of the env managers: ``step_timeout``, ``reset_timeout``.
        env_num: Number of environments in each of them.

    Attributes:
        run: The watched run; ``None`` while its parts are being built.
    """

    def __init__(self, stop: RunStop, manager_cfg: Settings, env_num: int, log: RunLog) -> None:
        self._stop = stop
        self._limits = {name: manager_cfg.get(f"{name}_timeout") for name in ("step", "reset")}
        self._env_num = env_num
        self.run: Watched | None = None
        self._log = log
        self._steps = StepWatch()
        self._update_since: float | None = None
        self._phase, self._phase_since = "start", time.monotonic()
        self._report = ""
        self._left: tuple[float, EnvTimeoutError] | None = None
        self._warn_from = {
            "env": durations.WARN_ENV,
            "update": durations.WARN_UPDATE,
            "disk": durations.DISK_STALL,
        }
        self._main = threading.get_ident()
        self._signalled_at = 0.0
        self._held = HeldInterpreter()
        self._thread = ReportingThread(self._look_on, "run-watch", warnings.warn)
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "RunWatch":
        self._alarm = self._open.enter_context(woken_by_signals())
        self._end_read, self._end_write = os.pipe()
        for end in (self._end_read, self._end_write):
            self._open.callback(os.close, end)
        if self._stop.is_master:
            self._held.arm(self._longest)  # the lock may be held before the first check
            self._stop.pauses_by(self._held.pause)
            self._open.callback(self._held.disarm)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        os.write(self._end_write, b"e")
        self._thread.join()
        self._open.close()

    # ------------------------------------------------------------------ the main thread's work

    def stepping(self, launches: bool = False) -> None:
        """The environments' step begins, or their creation and reset."""
        self._steps.stepping(launches)
        self._stop.busy = True
        if launches and self._stop.is_master:
            self._held.arm(self._longest)  # before the next check, which may be too late

    def updating(self) -> None:
        """An update of the policy begins."""
        self._steps.rest()
        self._update_since = time.monotonic()
        self._stop.busy = True

    def rest(self) -> None:
        """Neither a step nor an update: work that must not be interrupted."""
        self._stop.busy = False
        self._update_since = None
        launched = self._steps.launches
        self._steps.rest()
        if launched and self._stop.is_master:
            self._held.arm(self._longest)  # with the shorter limit of steps from now on

    def enter(self, phase: str, report: str = "") -> None:
        """Begin a phase: ``train``, ``save`` or ``close``.

        Args:
            report: The text to print if the components do not close.
        """
        self.rest()
        self._report = report
        self._phase, self._phase_since = phase, time.monotonic()

    # ------------------------------------------------------------------ the thread

    def _look_on(self) -> None:
        while True:
            readable, _, _ = select.select(
                [self._alarm, self._end_read], [], [], durations.WATCH_LOOK
            )
            if self._end_read in readable:
                return
            if readable:
                numbers = os.read(self._alarm, 64)
                first = next((number for number in numbers if number in SIGNALS), None)
                if self._stop.signalled is None and first is not None:
                    self._stop.signalled, self._signalled_at = first, time.monotonic()
            if self._stop.is_master:
                self._held.arm(self._longest)
            now = time.monotonic()
            if self._phase == "close":
                self._look_at_close(now)
            elif self._stop.signalled is not None:
                self._look_at_signal(now - self._signalled_at, now)
            else:
                self._look_for_hang(now)

    @property
    def _longest(self) -> float:
        """Maximum seconds of an environment's step, reset or creation."""
        longest = durations.ENV_LIMIT
        limits = [longest if value is None else value for value in self._limits.values()]
        if any(self._limits.values()):
            return self._env_num * sum(limits)
        # A vector environment library creates all in one call (EnvPool keeps the lock).
        return self._env_num * longest if self._steps.launches else longest

    def _look_at_signal(self, elapsed: float, now: float) -> None:
        assert self._stop.signalled is not None
        ending = Ending.by_signal(self._stop.signalled)
        if self.run is not None:
            self.run.show_signal(ending.reason)
        write = stalled_write()
        if write is not None and elapsed >= durations.MAIN_THREAD_LOST:
            self._end(ending.because(f"{ending.reason}; not saved: {write}"), save=False)
        if self._phase == "save":
            in_haste = self._stop.asked_again and elapsed > durations.CLOSE_LIMIT
            if in_haste or elapsed > durations.SAVE_LIMIT:
                reason = f"{ending.reason}; the state could not be saved in time"
                self._end(ending.because(reason), save=False)
            return
        if elapsed >= durations.MAIN_THREAD_LOST:
            self._end(ending, save=self._phase == "train")
        limit = durations.LEAVE_STEP if self._update_since is None else durations.LEAVE_UPDATE
        if self._stop.busy and self._phase == "train" and elapsed >= limit:
            since = self._update_since or self._steps.since
            # The same step or update since the signal arrived.
            if since is not None and now - since >= durations.LEAVE_STEP:
                self._stop.leave()

    def _look_for_hang(self, now: float) -> None:
        if self._left is not None:
            since, error = self._left
            if now - since >= durations.LEAVE_HANG and self._stop.busy:
                ending = Ending("failed", f"{type(error).__name__}: {error}")
                self._end(ending, save=self._phase == "train")
            return
        write = stalled_write(self._main)
        if write is not None:  # the delay is caused by neither the policy nor an environment
            if self._is_longest("disk", write.seconds):
                # A log may be on the same disk.
                ReportingThread(self._warn, "warn", warnings.warn, (str(write),)).start()
            return
        since_update = self._update_since
        if since_update is not None:
            seconds = now - since_update
            if self._is_longest("update", seconds):
                self._warn(f"the policy has been at one update for {seconds:.0f} s")
            return
        delay = self._steps.delay(self._main)
        if delay is None:
            return
        place, seconds = delay
        limit = self._limit(place)
        if seconds >= limit and self._stop.is_master:
            error = overdue_error(place, limit)
            self._left = now, error
            self._stop.leave(error)
        elif self._is_longest("env", seconds):
            ends = limit < float("inf") and self._stop.is_master
            end = f"; after {limit:g} s the run ends" if ends else ""
            self._warn(f"{place}: no answer for {seconds:.0f} s{end}")

    def _warn(self, text: str) -> None:
        if self.run is None:
            self._log.logger.warning(text)
        else:
            self.run.warn(text)

    def _is_longest(self, kind: str, seconds: float) -> bool:
        """Whether to warn of a delay: only if it is longer than all earlier ones."""
        if seconds < self._warn_from[kind]:
            return False
        self._warn_from[kind] = 2 * seconds
        return True

    def _limit(self, place: Whereabouts) -> float:
        """Maximum seconds in that place; more than the env manager itself allows."""
        if not place.in_envs:
            return float("inf")
        limits = {
            k: durations.ENV_LIMIT if v is None else v + durations.ENV_LIMIT_GRACE
            for k, v in self._limits.items()
        }
        if place.env is not None:
            return limits.get(place.code, max(limits.values()))
        if all(value is None for value in self._limits.values()):
            return self._longest
        return self._env_num * sum(limits.values())

    def _look_at_close(self, now: float) -> None:
        in_haste, began = self._left is not None, 0.0
        if self._stop.signalled is not None:
            in_haste = True
            began = self._signalled_at + durations.CLOSE_LIMIT - durations.CLOSE_LOOK
        if in_haste and now - max(self._phase_since, began) >= durations.CLOSE_LOOK:
            self._leave_process(self._report)

    # ------------------------------------------------------------------ ending from this thread

    def _end(self, ending: Ending, save: bool) -> None:
        """Save and end the process, since the main thread cannot be reached."""
        report: list[str] = []

        def conclude() -> None:
            run = self.run
            if run is None:  # there is nothing to save yet
                self._log.finish(ending.status, ending.reason)
                return
            if save:
                run.save()
            report.append(run.conclude(ending))

        # In a thread, since it may need a lock that the main thread holds.
        thread = ReportingThread(conclude, "run-end", report.append)
        thread.start()
        thread.join(durations.LAST_SAVE)
        self._leave_process(report[0] if report else str(ending))

    def _leave_process(self, report: str) -> None:
        # `os._exit` does not end child processes or remove locks.
        for child in multiprocessing.active_children():
            child.kill()
        release_locks()
        if report:
            # Not `print`: the main thread may hold the stream's lock forever.
            os.write(sys.__stdout__.fileno() if sys.__stdout__ else 1, f"{report}\n".encode())
        number = self._stop.signalled
        os._exit(1 if number is None else Ending.by_signal(number).exit_status)
