"""Text loggers, how components get theirs, and lines that come again and again."""

import contextlib
import logging
import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ding.utils import durations
from ding.utils.console import print_line
from ding.utils.log_file import AppendFile, hold, release
from ding.utils.log_writer import DistributedWriter

COLUMNS_PER_BLOCK = 5
_FORMAT = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S")


def build_logger(
    path: str,
    name: str | None = None,
    need_tb: bool = True,
    need_text: bool = True,
    text_level: int | str = logging.INFO,
) -> "tuple[TextLogger | None, DistributedWriter | None]":
    """Make a component's text logger and its writer of scalars.

    Args:
        path: Folder of both, by custom ``<exp_name>/log/<name>``.
        name: Name of the component, ``default`` if not given.
        need_tb: Whether to make the writer.
        need_text: Whether to make the text logger (``<path>/<name>_logger.txt``).
        text_level: Level below which text is dropped.

    Returns:
        The text logger and the writer, ``None`` for what was not asked for.
    """
    logger = LoggerFactory.create_logger(path, name or "default", text_level) if need_text else None
    return logger, TBLoggerFactory.create_logger(path) if need_tb else None


class TBLoggerFactory:
    """Makes writers of scalars, one per folder."""

    _writers: "weakref.WeakValueDictionary[str, DistributedWriter]" = weakref.WeakValueDictionary()
    _lock = threading.Lock()

    @classmethod
    def create_logger(cls, logdir: str) -> DistributedWriter:
        """The writer for this folder; the same object while a reference to it exists."""
        key = os.path.abspath(logdir)
        with cls._lock:
            writer = cls._writers.get(key)
            if writer is None:
                writer = cls._writers[key] = DistributedWriter(logdir)
            return writer


class LoggerFactory:
    """Makes text loggers, one per file."""

    _loggers: "weakref.WeakValueDictionary[str, TextLogger]" = weakref.WeakValueDictionary()
    _lock = threading.Lock()

    @classmethod
    def create_logger(
        cls, path: str, name: str = "default", level: int | str = logging.INFO
    ) -> "TextLogger":
        """The logger for ``<path>/<name>_logger.txt``; the same object while referenced.

        Lines also go to the terminal: all of them while no `ding.utils.console.Console`
        is open, warnings and errors while one is.
        """
        file = os.path.abspath(os.path.join(path, f"{name}_logger.txt"))
        with cls._lock:
            logger = cls._loggers.get(file)
            if logger is None:
                logger = cls._loggers[file] = TextLogger(name, file)
            logger.setLevel(level.upper() if isinstance(level, str) else level)
            return logger

    @staticmethod
    def get_tabulate_vars(variables: Mapping[str, object]) -> str:
        """A table with one line per variable."""
        return _table([("Name", "Value"), *((k, _show(v)) for k, v in variables.items())])

    @staticmethod
    def get_tabulate_vars_hor(variables: Mapping[str, object]) -> str:
        """A table of a few variables per line, names above values."""
        items = [(name, _show(value)) for name, value in variables.items()]
        blocks = [
            [("Name", "Value"), *items[i : i + COLUMNS_PER_BLOCK]]
            for i in range(0, len(items), COLUMNS_PER_BLOCK)
        ]
        return "\n".join(_table(list(zip(*block))) for block in blocks)


class TextLogger(logging.Logger):
    """A logger of one file, outside Python's global tree of loggers.

    It has no parent, so nothing is printed twice, and two runs in one process do not meet in it.
    """

    get_tabulate_vars = staticmethod(LoggerFactory.get_tabulate_vars)
    get_tabulate_vars_hor = staticmethod(LoggerFactory.get_tabulate_vars_hor)

    def __init__(self, name: str, file: str, level: int | str = logging.INFO) -> None:
        super().__init__(name, level)
        self.file = file
        # The terminal first: the file's disk may be what a line is about.
        self.addHandler(_TerminalHandler())
        self.addHandler(_FileHandler(file))

    def keep_off_terminal(self) -> None:
        """Write to the file only."""
        for handler in self.handlers[:]:
            if isinstance(handler, _TerminalHandler):
                self.removeHandler(handler)

    def __reduce__(self) -> tuple[object, ...]:
        return LoggerFactory.create_logger, (os.path.dirname(self.file), self.name, self.level)


class _Handler(logging.Handler):
    """Never raises, even if the file, its folder, the disk or the terminal fails."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Show the fault on stderr, if there is one."""
        with contextlib.suppress(Exception):
            super().handleError(record)


class _FileHandler(_Handler):
    """Appends to a file, line by line: a log that is read to find a crash must not lag."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.setFormatter(_FORMAT)
        self._file = AppendFile(path, flush_seconds=0)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._file.write(self.format(record) + "\n")
        except Exception:
            self.handleError(record)


class PartHandler(_Handler):
    """What a process of a run logs, to a file or to stderr; of lines that repeat only the count.

    Args:
        path: The file; ``None`` for stderr.
    """

    def __init__(self, path: str | None = None) -> None:
        super().__init__()
        self.setFormatter(_FORMAT)
        self._file = None if path is None else AppendFile(path, flush_seconds=0)
        self._repeats = RepeatCounter(self._write)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._repeats.add(self.format(record), record.getMessage())
            hold(self)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write the counts; at the end of the process."""
        release(self)
        with contextlib.suppress(Exception):
            self._repeats.flush(at_end=True)

    def _write(self, line: str) -> None:
        if self._file is not None:
            self._file.write(line + "\n")
        elif sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)


class _TerminalHandler(_Handler):
    """Prints records that no open console shows."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print_line(self.format(record), important=record.levelno >= logging.WARNING)
        except Exception:
            self.handleError(record)


def pretty_print(result: Mapping[str, object], direct_print: bool = True) -> str:
    """A nested dict as indented ``key: value`` lines.

    Args:
        result: What to show.
        direct_print: Whether to print it as well.
    """
    text = "\n".join(_indented(result, "")) + "\n"
    if direct_print:
        print(text)
    return text


def _indented(data: Mapping[str, object], indent: str) -> Iterable[str]:
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield f"{indent}{key}:"
            yield from _indented(value, indent + "  ")
        else:
            yield f"{indent}{key}: {_show(value)}"


def _show(value: object) -> str:
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows)]
    line = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    out = [line]
    for row in rows:
        cells = (f" {cell:<{width}} " for cell, width in zip(row, widths))
        out += ["|" + "|".join(cells) + "|", line]
    return "\n".join(out)


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
        span: Seconds after which the count is shown, and lines of a kind are shown again.
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


def set_logs(logs: Mapping[str, bool], path: str | None = None) -> None:
    """Choose what a part logs: everything or warnings, and single requests or not.

    Args:
        logs: ``total`` and ``flask``.
        path: File for it; ``None``: stderr, unless the root logger has a handler.
    """
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, PartHandler):  # of an earlier part in this process
            root.removeHandler(handler)
    if path is not None or not root.handlers:
        root.addHandler(PartHandler(path))
    root.setLevel(logging.INFO if logs.get("total") else logging.WARNING)
    logging.getLogger("werkzeug").setLevel(logging.INFO if logs.get("flask") else logging.ERROR)
