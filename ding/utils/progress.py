"""Progress, rates and estimated time of a training run, and their display on the terminal.

The live display uses escape codes: importing rich takes longer than drawing.
"""

import math
import shutil
import sys
import time
import unicodedata
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from ding.utils import durations

NO_LIMIT = 10**10  # pipelines pass this number for "no limit"


@dataclass
class Goal:
    """A condition that ends the run.

    Attributes:
        label: Description, such as ``return 195``.
        target: The value that ends the run.
        start: The first value. Progress is relative to it, so that the bar starts at zero in a
            resumed run and with negative returns.
        start_time: Time of the first value in seconds.
    """

    label: str
    target: float
    start: float | None = None
    value: float | None = None
    start_time: float = 0.0

    def see(self, value: float, now: float) -> None:
        """Record a new value; a smaller one than before does not move the bar back."""
        if not math.isfinite(value):
            return
        if self.start is None or self.value is None:
            self.start = self.value = value
            self.start_time = now
        self.value = max(self.value, value)

    @property
    def share(self) -> float:
        """Progress towards the target, 0 to 1."""
        if self.start is None or self.value is None:
            return 0.0
        if self.value >= self.target:
            return 1.0
        return max(0.0, (self.value - self.start) / (self.target - self.start))

    def seconds_left(self, now: float) -> float | None:
        """Estimate from the progress so far; ``None`` if there is no progress yet."""
        share, elapsed = self.share, now - self.start_time
        return elapsed * (1 - share) / share if share > 0 and elapsed > 0 else None


