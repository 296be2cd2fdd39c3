"""Gathers samples into chunks that are worth a file and a message."""

import time
from collections.abc import Callable

from ding.data.staleness import iters_of
from ding.utils import durations
from ding.worker.collector.collector_link import CollectorLink
from ding.worker.collector.steps import Samples, State

#: Samples of a chunk that is not waited for any longer.
MIN_SAMPLES = 16
#: How many times larger and older chunks get while the coordinator does not ask.
MAX_SCALE = 64


class SampleSender:
    """Decides when samples leave, and sends them.

    Args:
        link: The worker; see `CollectorLink`.
        n_sample: Samples that are sent at once when the coordinator keeps up.
    """

    def __init__(self, link: CollectorLink, n_sample: int | None) -> None:
        self._link = link
        self._n_sample = max(n_sample or 0, MIN_SAMPLES)
        self._waiting = 0
        self._since = 0.0
        self._sent = 0.0

    def add(self, samples: int) -> bool:
        """Count samples that were completed; returns whether it is time to send."""
        if samples:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting += samples
        elif not self._waiting:
            return False
        now = time.monotonic()
        scale = min((1 + self._link.backlog()) ** 2, MAX_SCALE)
        is_enough = self._waiting >= self._n_sample * scale
        if is_enough and now - self._sent >= durations.CHUNK_SPAN:
            return True
        return now - self._since >= durations.CHUNK_AGE * scale

    def send(self, samples: Samples, facts: Callable[[int], State]) -> int:
        """Send samples as one chunk, or as many as the worker wants.

        Args:
            samples: Columns or rows.
            facts: Further fields of the message for a number of samples sent; ``collect_iter`` in
                it is for samples that do not tell their own.

        Returns:
            The number of samples.
        """
        self._waiting = 0
        self._sent = time.monotonic()
        start = 0
        while start < len(samples):
            chunk = samples[start : start + self._link.chunk_rows(samples[start:])]
            data_id = self._link.new_data_id()
            self._link.send_stepdata(data_id, chunk)
            self._link.send_metadata(
                {
                    "data_id": data_id,
                    "sample_num": len(chunk),
                    **facts(len(chunk)),
                    **_iterations(chunk),
                }
            )
            start += len(chunk)
        return len(samples)


def _iterations(chunk: Samples) -> State:
    """Of the policies that collected the samples: one for all, or one for each of them."""
    iters = iters_of(chunk)
    if iters is None:
        return {}
    return {"collect_iter": int(iters[0]) if (iters == iters[0]).all() else iters.tolist()}
