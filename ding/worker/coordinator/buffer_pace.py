"""How much collectors may write, and whether a batch may be drawn: space and pace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from ding.data.buffer.rate_limiter import RateLimiter, SampleRatio
from ding.utils.errors import ConfigError

#: What an unlimited folder grants.
UNLIMITED = 1 << 62
#: Collectors among which space is shared even before that number has come.
_FEWEST = 8
#: Part of the rate limiter's span for which waiting collectors wait: not for each sample.
_WORTHWHILE = 0.25
#: Bytes that a collector expects its next file to have in addition to the samples.
_FILE_SLACK = 8192


class Tenant(Protocol):
    """What has files in the folder."""

    @property
    def bytes(self) -> int: ...

    def evict(self, n_bytes: int) -> None:
        """Release the oldest files, about ``n_bytes``."""


@dataclass(slots=True)
class _Account:
    granted: int = 0
    written: int = 0

    @property
    def left(self) -> int:
        """Bytes that may be written, or are on the way to be reported."""
        return self.granted - self.written


class SpaceQuota:
    """Keeps files and what may be written within bounds, for all buffers of a folder together.

    Figures of a collector are sums since it came, so that an answer that is lost, or comes twice,
    does no harm.

    Args:
        max_bytes: Size of the folder; None for no limit.

    Attributes:
        tenants: The buffers whose files count.
    """

    def __init__(self, max_bytes: int | None) -> None:
        self.max_bytes = max_bytes or None
        self.tenants: list[Tenant] = []
        self._accounts: dict[str, _Account] = {}
        self._reserved = 0  # what all accounts have left

    def grant(self, worker: str, written: int, need: int, largest: int) -> int:
        """The bytes that a worker may have written since it came, reported ones included.

        If there is too little space, old files leave, first those of the largest buffer.

        Args:
            written: Bytes that it has reported since it came.
            need: Size of a file that waits for space, 0 if none does. It gets what it needs or
                nothing: parts for several would keep all of them waiting.
            largest: Size of the largest file so far.
        """
        if self.max_bytes is None:
            return UNLIMITED
        account = self._accounts.setdefault(worker, _Account())
        before = account.left
        account.written = max(account.written, written)
        # What was written without being allowed is counted where the files are.
        account.granted = account.written if need else max(account.granted, account.written)
        self._reserved += account.left - before
        # With its window a worker can go on while its reports are on the way.
        share = self.max_bytes // (8 * max(len(self._accounts), _FEWEST))
        window = max(need, min(max(share, 2 * largest), self.max_bytes // 2))
        wish = max(window - account.left, 0)
        # Half of the space is for samples, unless a worker can do nothing without it.
        is_crowded = 2 * self._used() > self.max_bytes
        self._evict((wish if is_crowded else min(wish, max(need, largest))) - self._free())
        more = min(wish, self._free())
        if more > 0 and more >= need:
            account.granted += more
            self._reserved += more
        return account.granted

    def forget(self, worker: str) -> None:
        """A worker is lost; what it did not use is free again."""
        account = self._accounts.pop(worker, None)
        if account is not None:
            self._reserved -= account.left

    def _used(self) -> int:
        return sum(tenant.bytes for tenant in self.tenants)

    def _free(self) -> int:
        return (self.max_bytes or 0) - self._used() - self._reserved

    def _evict(self, missing: int) -> None:
        """Have old files leave; none if all of them would not be enough."""
        if not 0 < missing <= self._used():
            return
        for tenant in sorted(self.tenants, key=lambda tenant: -tenant.bytes):
            n_bytes = min(missing, tenant.bytes)
            missing -= n_bytes
            if n_bytes:
                tenant.evict(n_bytes)


class RatioStatus(TypedDict):
    """How often samples are drawn: what is aimed at, what it was so far, how many samples are still
    to be drawn for those that were put in, and by how many that may be missed."""

    target: float
    reached: float | None
    balance: float
    tolerance: float


#: The ratio of a buffer without one: whatever comes, both sides may continue.
_FREE = SampleRatio(1.0, float(UNLIMITED), min_size=0)


class BufferPace(RateLimiter):
    """Keeps collectors and the learner of a buffer within the ratio, and files within the space.

    Args:
        name: The buffer's name in errors.
        ratio: Samples that are drawn for each one that is put in; None for as many as wanted.
        space: Bytes that files may take.
    """

    def __init__(self, name: str, ratio: SampleRatio | None, space: SpaceQuota) -> None:
        super().__init__(ratio or _FREE)
        self._name, self._space, self._is_free = name, space, ratio is None
        # Collectors, and whether they may write less than there is space for.
        self._paced: dict[str, bool] = {}
        self._largest = 0
        self._row_bytes = 0.0  # of the chunk that came last

    def put_in(self, rows: int, size: int) -> None:
        """A chunk has come."""
        self._largest = max(self._largest, size)
        self._row_bytes = size / rows
        self.insert(rows)

    def can_sample(self, n: int) -> bool:
        return self._is_free or super().can_sample(n)

    def has_room(self) -> bool:
        """Whether collectors may continue, or have to wait for the learner."""
        return self._is_free or self.room >= max(1, int(_WORTHWHILE * self.span))

    def paces(self, worker: str) -> bool:
        """Whether a collector may write no more because of the learner, not for lack of space."""
        return self._paced.get(worker, False)

    def grant(self, worker: str, written: int, need: int = 0) -> int:
        """The bytes that a collector may have written since it came, reported ones included.

        When the limit binds, and not the buffer's capacity, the oldest samples leave, so that no
        collector waits for ever. While the learner has to draw more first, nothing may be written.

        Args:
            written: Bytes of all its chunks that were reported (pushed) since it came.
            need: As for `SpaceQuota.grant`.

        Raises:
            ConfigError: A chunk that is larger than the limit.
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
            # In equal shares, rounded up: otherwise none could write when there is room for a few.
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
        """A collector has left or starts again: what it had not used is free."""
        self._space.forget(worker)
        self._paced.pop(worker, None)

    def ratio_status(self) -> RatioStatus | None:
        """How often samples are drawn; None without a target."""
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
        """Continue from the state of another one, whatever its ratio."""
        self._largest = int(state["largest"])
        if not self._is_free and state["limiter"] is not None:
            super().load_state_dict(state["limiter"])
