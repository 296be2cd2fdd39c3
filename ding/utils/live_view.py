"""The live picture of a run, drawn with rich."""

from collections.abc import Iterable

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from . import durations
from .progress import Progress

BAR_WIDTH = 40


class LiveView:
    """A bar and a few lines that are redrawn in place, in the caller's thread."""

    seconds = durations.LIVE_PICTURES

    def __init__(self, title: str) -> None:
        self._title = title
        self._live = Live(console=Console(highlight=False), auto_refresh=False)

    def start(self) -> None:
        """Take over the lower end of the terminal."""
        self._live.start()

    def draw(self, progress: Progress) -> None:
        """Show the state of the run."""
        self._live.update(self._picture(progress), refresh=True)

    def print(self, text: str) -> None:
        """Print a line above the picture."""
        self._live.console.print(text, markup=False, soft_wrap=True)

    def close(self, progress: Progress) -> None:
        """Leave the last state on the terminal, and give it back."""
        try:
            self.draw(progress)
        finally:
            self._live.stop()

    def _picture(self, progress: Progress) -> Group:
        width = self._live.console.width
        goal = progress.nearest()
        way = Table.grid(padding=(0, 1))
        if goal is None:
            way.add_row(_line(progress.way()))
        else:
            bar = ProgressBar(
                total=1.0, completed=goal.share, width=max(1, min(width // 3, BAR_WIDTH))
            )
            way.add_row(bar, _line(progress.way()))
        facts = [_line(text) for text in _flow(progress.facts(), width)]
        lines = [_line(text, "dim") for text in progress.lines]
        return Group(_line(self._title, "bold"), way, *facts, *lines)


def _line(text: str, style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


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
