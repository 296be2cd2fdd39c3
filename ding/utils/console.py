"""Shows a run on the terminal: a live bar, plain lines, or nothing."""

import atexit
import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from . import durations
from .progress import LiveView, PlainView, Progress

MODES = ("auto", "live", "plain", "quiet")
MODE_VARIABLE = "DING_CONSOLE"
COST_SHARE = 0.002  # maximum share of the run's time that is spent on drawing

Shown = TypeVar("Shown")
_open: "list[Console]" = []


class Console:
    """Shows the progress of training; a context manager.

    Live on a terminal; otherwise a line every few seconds and after evaluations. The environment
    variable ``DING_CONSOLE`` (``live``, ``plain`` or ``quiet``) overrides ``mode='auto'``. `update`
    draws in the caller's thread, at most four times per second and 0.2 percent of the run's time.
    If the terminal is closed, the run continues.

    Args:
        title: Name of the run.
        stop_value: Evaluation return at which the run ends.
        max_env_step: Env steps after which it ends.
        max_train_iter: Updates after which it ends.
        mode: ``auto``, ``live``, ``plain`` or ``quiet``.
    """

    def __init__(
        self,
        title: str,
        stop_value: float | None = None,
        max_env_step: float | None = None,
        max_train_iter: float | None = None,
        mode: str = "auto",
    ) -> None:
        self.title = title
        self.mode = _choose_mode(mode)
        self.progress = Progress(stop_value, max_env_step, max_train_iter)
        self._view: PlainView | None = None
        self._due = float("inf")
        self._eval_line = 0.0

    def __enter__(self) -> "Console":
        now = time.monotonic()
        self.progress.started = now
        if self.mode != "quiet":
            self._view = (LiveView if self.mode == "live" else PlainView)(self.title)
            self._view.start()
            self._due = now + self._view.first
        _open.append(self)
        atexit.register(self.close)  # restores the cursor even without close()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def update(
        self, eval_return: float | None = None, best_return: float | None = None, **facts: object
    ) -> None:
        """Set new values, and draw if the next frame is due.

        Args:
            eval_return: Mean return of an evaluation that has just ended.
            best_return: Best evaluation so far; by default the largest ``eval_return``.
            facts: Other attributes of `Progress`; ``None`` keeps the current value.
        """
        progress = self.progress
        for name, value in facts.items():
            if value is not None:
                setattr(progress, name, value)
        if eval_return is not None:
            now = time.monotonic()
            progress.see_eval(eval_return, now)
            if self.mode == "plain" and self._view is not None and now >= self._eval_line:
                self._eval_line = now + durations.PLAIN_EVAL_LINES
                self._due = now
        if best_return is not None:
            progress.best_return = best_return
        if self.is_due:
            self._draw()

    @property
    def is_due(self) -> bool:
        """Whether the next `update` will draw."""
        return time.monotonic() >= self._due

    def log(self, text: str) -> None:
        """Print a line above the bar."""
        if self._view is not None:
            self._guarded(self._view.print, text)

    def close(self, summary: str | None = None) -> None:
        """Draw the last state, restore the terminal and print ``summary`` (unless quiet)."""
        if self not in _open:
            return
        _open.remove(self)
        atexit.unregister(self.close)
        self._due = float("inf")
        view = self._view
        if view is None:
            return
        self.progress.mark(time.monotonic())
        self._guarded(view.close, self.progress)
        self._view = None
        if summary:
            self._guarded(_print, summary)

    def _draw(self) -> None:
        view = self._view
        if view is None:
            return
        begin = time.monotonic()
        self.progress.mark(begin)
        self._guarded(view.draw, self.progress)
        if self._view is not None:
            end = time.monotonic()
            self._due = end + max(view.seconds, (end - begin) / COST_SHARE)

    def _guarded(self, show: Callable[[Shown], object], what: Shown) -> None:
        try:
            show(what)
        except (OSError, ValueError):
            # The terminal, pipe or file is closed; the run continues.
            self._view = None
            self._due = float("inf")


def active_console() -> Console | None:
    """The open console; the latest one if there are several."""
    return _open[-1] if _open else None


def print_line(text: str, important: bool = False) -> None:
    """Print a line without breaking an open console's display.

    Args:
        text: The line.
        important: Whether to show the line even while a console is open: above its bar, or on
            stderr in quiet mode.
    """
    console = active_console()
    if console is None:
        say(text)
    elif important and console.mode == "quiet":
        say(text, to_stderr=True)
    elif important:
        console.log(text)


def say(text: str, to_stderr: bool = False) -> None:
    """Print a line unless the terminal or pipe is closed."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr if to_stderr else sys.stdout, flush=True)


def _choose_mode(mode: str) -> str:
    source = "mode"
    if mode == "auto" and os.environ.get(MODE_VARIABLE):
        mode, source = os.environ[MODE_VARIABLE].lower(), MODE_VARIABLE
    if mode not in MODES:
        raise ValueError(f"{source} is {mode!r}, expected one of {', '.join(MODES)}")
    if mode != "auto":
        return mode
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    return "live" if on_terminal and os.environ.get("TERM", "dumb") != "dumb" else "plain"


def _print(text: str) -> None:
    print(text, flush=True)


def printable(text: str) -> str:
    """Escape unprintable characters, so that a terminal shows them and does not interpret them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
