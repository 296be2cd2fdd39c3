"""Limits for collectors and learners: disk space, and the ratio of drawn to collected samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from ding.data.buffer.rate_limiter import RateLimiter, SampleRatio
from ding.utils.errors import ConfigError

#: Granted bytes without a limit.
UNLIMITED = 1 << 62
#: Minimum number of collectors among which space is divided, even if fewer have joined.
_FEWEST = 8
#: Fraction of the rate limiter's span that must be free before waiting collectors continue.
_WORTHWHILE = 0.25
#: A collector's estimate of the bytes of a file in addition to the samples.
_FILE_SLACK = 8192


class Tenant(Protocol):
    """A buffer with files in the folder."""

    @property
    def bytes(self) -> int: ...

    def evict(self, n_bytes: int) -> None:
        """Remove the oldest files, about ``n_bytes``."""


@dataclass(slots=True)
class _Account:
    granted: int = 0
    written: int = 0

    @property
    def left(self) -> int:
        """Granted bytes that were not reported as written yet."""
        return self.granted - self.written


class SpaceQuota:
    """Limits written and granted bytes, for all buffers of a folder together.

    A collector's figures are sums since it joined, so that a lost or repeated answer has no effect.

    Args:
        max_bytes: Size of the folder; None for no limit.

    Attributes:
        tenants: The buffers whose files count.
    """

    def __init__(self, max_bytes: int | None) -> None:
        self.max_bytes = max_bytes or None
        self.tenants: list[Tenant] = []
        self._accounts: dict[str, _Account] = {}
        self._reserved = 0  # granted bytes of all accounts that were not written yet

    def grant(self, worker: str, written: int, need: int, largest: int) -> int:
        """Total bytes that a worker may have written since it joined, including reported ones.

        If there is too little space, old files are evicted, first those of the largest buffer.

        Args:
            written: Bytes that the worker has reported since it joined.
            need: Size of a file that waits for space, else 0. It is granted completely or not at
                all: partial grants to several workers would keep all of them waiting.
            largest: Size of the largest file so far.
        """
        if self.max_bytes is None:
            return UNLIMITED
        account = self._accounts.setdefault(worker, _Account())
        before = account.left
        account.written = max(account.written, written)
        # Bytes written without permission are counted with the files.
        account.granted = account.written if need else max(account.granted, account.written)
        self._reserved += account.left - before
        # The window lets a worker continue while its reports are in transit.
        share = self.max_bytes // (8 * max(len(self._accounts), _FEWEST))
        window = max(need, min(max(share, 2 * largest), self.max_bytes // 2))
        wish = max(window - account.left, 0)
        # Half of the space is reserved for samples, unless a worker is blocked.
        is_crowded = 2 * self._used() > self.max_bytes
        self._evict((wish if is_crowded else min(wish, max(need, largest))) - self._free())
        more = min(wish, self._free())
        if more > 0 and more >= need:
            account.granted += more
            self._reserved += more
        return account.granted

    def forget(self, worker: str) -> None:
        """Free the unused grant of a lost worker."""
        account = self._accounts.pop(worker, None)
        if account is not None:
            self._reserved -= account.left

    def _used(self) -> int:
        return sum(tenant.bytes for tenant in self.tenants)

    def _free(self) -> int:
        return (self.max_bytes or 0) - self._used() - self._reserved

    def _evict(self, missing: int) -> None:
        """Evict old files; none if removing all of them would not suffice."""
        if not 0 < missing <= self._used():
            return
        for tenant in sorted(self.tenants, key=lambda tenant: -tenant.bytes):
            n_bytes = min(missing, tenant.bytes)
            missing -= n_bytes
            if n_bytes:
                tenant.evict(n_bytes)


class RatioStatus(TypedDict):
    """The ratio of drawn samples: its target, its value so far, the number of samples still to be
    drawn for those that were added, and the tolerance of this number."""

    target: float
    reached: float | None
    balance: float
    tolerance: float


#: The ratio of a buffer without a target: both sides may always continue.
_FREE = SampleRatio(1.0, float(UNLIMITED), min_size=0)


class BufferPace(RateLimiter):
    """Keeps collectors and the learner of a buffer within the ratio, and files within the space.

    Args:
        name: The buffer's name in errors.
        ratio: Number of times that each added sample is drawn; None for no limit.
        space: Quota of the files' bytes.
    """

    def __init__(self, name: str, ratio: SampleRatio | None, space: SpaceQuota) -> None:
        super().__init__(ratio or _FREE)
        self._name, self._space, self._is_free = name, space, ratio is None
        # By collector: whether the ratio, not the space, limits it.
        self._paced: dict[str, bool] = {}
        self._largest = 0
        self._row_bytes = 0.0  # of the newest chunk

    def put_in(self, rows: int, size: int) -> None:
        """Count a new chunk."""
        self._largest = max(self._largest, size)
        self._row_bytes = size / rows
        self.insert(rows)

    def can_sample(self, n: int) -> bool:
        return self._is_free or super().can_sample(n)

    def has_room(self) -> bool:
        """Whether collectors may continue; otherwise they wait for the learner."""
        return self._is_free or self.room >= max(1, int(_WORTHWHILE * self.span))

    def paces(self, worker: str) -> bool:
        """Whether a collector is blocked by the learner, not by lack of space."""
        return self._paced.get(worker, False)

    def grant(self, worker: str, written: int, need: int = 0) -> int:
        """Total bytes that a collector may have written since it joined, including reported ones.

        If the byte limit binds before the buffer's capacity, the oldest samples are evicted, so
        that no collector waits forever. While the learner must draw more first, nothing is granted.

        Args:
            written: Bytes of all its chunks that were reported (pushed) since it joined.
            need: As in `SpaceQuota.grant`.

        Raises:
            ConfigError: A chunk is larger than the limit.
        """
        limit = self._space.max_bytes
        if limit is not None and need > limit:
            raise ConfigError(
                f"{self._name}: {worker} has a chunk of {need} bytes, path_data_limit={limit} is "
                f"less: raise the limit, or collect fewer samples at a time"
            )
        self._paced[worker] = True
        allowed = None
        if not self._is_free and self._row_bytes:
            # In equal shares, rounded up: otherwise none could write if there is room for a few.
            rows = -(-self.room // len(self._paced))
            if not rows:
                return written
            allowed = written + max(int(rows * self._row_bytes) + _FILE_SLACK, need)
        granted = self._space.grant(worker, written, need, self._largest)
        if allowed is not None and allowed <= granted:
            return allowed
        self._paced[worker] = False
        return granted

    def forget_worker(self, worker: str) -> None:
        """Free the unused grant of a collector that has left or restarts."""
        self._space.forget(worker)
        self._paced.pop(worker, None)

    def ratio_status(self) -> RatioStatus | None:
        """The ratio's status; None without a target."""
        if self._is_free:
            return None
        return {
            "target": self.ratio.samples_per_insert,
            "reached": self.reached,
            "balance": self.balance,
            "tolerance": self.ratio.tolerance,
        }

    def state_dict(self) -> dict[str, Any]:
        limiter = None if self._is_free else super().state_dict()
        return {"largest": self._largest, "limiter": limiter}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore another object's state, whatever its ratio."""
        self._largest = int(state["largest"])
        if not self._is_free and state["limiter"] is not None:
            super().load_state_dict(state["limiter"])
