"""Keeping pushing and sampling in step."""

import time

from easydict import EasyDict


def _faded(name: str, doc: str) -> property:
    """A count of a controller, as it is by now."""

    def get(self: "ThruputController") -> float:
        self._fade()
        return float(getattr(self, name))

    def put(self: "ThruputController", count: float) -> None:
        self._fade()
        setattr(self, name, count)

    return property(get, put, doc=doc)


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
        self._fade()
        if self._max == float("inf") or self._sampled < 1e-6:
            return True, ""
        rate = (self._pushed + push_size) / self._sampled
        if rate <= self._max:
            return True, ""
        return False, f"push/sample ratio would be {rate:.3g}, above the limit {self._max:.3g}"

    def can_sample(self, sample_size: int) -> tuple[bool, str]:
        """Whether `sample_size` more items may go out, and if not, why."""
        self._fade()
        if self._min <= 0 or sample_size == 0:
            return True, ""
        rate = self._pushed / (self._sampled + sample_size)
        if rate >= self._min:
            return True, ""
        return False, f"push/sample ratio would be {rate:.3g}, below the limit {self._min:.3g}"

    def close(self) -> None:
        """Nothing runs in the background."""

    history_push_count = _faded("_pushed", "Items pushed, the recent ones for the most part.")
    history_sample_count = _faded("_sampled", "Items sampled, likewise.")

    def _fade(self) -> None:
        now = time.monotonic()
        factor = 0.01 ** ((now - self._seen) / self._window)
        self._seen = now
        self._pushed *= factor
        self._sampled *= factor
