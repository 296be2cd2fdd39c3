"""Lines that come again and again: the first ones are shown, the others counted."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ding.utils import durations

#: Lines of a kind that are shown before the others are counted.
SHOWN = 3
#: Kinds that are remembered.
_MOST = 500
#: What differs between lines that say the same: numbers that stand alone, and ids.
_VARYING = re.compile(r"[0-9a-f]{8,}|(?<![A-Za-z0-9])\d+(?:\.\d+)?(?![A-Za-z0-9])")


@dataclass
class _Kind:
    shown: int = 0
    counted: int = 0
    last: str = ""
    since: float = field(default_factory=lambda: time.monotonic())


class RepeatCounter:
    """Passes lines on, but of many that differ in numbers only a few and how many came.

    Args:
        show: Shows a line.
        span: Seconds after which the count is shown, and lines of a kind are shown anew.
    """

    def __init__(self, show: Callable[[str], object], span: float = durations.REPEATS_SPAN) -> None:
        self._show, self._span = show, span
        self._kinds: dict[str, _Kind] = {}
        self._lock = threading.Lock()

    def add(self, text: str, words: str | None = None) -> None:
        """Show a line, or count it.

        Args:
            words: What it is compared by, such as the line without its time; ``text`` if not given.
        """
        key = _VARYING.sub("#", text if words is None else words)
        with self._lock:
            due = self._due(False)
            kind = self._kinds.setdefault(key, _Kind())
            is_shown = kind.shown < SHOWN
            if is_shown:
                kind.shown += 1
            else:
                kind.counted += 1
                kind.last = text
            while len(self._kinds) > _MOST:
                due += _summary(self._kinds.pop(next(iter(self._kinds))))
        for line in [*due, text] if is_shown else due:
            self._show(line)

    def flush(self, at_end: bool = False) -> None:
        """Show the counts that are due, or all of them."""
        with self._lock:
            due = self._due(at_end)
        for line in due:
            self._show(line)

    def _due(self, at_end: bool) -> list[str]:
        now = time.monotonic()
        lines: list[str] = []
        for key, kind in list(self._kinds.items()):
            if at_end or now - kind.since >= self._span:
                lines += _summary(kind)
                # Those that go on get no more than their count.
                if kind.counted and not at_end:
                    self._kinds[key] = _Kind(SHOWN)
                else:
                    del self._kinds[key]
        return lines


def _summary(kind: _Kind) -> list[str]:
    return [f"… {kind.counted:,} more like it: {kind.last}"] if kind.counted else []
