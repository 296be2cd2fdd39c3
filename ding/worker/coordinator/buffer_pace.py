"""How far collectors and the learner of a buffer may be ahead of each other."""

import threading
from collections.abc import Mapping
from typing import Any, TypedDict

from ding.utils.errors import ConfigError
from ding.worker.replay_buffer.rate_limiter import RateLimiter, SampleRatio

from .space_quota import SpaceQuota

#: Part of what the rate limiter leaves room for that collectors who had none wait for, so that
#: they are not asked for each sample.
_WORTHWHILE = 0.25
#: Bytes that a collector expects its next file to have beside the samples.
_FILE_SLACK = 8192


class RatioStatus(TypedDict):
    """How often samples are drawn: what is aimed at, what it was so far, how many samples are still
    to be drawn for those that were put in, and by how many that may be missed."""

    target: float
    reached: float | None
    balance: float
    tolerance: float


class BufferPace:
    """Says how much collectors may write, and whether a batch may be drawn.

    What collectors' sessions ask, and `forget_worker`, take the lock themselves.

    Args:
        name: Of the buffer, in errors.
        ratio: Samples that are drawn for each one that is put in; None for as many as wanted.
        space: Bytes that files may take.
        lock: Guards this and the buffer.
    """

    def __init__(
        self, name: str, ratio: SampleRatio | None, space: SpaceQuota, lock: threading.Lock
    ) -> None:
        self._name, self._space, self._lock = name, space, lock
        self._limiter = None if ratio is None else RateLimiter(ratio)
        self._collectors: set[str] = set()
        self._paced: set[str] = set()  # collectors who may write less than there is space for
        self._largest = 0
        self._row_bytes = 0.0  # of the chunk that came last

    # ------------------------------------------------------------------ for the buffer

    def put_in(self, rows: int, size: int) -> None:
        """A chunk has come."""
        self._largest = max(self._largest, size)
        self._row_bytes = size / rows
        if self._limiter is not None:
            self._limiter.insert(rows)

    def may_draw(self, batch_size: int) -> bool:
        return self._limiter is None or self._limiter.can_sample(batch_size)

    def drawn(self, batch_size: int) -> None:
        """A batch was drawn."""
        if self._limiter is not None:
            self._limiter.sample(batch_size)

    def note_lack(self) -> None:
        """There are too few rows to draw from, whatever collectors have put in."""
        if self._limiter is not None and self._limiter.balance > 0:
            self._limiter.starve()

    # ------------------------------------------------------------------ for collectors

    def has_room(self) -> bool:
        """Whether collectors may go on, or the learner is behind of them."""
        limiter = self._limiter
        return limiter is None or limiter.room >= max(1, int(_WORTHWHILE * limiter.span))

    def paces(self, worker: str) -> bool:
        """Whether it is for the learner's sake, not for lack of space, if a collector may not write
        more."""
        with self._lock:
            return worker in self._paced

    def grant(self, worker: str, written: int, need: int = 0) -> int:
        """The bytes that a collector may have written since it came, reported ones included.

        When the limit binds, and not the buffer's capacity, the oldest samples leave, so that
        nobody waits for ever. While the learner has to draw more first, nothing may be written.

        Args:
            written: Bytes of all its chunks that were reported (pushed) since it came.
            need: Size of a chunk that waits for space, 0 if none does. One that waits gets what it
                needs or nothing: parts for several would keep all of them waiting.

        Raises:
            ConfigError: A chunk that is larger than the limit.
        """
        limit = self._space.max_bytes
        if limit is not None and need > limit:
            raise ConfigError(
                f"{self._name}: {worker} has a chunk of {need} bytes, path_data_limit={limit} is "
                f"less: raise the limit, or collect fewer samples at a time"
            )
        allowed = self._allowed(worker, written, need)
        if allowed == written:
            return written
        granted = self._space.grant(worker, written, need, self._largest)
        if allowed is None or granted < allowed:
            self._paced.discard(worker)
            return granted
        return allowed

    def _allowed(self, worker: str, written: int, need: int) -> int | None:
        """Bytes that a collector may have written for the learner's pace; None for no limit."""
        with self._lock:
            self._collectors.add(worker)
            self._paced.add(worker)
            if self._limiter is None or not self._row_bytes:
                return None
            rows = -(-self._limiter.room // len(self._collectors))
            if not rows:
                return written
            return written + max(int(rows * self._row_bytes) + _FILE_SLACK, need)

    def forget_worker(self, worker: str) -> None:
        """A collector has left or starts anew: what it had not used is free."""
        self._space.forget(worker)
        with self._lock:
            self._collectors.discard(worker)
            self._paced.discard(worker)

    # ------------------------------------------------------------------ facts and state

    def ratio_status(self) -> RatioStatus | None:
        """How often samples are drawn; None without a target."""
        with self._lock:
            if self._limiter is None:
                return None
            return {
                "target": self._limiter.ratio.samples_per_insert,
                "reached": self._limiter.reached,
                "balance": self._limiter.balance,
                "tolerance": self._limiter.ratio.tolerance,
            }

    def state_dict(self) -> dict[str, Any]:
        limiter = None if self._limiter is None else self._limiter.state_dict()
        return {"largest": self._largest, "limiter": limiter}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another one stood, of another ratio, too."""
        self._largest = int(state["largest"])
        if self._limiter is not None and state["limiter"] is not None:
            self._limiter.load_state_dict(state["limiter"])
