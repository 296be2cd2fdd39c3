"""The live picture of a run, drawn with escape codes: importing rich takes longer than drawing."""

import shutil
import sys
import unicodedata
from collections.abc import Iterable

from . import durations
from .progress import Progress

BAR_WIDTH = 40
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_BOLD, _DIM, _CYAN, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"
_TO_END_OF_LINE, _TO_END_OF_SCREEN = "\x1b[K", "\x1b[J"


class LiveView:
    """A bar and a few lines that are redrawn in place, in the caller's thread."""

    seconds = durations.LIVE_PICTURES

    def __init__(self, title: str) -> None:
        self._title = title
        self._picture: list[str] = []
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        self._done, self._left = "━", "─"
        try:
            (self._done + self._left).encode(encoding)
        except UnicodeEncodeError:
            self._done, self._left = "#", "-"

    def start(self) -> None:
        """Take over the lower end of the terminal."""
        _write(_HIDE)

    def draw(self, progress: Progress) -> None:
        """Show the state of the run."""
        erased = self._to_top()
        self._picture = self._lines(progress, shutil.get_terminal_size().columns)
        _write(erased + self._drawn())

    def print(self, text: str) -> None:
        """Print a line above the picture."""
        _write(f"{self._to_top()}{_TO_END_OF_SCREEN}{text}\n{self._drawn()}")

    def close(self, progress: Progress) -> None:
        """Leave the last state on the terminal, and give it back."""
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
    """As much of a line as fits: one that wraps would not be drawn over."""
    room = width
    for at, sign in enumerate(text):
        room -= 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        if room < 0:
            return text[: max(0, at - 1)] + "."
    return text


def _flow(pieces: Iterable[str], width: int) -> list[str]:
    """Fill lines with whole pieces, so that no number is broken in two."""
    lines: list[str] = []
    for piece in pieces:
        joined = f"{lines[-1]} | {piece}" if lines else piece
        if lines and len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(piece)
    return lines
