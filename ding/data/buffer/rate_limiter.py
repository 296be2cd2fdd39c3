"""Keeps the number of samples drawn in proportion to the number of samples put in."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ding.utils.errors import ConfigError
from ding.utils.types import Settings

#: Batches that a learner may be ahead of collectors, or behind them, if no tolerance is given.
_BATCHES = 32
#: The same in calls of all collectors for ``n_sample``, if that is more.
_CALLS = 2
#: Weight of what happened a whole window ago.
_FADED = 0.01


@dataclass(frozen=True)
class SampleRatio:
    """What a `RateLimiter` keeps to.

    Attributes:
        samples_per_insert: How often each sample is drawn, on average: at least, if `most` differs.
        tolerance: Samples by which the number of drawn ones may differ from that.
        min_size: Samples that are put in before any is drawn; they count as drawn.
        origin: Description of where the ratio comes from.
        most: How often each is drawn at most; None: `samples_per_insert`.
        window: Seconds after which what happened weighs 1 %; infinity forgets nothing.
    """

    samples_per_insert: float
    tolerance: float
    min_size: int = 1
    origin: str = ""
    most: float | None = None
    window: float = math.inf


# Why a parallel run has one by default: collectors that ran free took 96,000 environment steps of
# CartPole where serial mode takes 1,600, and left the learner half a core of two.
class RateLimiter:
    """Limits how much may be put into a buffer, or drawn from it (Cassirer et al. 2021, Reverb).

    With ``balance = samples_per_insert * (inserted - min_size) - sampled``, samples may be put in
    while the balance stays at most ``tolerance``, and drawn while it stays at least ``-tolerance``;
    one of both is always allowed, unless `SampleRatio.most` leaves a range between them. It never
    blocks and is not thread-safe: its owner has a lock.

    Args:
        ratio: What to keep to.

    Raises:
        ConfigError: A tolerance with which neither side could go on.
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
        # Draws still due of items that left the buffer early, which can no longer be made.
        self._forgiven = 0.0
        self._seen = time.monotonic()

    # ------------------------------------------------------------------ what happens

    def insert(self, n: float) -> None:
        """Record that ``n`` samples were put in, whether or not there was room."""
        self._inserted += n

    def sample(self, n: float) -> None:
        """Record that ``n`` samples were drawn."""
        self._sampled += n

    def starve(self) -> None:
        """The buffer has too little to draw from, whatever was put in: what it lost unused (for its
        age, its use, for lack of space) is not to be made up for."""
        self._forgiven += max(self.balance, 0.0)

    def fade(self) -> tuple[float, float]:
        """Forget by the time that has passed; what was put in and what was drawn, as they weigh."""
        if self.ratio.window < math.inf:
            now = time.monotonic()
            factor = _FADED ** ((now - self._seen) / self.ratio.window)
            self._seen = now
            self._inserted *= factor
            self._sampled *= factor
        return self._inserted, self._sampled

    # ------------------------------------------------------------------ what may happen

    def can_sample(self, n: int) -> bool:
        """Whether ``n`` samples may be drawn now."""
        ratio = self.ratio
        if self._inserted < ratio.min_size:
            return False
        if ratio.most is not None:
            return self._due(ratio.most) >= n - ratio.tolerance
        # A batch too large for that is drawn when nothing more may be put in.
        return self.balance >= min(n - ratio.tolerance, ratio.tolerance - ratio.samples_per_insert)

    @property
    def room(self) -> int:
        """How many samples may be put in now."""
        first = self.ratio.min_size - self._inserted
        spare = (self.ratio.tolerance - self.balance) / self.ratio.samples_per_insert
        return max(math.ceil(first), math.floor(spare), 0)

    @property
    def span(self) -> int:
        """The `room` of those who are as far behind as the tolerance allows."""
        return math.floor(2 * self.ratio.tolerance / self.ratio.samples_per_insert)

    @property
    def balance(self) -> float:
        """Samples that are still to be drawn; negative: that were drawn ahead."""
        return self._due(self.ratio.samples_per_insert)

    def _due(self, per_insert: float) -> float:
        inserted, sampled = self.fade()
        return max(inserted - self.ratio.min_size, 0) * per_insert - sampled - self._forgiven

    @property
    def reached(self) -> float | None:
        """Samples drawn for each one that was put in, so far; ``None`` before the first."""
        return self._sampled / self._inserted if self._inserted else None

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, float]:
        return {
            "inserted": self._inserted,
            "sampled": self._sampled,
            "balance": self.balance,
        }

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Go on where the other one stood; after a change of the ratio, from its balance on."""
        self._inserted, self._sampled = state["inserted"], state["sampled"]
        self._forgiven = 0.0
        self._forgiven = self.balance - float(state["balance"])


class ThruputController:
    """A `RateLimiter` by the config key ``thruput_controller`` of a buffer, which gives the reason.

    Before anything was drawn, pushes are free: the ratio says nothing of a buffer that fills.

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
        """Whether `push_size` more items may come in, and if not, why."""
        pushed, sampled = self._limiter.fade()
        if not self._least or sampled < 1e-6 or push_size <= self._limiter.room:
            return True, ""
        rate, limit = (pushed + push_size) / sampled, 1 / self._least
        return False, f"push/sample ratio would be {rate:.3g}, above the limit {limit:.3g}"

    def can_sample(self, sample_size: int) -> tuple[bool, str]:
        """Whether `sample_size` more items may go out, and if not, why."""
        pushed, sampled = self._limiter.fade()
        if self._most == math.inf or not sample_size or self._limiter.can_sample(sample_size):
            return True, ""
        rate, limit = pushed / (sampled + sample_size), 1 / self._most
        return False, f"push/sample ratio would be {rate:.3g}, below the limit {limit:.3g}"

    def close(self) -> None:
        """Nothing runs in the background."""

    @property
    def history_push_count(self) -> float:
        """Items pushed, the recent ones for the most part."""
        return self._limiter.fade()[0]

    @history_push_count.setter
    def history_push_count(self, count: float) -> None:
        # As a difference, since the count fades with time: setting it must not undo that.
        self._limiter.insert(count - self.history_push_count)

    @property
    def history_sample_count(self) -> float:
        """Items sampled, likewise."""
        return self._limiter.fade()[1]

    @history_sample_count.setter
    def history_sample_count(self, count: float) -> None:
        self._limiter.sample(count - self.history_sample_count)


