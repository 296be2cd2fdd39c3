"""Limits the replay ratio: samples drawn from a buffer per sample inserted into it."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ding.utils.errors import ConfigError
from ding.utils.types import Settings

#: Default tolerance in batches: how far a learner may be ahead of collectors, or behind them.
_BATCHES = 32
#: Default tolerance in calls of all collectors for ``n_sample``; the larger of the two counts.
_CALLS = 2
#: Weight of an insert or draw after a whole window.
_FADED = 0.01


@dataclass(frozen=True)
class SampleRatio:
    """The replay ratio that a `RateLimiter` enforces.

    Attributes:
        samples_per_insert: Average number of draws per inserted sample; the minimum if `most` is
            set.
        tolerance: Number of samples by which the draws may deviate from the ratio.
        min_size: Number of samples inserted before the first draw; they count as drawn.
        origin: Description of where the ratio comes from.
        most: Maximum number of draws per inserted sample; None for `samples_per_insert`.
        window: Seconds after which inserts and draws weigh 1 %; infinity keeps their full weight.
    """

    samples_per_insert: float
    tolerance: float
    min_size: int = 1
    origin: str = ""
    most: float | None = None
    window: float = math.inf


# A parallel run has a limiter by default: without one, collectors took 96,000 environment steps of
# CartPole (serial mode: 1,600) and left the learner half of one of the two cores.
class RateLimiter:
    """Limits inserts into a buffer and draws from it (Cassirer et al. 2021, Reverb).

    With ``balance = samples_per_insert * (inserted - min_size) - sampled``, samples may be inserted
    as long as the balance stays at most ``tolerance``, and drawn as long as it stays at least
    ``-tolerance``. One of the two is always allowed, unless `SampleRatio.most` is set. The limiter
    never blocks and is not thread-safe: the caller must hold a lock.

    Args:
        ratio: The ratio to enforce.

    Raises:
        ConfigError: The ratio is not positive, or the tolerance is so small that neither inserts
            nor draws would be allowed.
    """

    def __init__(self, ratio: SampleRatio) -> None:
        given, tolerance = ratio.samples_per_insert, ratio.tolerance
        if ratio.most is None and not 0 < given < math.inf:
            raise ConfigError(f"samples_per_insert={given!r}: expected a positive number")
        if ratio.most is None and not tolerance >= given:
            raise ConfigError(
                f"samples_per_insert_tolerance={tolerance!r}: expected at least "
                f"samples_per_insert={given:g}, what one sample allows to draw"
            )
        self.ratio = ratio
        self._inserted: float = 0
        self._sampled: float = 0
        # Draws that can no longer be made, because their items left the buffer early.
        self._forgiven = 0.0
        self._seen = time.monotonic()

    # ------------------------------------------------------------------ counts

    def insert(self, n: float) -> None:
        """Record that ``n`` samples were inserted, whether or not there was `room`."""
        self._inserted += n

    def sample(self, n: float) -> None:
        """Record that ``n`` samples were drawn."""
        self._sampled += n

    def starve(self) -> None:
        """Cancel the draws that are due, because the buffer contains too few samples: those that it
        removed (for their age or use, or for lack of space) can no longer be drawn."""
        self._forgiven += max(self.balance, 0.0)

    def fade(self) -> tuple[float, float]:
        """Reduce both counts by the time passed; returns the weighted inserts and draws."""
        if self.ratio.window < math.inf:
            now = time.monotonic()
            factor = _FADED ** ((now - self._seen) / self.ratio.window)
            self._seen = now
            self._inserted *= factor
            self._sampled *= factor
        return self._inserted, self._sampled

    # ------------------------------------------------------------------ limits

    def can_sample(self, n: int) -> bool:
        """Whether ``n`` samples may be drawn now."""
        ratio = self.ratio
        if self._inserted < ratio.min_size:
            return False
        if ratio.most is not None:
            return self._due(ratio.most) >= n - ratio.tolerance
        # A batch larger than the tolerance permits is drawn once no more inserts are allowed.
        return self.balance >= min(n - ratio.tolerance, ratio.tolerance - ratio.samples_per_insert)

    @property
    def room(self) -> int:
        """Number of samples that may be inserted now."""
        first = self.ratio.min_size - self._inserted
        spare = (self.ratio.tolerance - self.balance) / self.ratio.samples_per_insert
        return max(math.ceil(first), math.floor(spare), 0)

    @property
    def span(self) -> int:
        """The largest possible `room`: with a balance of ``-tolerance``."""
        return math.floor(2 * self.ratio.tolerance / self.ratio.samples_per_insert)

    @property
    def balance(self) -> float:
        """Number of draws that are due; negative if samples were drawn ahead."""
        return self._due(self.ratio.samples_per_insert)

    def _due(self, per_insert: float) -> float:
        inserted, sampled = self.fade()
        return max(inserted - self.ratio.min_size, 0) * per_insert - sampled - self._forgiven

    @property
    def reached(self) -> float | None:
        """Samples drawn per sample inserted, so far; ``None`` before the first insert."""
        return self._sampled / self._inserted if self._inserted else None

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, float]:
        return {
            "inserted": self._inserted,
            "sampled": self._sampled,
            "balance": self.balance,
        }

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore the counts; if the ratio has changed, the saved balance is kept."""
        self._inserted, self._sampled = state["inserted"], state["sampled"]
        self._forgiven = 0.0
        self._forgiven = self.balance - float(state["balance"])


