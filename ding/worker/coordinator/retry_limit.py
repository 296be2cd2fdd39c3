"""When failures stop being worth another try."""

import time
from collections import deque
from dataclasses import dataclass, field

from ding.utils import durations
from ding.worker.seams import TaskFailure

#: A cause that a worker reported so often within so many seconds is there to stay, progress or not.
SAME_CAUSE_LIMIT = 10


@dataclass
class _Record:
    in_a_row: int = 0
    reported: deque[tuple[float, str]] = field(
        default_factory=lambda: deque(maxlen=SAME_CAUSE_LIMIT)
    )


class RetryLimit:
    """Counts failures in a row for each group of tasks.

    Args:
        max_retry: Failures in a row without progress that are tried again.
    """

    def __init__(self, max_retry: int) -> None:
        self._max = max_retry
        self._records: dict[str, _Record] = {}
        self._step_mark = -1
        self._step = -1

    def progress(self, group: str) -> None:
        """A task of the group got on."""
        if group in self._records:
            self._records[group].in_a_row = 0

    def trained(self, step: int) -> None:
        """The learner has come to that step; it is progress beyond where it failed before."""
        self._step = max(self._step, step)
        if step > self._step_mark:
            self.progress("learner")

    def failed(self, group: str, failure: TaskFailure) -> str | None:
        """Note a failure; returns why the run shall end, if it shall."""
        record = self._records.setdefault(group, _Record())
        record.in_a_row += 1
        if group == "learner":
            # One that was killed may be somewhere before that step, and still gets on.
            self._step_mark = self._step if failure.by_worker else -1
        if record.in_a_row > self._max:
            return (
                f"{group} tasks failed {record.in_a_row} times in a row, last at "
                f"{failure.worker}: {failure.cause}"
            )
        if failure.by_worker:
            record.reported.append((time.monotonic(), failure.cause))
        if len(record.reported) == SAME_CAUSE_LIMIT:
            seconds = record.reported[-1][0] - record.reported[0][0]
            causes = {cause for _, cause in record.reported}
            if seconds < durations.SAME_CAUSE_SPAN and len(causes) == 1:
                return f"{group} tasks failed {SAME_CAUSE_LIMIT} times like this: {failure.cause}"
        return None