def sample_ratio(
    policy: Settings, samples_per_insert: object = "auto", tolerance: object = None
) -> SampleRatio | None:
    """The ratio for a policy's buffer; ``None`` if nothing is to be kept to.

    Without a number it is that of serial mode: there, ``learn.update_per_collect`` updates on
    ``learn.batch_size`` samples follow each call for ``collect.n_sample`` samples. A policy that
    collects episodes has none. The buffer's ``thruput_controller.push_sample_rate_limit``, samples
    put in for each one drawn, bounds it: ``min`` from above and ``max`` from below. It is never
    more than the buffer's ``max_use``.

    Args:
        policy: The policy's config.
        samples_per_insert: A number, ``'auto'``, or ``None`` to keep to nothing.
        tolerance: Samples; ``None``: 32 batches, or what two calls of all collectors bring.

    Raises:
        ConfigError: Something else.
    """
    if samples_per_insert is None:
        return None
    learn, collect = policy.get("learn") or {}, policy.get("collect") or {}
    batch_size, n_sample = learn.get("batch_size"), collect.get("n_sample")
    buffer = (policy.get("other") or {}).get("replay_buffer") or {}
    if samples_per_insert != "auto":
        ratio, origin = _positive("samples_per_insert", samples_per_insert), "as configured"
    else:
        # They bound the ratio rather than drop samples in the learner: the coordinator's limiter
        # would count those that were dropped.
        least, most = _bounds(buffer)
        # Without a ratio of serial mode, one of the bounds is kept to, if there is one.
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
        # The buffer drops what was used that often, so that a higher ratio is never reached and the
        # learner would wait for it.
        ratio, origin = float(most), f"max_use; else {origin}"
    size = batch_size if isinstance(batch_size, int) else 1
    if tolerance is None:
        collectors = (collect.get("collector") or {}).get("collector_num") or 1
        per_call = n_sample if isinstance(n_sample, int) else 1
        least = _CALLS * collectors * per_call * ratio
        return SampleRatio(ratio, max(_BATCHES * size, least), size, origin)
    return SampleRatio(ratio, _positive("samples_per_insert_tolerance", tolerance), size, origin)


def _bounds(buffer: Settings) -> tuple[float, float]:
    """The least and the largest number of draws per sample that a buffer's config allows."""
    limit = (buffer.get("thruput_controller") or {}).get("push_sample_rate_limit") or {}
    most_pushed, least_pushed = float(limit.get("max", math.inf)), float(limit.get("min", 0.0))
    return 1 / max(most_pushed, 1e-9), 1 / least_pushed if least_pushed > 0 else math.inf


def _positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        expected = "a positive number, 'auto' or None" if "tol" not in name else "a positive number"
        raise ConfigError(f"system_config.coordinator.{name} is {value!r}: expected {expected}")
    return float(value)
