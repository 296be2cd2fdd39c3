"""A buffer's log: nothing is opened before there is something to write."""

import os
import re
from logging import Logger

from ding.utils.log_helper import build_logger
from ding.utils.log_writer import ScalarWriter


class BufferLog:
    """Text lines and scalars of one buffer.

    Args:
        tb_logger: Writer of scalars that belongs to somebody else, or None to make one.
        exp_name: Folder of the run.
        name: Name of the buffer.
    """

    def __init__(self, tb_logger: ScalarWriter | None, exp_name: str | None, name: str) -> None:
        self._writer, self._owns_writer = tb_logger, tb_logger is None
        self._folder = os.path.join(exp_name or ".", "log", name)
        self._name = name
        #: In tags: the ids of a parallel run's buffers end at random; curves of two runs have one
        #: name.
        self.group = re.sub(r"_[0-9a-f]{8}$", "", name)
        self._text: Logger | None = None
        self._refused = ""

    def info(self, line: str) -> None:
        """A line for who wants detail: the figures are among the scalars too."""
        self._logger().debug(line)

    def refuse(self, what: str, reason: str) -> None:
        """Say why something was not done, once until `served`, whoever asks again."""
        if self._refused != what:
            self._refused = what
            self._logger().warning("%s: %s refused: %s", self._name, what, reason)

    def served(self, what: str) -> None:
        if self._refused == what:
            self._refused = ""

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        if self._writer is None:
            _, self._writer = build_logger(self._folder, self._name, need_text=False)
        assert self._writer is not None
        self._writer.add_scalar(tag, value, step)

    def close(self) -> None:
        """Close what was opened here; flush what was given."""
        writer, self._writer, self._text = self._writer, None, None
        if writer is None:
            return
        end = getattr(writer, "close" if self._owns_writer else "flush", None)
        if end is not None:
            end()

    def _logger(self) -> Logger:
        if self._text is None:
            self._text, _ = build_logger(self._folder, self._name, need_tb=False)
        assert self._text is not None
        return self._text
