"""Removing the files of data that no reader will ask for again."""

import logging
import queue
import threading
from collections.abc import Mapping
from typing import Any

from ding.utils import durations
from ding.utils.file_helper import remove_file

_logger = logging.getLogger(__name__)


class UsedDataRemover:
    """Removes the file ``data['data_id']`` of each item given to it, in a separate thread."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        #: Errors of files that could not be removed, the last 16.
        self.errors: list[Exception] = []

    def start(self) -> None:
        """Start the thread; again does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="used-data-remover", daemon=True)
            self._thread.start()

    def close(self, wait: bool = True) -> None:
        """End the thread, by default after the files that are queued, within some seconds."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._queue.put(None)
        if wait:
            thread.join(durations.USED_DATA_CLOSE)
            if thread.is_alive():  # a disk that hangs
                _logger.warning("some files of used data may be left: removing them takes too long")

    def add_used_data(self, data: Any) -> None:
        """Queue an item's file; an item without ``data_id`` has none."""
        if isinstance(data, Mapping) and isinstance(data.get("data_id"), str):
            self._queue.put(data["data_id"])

    def _run(self) -> None:
        while (path := self._queue.get()) is not None:
            try:
                remove_file(path)
            except Exception as error:  # thread edge; the run continues with one file too many
                self.errors = [*self.errors[-15:], error]
