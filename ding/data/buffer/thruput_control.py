"""Keeping pushing and sampling in step."""

import time

from easydict import EasyDict


class ThruputController:
    """Says whether a push or a sample would leave the allowed ratio of items pushed to sampled.

    Both are counted over a window that fades: what happened ``window_seconds`` ago weighs 1 %.

    Args:
        cfg: ``push_sample_rate_limit.max``, ``.min`` and ``window_seconds``.
    """

    def __init__(self, cfg: EasyDict) -> None:
        limit = cfg.push_sample_rate_limit
        self._max, self._min = float(limit.max), float(limit.min)
        self._window = float(cfg.window_seconds)
        self._pushed = self._sampled = 0.0
        self._seen = time.monotonic()
        #: Whether there is anything to limit.
        self.enabled = self._max != float("inf") or self._min > 0

    def can_push(self, push_size: int) -> tuple[bool, str]:
        """Whether `push_size` more items may come in, and if not, why."""
        if self._max == float("inf") or self.history_sample_count < 1e-6:
            return True, ""
        rate = (self._pushed + push_size) / self._sampled
        allowed = rate <= self._max
        why = f"push/sample ratio would be {rate:.3g}, above the limit {self._max:.3g}"
        return allowed, "" if allowed else why

    def can_sample(self, sample_size: int) -> tuple[bool, str]:
        """Whether `sample_size` more items may go out, and if not, why."""
        if self._min <= 0 or sample_size == 0:
            return True, ""
        rate = self.history_push_count / (self._sampled + sample_size)
        allowed = rate >= self._min
        why = f"push/sample ratio would be {rate:.3g}, below the limit {self._min:.3g}"
        return allowed, "" if allowed else why

    def close(self) -> None:
        """Nothing runs in the background."""

    @property
    def history_push_count(self) -> float:
        """Items pushed, the recent ones for the most part."""
        self._fade()
        return self._pushed

    @history_push_count.setter
    def history_push_count(self, count: float) -> None:
        self._fade()
        self._pushed = count

    @property
    def history_sample_count(self) -> float:
        """Items sampled, likewise."""
        self._fade()
        return self._sampled

    @history_sample_count.setter
    def history_sample_count(self, count: float) -> None:
        self._fade()
        self._sampled = count

    def _fade(self) -> None:
        now = time.monotonic()
        factor = 0.01 ** ((now - self._seen) / self._window)
        self._seen = now
        self._pushed *= factor
        self._sampled *= factor