@dataclass
class Progress:
    """The state of a run, which the training loop sets.

    Attributes:
        stop_value: Evaluation return at which the run ends.
        max_env_step: Env steps after which it ends.
        max_train_iter: Updates after which it ends.
        envstep: Env steps so far.
        train_iter: Updates so far.
        episode_return: Mean return of the last collected episodes.
        eval_return: Mean return of the last evaluation.
        best_return: Best evaluation so far.
        epsilon: Current exploration rate.
        buffer_fill: Items in the replay buffer, and its capacity.
        note: Short text, such as the reason why the run waits.
        extra: Further short texts.
        lines: Lines below the facts of a live display, such as one per worker.
    """

    stop_value: float | None = None
    max_env_step: float | None = None
    max_train_iter: float | None = None
    envstep: int = 0
    train_iter: int = 0
    episode_return: float | None = None
    eval_return: float | None = None
    best_return: float | None = None
    epsilon: float | None = None
    buffer_fill: tuple[int, int] | None = None
    note: str = ""
    extra: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    started: float = 0.0
    _marks: deque[tuple[float, int, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.end_at(self.max_train_iter)

    def end_at(self, train_iter: float | None) -> None:
        """Take another number of updates as the end, before the run begins."""
        self.max_train_iter = train_iter
        ends = {
            "eval_return": ("return {:,.6g}", self.stop_value),
            "envstep": ("{:,} env steps", self.max_env_step),
            "train_iter": ("{:,} updates", self.max_train_iter),
        }
        self._goals = {
            name: Goal(label.format(target), target)
            for name, (label, target) in ends.items()
            if target is not None and math.isfinite(target) and target < NO_LIMIT
        }

    def see_eval(self, value: float, now: float) -> None:
        """Record the mean return of an evaluation."""
        self.eval_return = value
        if self.best_return is None or value > self.best_return:
            self.best_return = value
        if "eval_return" in self._goals:
            self._goals["eval_return"].see(value, now)

    def mark(self, now: float) -> None:
        """Update goals and rates."""
        for name in self._goals.keys() - {"eval_return"}:
            self._goals[name].see(getattr(self, name), now)
        self._marks.append((now, self.envstep, self.train_iter))
        # The oldest mark that is kept is the last one before the window.
        while len(self._marks) > 2 and self._marks[1][0] <= now - durations.DISPLAY_RATE_SPAN:
            self._marks.popleft()

    def nearest(self) -> Goal | None:
        """The goal with the most progress, ``None`` if there is no goal."""
        return max(self._goals.values(), key=lambda goal: goal.share, default=None)

    def rates(self) -> tuple[float, float] | None:
        """Env steps and updates per second over the last seconds."""
        if len(self._marks) < 2:
            return None
        (t0, step0, iter0), (t1, step1, iter1) = self._marks[0], self._marks[-1]
        seconds = t1 - t0
        if seconds < durations.DISPLAY_RATE_LEAST:
            return None
        return (step1 - step0) / seconds, (iter1 - iter0) / seconds

    def way(self) -> str:
        """Elapsed time, and progress towards the nearest goal."""
        now = time.monotonic()
        elapsed = clock(now - self.started)
        goal = self.nearest()
        if goal is None:
            return elapsed
        left = goal.seconds_left(now)
        eta = "" if left is None else f", {clock(left)} left"
        # Rounded down: 100 % means that the goal is reached.
        return f"{elapsed} {math.floor(100 * goal.share)}% to {goal.label}{eta}"

    def facts(self, timed: bool = True) -> list[str]:
        """The known facts as short ASCII texts.

        Args:
            timed: Whether to include rates, which change while nothing happens.
        """
        out = []
        if self.episode_return is not None:
            out.append(f"return {_number(self.episode_return)}")
        if self.eval_return is not None:
            out.append(f"eval {_number(self.eval_return)} (best {_number(self.best_return)})")
        rates = self.rates()
        if rates is not None and timed:
            out += [f"{rates[0]:,.0f} env steps/s", f"{rates[1]:,.0f} updates/s"]
        if self.epsilon is not None:
            out.append(f"eps {self.epsilon:.3f}")
        if self.buffer_fill is not None:
            count, capacity = self.buffer_fill
            out.append(f"buffer {count:,}/{capacity:,} ({count / max(capacity, 1):.0%})")
        out += [f"step {self.envstep:,}", f"iter {self.train_iter:,}"]
        if self.note:
            out.append(self.note)
        return out + self.extra


def clock(seconds: float) -> str:
    """Format as ``m:ss`` or ``h:mm:ss``; from two days on as days."""
    if seconds >= 172_800:
        return f"{seconds / 86_400:,.0f} days"
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


BAR_WIDTH = 40
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_BOLD, _DIM, _CYAN, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"
_TO_END_OF_LINE, _TO_END_OF_SCREEN = "\x1b[K", "\x1b[J"


class PlainView:
    """Prints a line at intervals, for logs and pipes."""

    #: Seconds until the first line, and between two lines.
    first = durations.PLAIN_EVAL_LINES
    seconds = durations.PLAIN_LINES

    def __init__(self, title: str) -> None:
        self._title = title
        self._line = ""
        self._shown: list[str] = []

    def start(self) -> None:
        """Prepare the terminal."""

    def draw(self, progress: Progress) -> None:
        """Show the state of the run, unless it equals the last line."""
        line = " | ".join([f"[{self._title}] {progress.way()}", *progress.facts()])
        if line != self._line:
            self._line, self._shown = line, progress.facts(timed=False)
            self.print(line)

    def print(self, text: str) -> None:
        """Print a line, above the live display if there is one."""
        print(text, flush=True)

    def close(self, progress: Progress) -> None:
        """Draw the last state and restore the terminal."""
        if progress.facts(timed=False) != self._shown:
            self.draw(progress)


class LiveView(PlainView):
    """A bar and a few lines that are redrawn in place, in the caller's thread."""

    first = 0.0
    seconds = durations.LIVE_PICTURES

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._picture: list[str] = []
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        self._done, self._left = "━", "─"
        try:
            (self._done + self._left).encode(encoding)
        except UnicodeEncodeError:
            self._done, self._left = "#", "-"

    def start(self) -> None:
        _write(_HIDE)

    def draw(self, progress: Progress) -> None:
        erased = self._to_top()
        self._picture = self._lines(progress, shutil.get_terminal_size().columns)
        _write(erased + self._drawn())

    def print(self, text: str) -> None:
        _write(f"{self._to_top()}{_TO_END_OF_SCREEN}{text}\n{self._drawn()}")

    def close(self, progress: Progress) -> None:
        try:
            self.draw(progress)
        finally:
            _write(_SHOW)

    def _to_top(self) -> str:
        return f"\x1b[{len(self._picture)}A\r" if self._picture else ""

    def _drawn(self) -> str:
        return "".join(f"{line}{_TO_END_OF_LINE}\n" for line in self._picture) + _TO_END_OF_SCREEN

    def _lines(self, progress: Progress, width: int) -> list[str]:
        goal, bar, room = progress.nearest(), "", width
        if goal is not None:
            cells = max(1, min(width // 3, BAR_WIDTH))
            done = round(goal.share * cells)
            bar = f"{_CYAN}{self._done * done}{_PLAIN}{_DIM}{self._left * (cells - done)}{_PLAIN} "
            room -= cells + 1
        return [
            f"{_BOLD}{_cut(self._title, width)}{_PLAIN}",
            bar + _cut(progress.way(), room),
            *(_cut(text, width) for text in _flow(progress.facts(), width)),
            *(f"{_DIM}{_cut(text, width)}{_PLAIN}" for text in progress.lines),
        ]


def _write(text: str) -> None:
    print(text, end="", flush=True)


def _cut(text: str, width: int) -> str:
    """Truncate a line to the width: a line that wraps would not be erased correctly."""
    room = width
    for at, sign in enumerate(text):
        room -= 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        if room < 0:
            return text[: max(0, at - 1)] + "."
    return text


def _flow(pieces: Iterable[str], width: int) -> list[str]:
    """Fill lines with whole pieces, so that no number is split."""
    lines: list[str] = []
    for piece in pieces:
        joined = f"{lines[-1]} | {piece}" if lines else piece
        if lines and len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(piece)
    return lines
