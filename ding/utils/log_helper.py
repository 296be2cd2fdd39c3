"""Text loggers, their factories, and a filter for repeated lines."""

import contextlib
import logging
import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping

from ding.utils import durations
from ding.utils.console import print_line
from ding.utils.log_file import AppendFile
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
    """Create a component's text logger and writer of scalars.

    Args:
        path: Folder of both, usually ``<exp_name>/log/<name>``.
        name: Name of the component, by default ``default``.
        need_tb: Whether to create the writer.
        need_text: Whether to create the text logger (``<path>/<name>_logger.txt``).
        text_level: Level below which text is dropped.

    Returns:
        The text logger and the writer, each ``None`` if it is not needed.
    """
    logger = LoggerFactory.create_logger(path, name or "default", text_level) if need_text else None
    return logger, TBLoggerFactory.create_logger(path) if need_tb else None


class TBLoggerFactory:
    """Creates writers of scalars, one per folder."""

    _writers: "weakref.WeakValueDictionary[str, DistributedWriter]" = weakref.WeakValueDictionary()
    _lock = threading.Lock()

    @classmethod
    def create_logger(cls, logdir: str) -> DistributedWriter:
        """The writer for this folder; the same object as long as a reference to it exists."""
        key = os.path.abspath(logdir)
        with cls._lock:
            writer = cls._writers.get(key)
            if writer is None:
                writer = cls._writers[key] = DistributedWriter(logdir)
            return writer


class LoggerFactory:
    """Creates text loggers, one per file."""

    _loggers: "weakref.WeakValueDictionary[str, TextLogger]" = weakref.WeakValueDictionary()
    _lock = threading.Lock()

    @classmethod
    def create_logger(
        cls, path: str, name: str = "default", level: int | str = logging.INFO
    ) -> "TextLogger":
        """The logger for ``<path>/<name>_logger.txt``; the same object as long as it is referenced.

        Lines are also printed on the terminal; while a `ding.utils.console.Console` is open, only
        warnings and errors.
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
    """A logger for one file, outside Python's global hierarchy of loggers.

    It has no parent, so that no line is printed twice and two runs in one process do not share it.
    """

    get_tabulate_vars = staticmethod(LoggerFactory.get_tabulate_vars)
    get_tabulate_vars_hor = staticmethod(LoggerFactory.get_tabulate_vars_hor)

    def __init__(self, name: str, file: str) -> None:
        super().__init__(name)
        self.file = file
        self._terminal = _LineHandler(_print, logging.Formatter())
        lines = AppendFile(file, flush_seconds=0)
        # The terminal first: the line may be about the file's disk.
        self.addHandler(self._terminal)
        self.addHandler(_LineHandler(lambda line, _: lines.write(f"{line}\n"), _FORMAT))

    def keep_off_terminal(self) -> None:
        """Write to the file only."""
        self.removeHandler(self._terminal)

    def __reduce__(self) -> tuple[object, ...]:
        return LoggerFactory.create_logger, (os.path.dirname(self.file), self.name, self.level)


class _LineHandler(logging.Handler):
    """A log handler that never raises, even if the file, its folder or the terminal fails.

    Args:
        show: Writes the line of a record immediately, so that the log is complete after a crash.
    """

    def __init__(
        self, show: Callable[[str, logging.LogRecord], object], form: logging.Formatter
    ) -> None:
        super().__init__()
        self.setFormatter(form)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._show(self.format(record), record)
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Print the error on stderr, if there is a stderr."""
        with contextlib.suppress(Exception):
            super().handleError(record)


def _print(line: str, record: logging.LogRecord) -> None:
    """Print a line, or pass it to the open console."""
    print_line(line, important=record.levelno >= logging.WARNING)


class PartHandler(_LineHandler):
    """Log handler of a process of a run, without most of the repeated lines.

    Args:
        path: The log file; ``None`` for stderr.
    """

    def __init__(self, path: str | None) -> None:
        super().__init__(self._show_some, _FORMAT)
        self._file = None if path is None else AppendFile(path, flush_seconds=0)
        self._repeats = RepeatFilter()

    def _show_some(self, line: str, record: logging.LogRecord) -> None:
        shown = self._repeats.passed(line, record.getMessage())
        if shown is not None and self._file is not None:
            self._file.write(f"{shown}\n")
        elif shown is not None and sys.stderr is not None:
            print(shown, file=sys.stderr, flush=True)


def pretty_print(result: Mapping[str, object], direct_print: bool = True) -> str:
    """A nested dict as indented ``key: value`` lines.

    Args:
        result: The dict.
        direct_print: Whether to print the text as well.
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


#: Number of similar lines that are all shown.
SHOWN = 3
#: Number of different lines that are remembered.
_MOST = 500
#: Parts in which similar lines may differ: separate numbers, and ids.
_VARYING = re.compile(r"[0-9a-f]{8,}|(?<![A-Za-z0-9])\d+(?:\.\d+)?(?![A-Za-z0-9])")


class RepeatFilter:
    """Drops most lines that differ only in numbers and ids. Thread-safe.

    The first three similar lines are passed, then each one that doubles their number: a thousand
    failures yield a dozen lines.

    Args:
        span: Seconds without a similar line after which the count starts again.
    """

    def __init__(self, span: float = durations.REPEATS_SPAN) -> None:
        self._span = span
        self._kinds: dict[str, tuple[int, float]] = {}  # count and time, the latest line last
        self._lock = threading.Lock()

    def passed(self, text: str, words: str | None = None) -> str | None:
        """The line to show, with the number of similar lines; ``None`` to drop it.

        Args:
            words: The text that is compared, such as the line without its time; by default `text`.
        """
        key, now = _VARYING.sub("#", text if words is None else words), time.monotonic()
        with self._lock:
            count, last = self._kinds.pop(key, (0, now))
            count = 1 if now - last >= self._span else count + 1
            self._kinds[key] = count, now
            if len(self._kinds) > _MOST:
                del self._kinds[next(iter(self._kinds))]
        if count <= SHOWN:
            return text
        return f"{text} ({count:,} lines like it)" if count.bit_count() == 1 else None


def set_logs(logs: Mapping[str, bool], path: str | None = None) -> None:
    """Set the log levels and the log file of a process.

    Args:
        logs: ``total``: log at INFO level, otherwise only warnings. ``flask``: log each request.
        path: The log file; ``None`` for stderr, unless the root logger has a handler.
    """
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, PartHandler):  # of an earlier part in this process
            root.removeHandler(handler)
    if path is not None or not root.handlers:
        root.addHandler(PartHandler(path))
    root.setLevel(logging.INFO if logs.get("total") else logging.WARNING)
    logging.getLogger("werkzeug").setLevel(logging.INFO if logs.get("flask") else logging.ERROR)