class ThruputController:
    """A `RateLimiter` for the config key ``thruput_controller`` of a buffer; explains refusals.

    Pushes are not limited before the first draw, so that the buffer can fill.

    Args:
        cfg: ``push_sample_rate_limit.max``, ``.min`` and ``window_seconds``.
    """

    def __init__(self, cfg: Settings) -> None:
        self._least, self._most = _bounds({"thruput_controller": cfg})
        ratio = SampleRatio(self._least, 0.0, 0, "", self._most, float(cfg["window_seconds"]))
        self._limiter = RateLimiter(ratio)
        #: Whether there is anything to limit.
        self.enabled = self._least > 0 or self._most < math.inf

    def can_push(self, push_size: int) -> tuple[bool, str]:
        """Whether `push_size` more items may be pushed; if not, the reason."""
        pushed, sampled = self._limiter.fade()
        if not self._least or sampled < 1e-6 or push_size <= self._limiter.room:
            return True, ""
        rate, limit = (pushed + push_size) / sampled, 1 / self._least
        return False, f"push/sample ratio would be {rate:.3g}, above the limit {limit:.3g}"

    def can_sample(self, sample_size: int) -> tuple[bool, str]:
        """Whether `sample_size` more items may be drawn; if not, the reason."""
        pushed, sampled = self._limiter.fade()
        if self._most == math.inf or not sample_size or self._limiter.can_sample(sample_size):
            return True, ""
        rate, limit = pushed / (sampled + sample_size), 1 / self._most
        return False, f"push/sample ratio would be {rate:.3g}, below the limit {limit:.3g}"

    def close(self) -> None:
        """Does nothing: there is no thread to end."""

    @property
    def history_push_count(self) -> float:
        """Number of items pushed, weighted by recency."""
        return self._limiter.fade()[0]

    @history_push_count.setter
    def history_push_count(self, count: float) -> None:
        # Add the difference: the stored count fades with time.
        self._limiter.insert(count - self.history_push_count)

    @property
    def history_sample_count(self) -> float:
        """Number of items sampled, weighted by recency."""
        return self._limiter.fade()[1]

    @history_sample_count.setter
    def history_sample_count(self, count: float) -> None:
        self._limiter.sample(count - self.history_sample_count)


def sample_ratio(
    policy: Settings, samples_per_insert: object = "auto", tolerance: object = None
) -> SampleRatio | None:
    """The replay ratio for a policy's buffer; ``None`` for no limit.

    With ``'auto'`` it is the ratio of serial mode: ``learn.update_per_collect`` updates on
    ``learn.batch_size`` samples for every ``collect.n_sample`` collected samples. A policy that
    collects episodes has no such ratio. The buffer's ``thruput_controller.push_sample_rate_limit``
    (samples pushed per sample drawn) bounds it: ``min`` from above, ``max`` from below. The ratio
    never exceeds the buffer's ``max_use``.

    Args:
        policy: The policy's config.
        samples_per_insert: A number, ``'auto'``, or ``None`` for no limit.
        tolerance: Number of samples; ``None`` for 32 batches, or two calls of all collectors if
            these yield more draws.

    Raises:
        ConfigError: Another value was given.
    """
    if samples_per_insert is None:
        return None
    learn, collect = policy.get("learn") or {}, policy.get("collect") or {}
    batch_size, n_sample = learn.get("batch_size"), collect.get("n_sample")
    buffer = (policy.get("other") or {}).get("replay_buffer") or {}
    if samples_per_insert != "auto":
        ratio, origin = _positive("samples_per_insert", samples_per_insert), "as configured"
    else:
        # The limits bound the ratio. If the learner dropped samples instead, the coordinator's
        # limiter would count the dropped samples.
        least, most = _bounds(buffer)
        # Without a ratio of serial mode, use one of the bounds, if there is one.
        ratio, origin = least or most, ""
        if isinstance(batch_size, int) and isinstance(n_sample, int) and batch_size and n_sample:
            updates = learn.get("update_per_collect") or 1
            ratio = updates * batch_size / n_sample
            origin = f"update_per_collect {updates} * batch_size {batch_size} / n_sample {n_sample}"
        if math.isinf(ratio):
            return None
        if not origin or not least <= ratio <= most:
            ratio = min(max(least, ratio), most)
            origin = f"push_sample_rate_limit; else {origin or 'none'}"
    most = buffer.get("max_use") or math.inf
    if ratio > most:
        # The buffer removes samples that were used `max_use` times, so a higher ratio is never
        # reached and the learner would wait for it.
        ratio, origin = float(most), f"max_use; else {origin}"
    size = batch_size if isinstance(batch_size, int) else 1
    if tolerance is None:
        collectors = (collect.get("collector") or {}).get("collector_num") or 1
        per_call = n_sample if isinstance(n_sample, int) else 1
        least = _CALLS * collectors * per_call * ratio
        return SampleRatio(ratio, max(_BATCHES * size, least), size, origin)
    return SampleRatio(ratio, _positive("samples_per_insert_tolerance", tolerance), size, origin)


def _bounds(buffer: Settings) -> tuple[float, float]:
    """The minimum and maximum number of draws per sample that a buffer's config allows."""
    limit = (buffer.get("thruput_controller") or {}).get("push_sample_rate_limit") or {}
    most_pushed, least_pushed = float(limit.get("max", math.inf)), float(limit.get("min", 0.0))
    return 1 / max(most_pushed, 1e-9), 1 / least_pushed if least_pushed > 0 else math.inf


def _positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        expected = "a positive number, 'auto' or None" if "tol" not in name else "a positive number"
        raise ConfigError(f"system_config.coordinator.{name} is {value!r}: expected {expected}")
    return float(value)
