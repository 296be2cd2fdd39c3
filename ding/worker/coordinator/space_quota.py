"""How many bytes each collector may write into a folder of bounded size."""

import threading
from dataclasses import dataclass
from typing import Protocol

#: What an unlimited folder grants.
UNLIMITED = 1 << 62
#: Collectors among which space is shared out even before as many have come.
_FEWEST = 8


class Tenant(Protocol):
    """What has files in the folder."""

    @property
    def bytes(self) -> int: ...

    def evict(self, n_bytes: int) -> None:
        """Let go of the oldest files, about so many bytes."""


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
    does no harm. Safe for threads.

    Args:
        max_bytes: Size of the folder; None for no limit.
    """

    def __init__(self, max_bytes: int | None) -> None:
        self.max_bytes = max_bytes or None
        self._lock = threading.Lock()
        self._accounts: dict[str, _Account] = {}
        self._tenants: list[Tenant] = []
        self._reserved = 0  # what all accounts have left

    def join(self, tenant: Tenant) -> None:
        """Count the files of a buffer from now on."""
        with self._lock:
            self._tenants.append(tenant)

    def leave(self, tenant: Tenant) -> None:
        """The files of a buffer are gone."""
        with self._lock:
            self._tenants.remove(tenant)

    def grant(self, worker: str, written: int, need: int, largest: int) -> int:
        """The bytes that a worker may have written since it came, reported ones included.

        If there is not enough space, old files are let go of, first those of the buffer that has
        most.

        Args:
            written: Bytes that it has reported since it came.
            need: Size of a file that waits for space, 0 if none does. One that waits gets what it
                needs or nothing: parts for several would keep all of them waiting.
            largest: Size of the largest file so far.
        """
        if self.max_bytes is None:
            return UNLIMITED
        with self._lock:
            account = self._noted(worker, written)
            if need:
                self._reserved -= account.left
                account.granted = account.written
            window = self._window(need, largest)
            wish = max(window - account.left, 0)
            # Half of the space is for samples, unless somebody can do nothing without it.
            crowded = 2 * self._used() > self.max_bytes
            least = wish if crowded else min(wish, max(need, largest))
            leaving = self._to_evict(least - self._free())
        for tenant, n_bytes in leaving:
            tenant.evict(n_bytes)
        with self._lock:
            account = self._noted(worker, written)
            more = min(max(window - account.left, 0), self._free())
            if more > 0 and more >= need:
                account.granted += more
                self._reserved += more
            return account.granted

    def forget(self, worker: str) -> None:
        """A worker is gone; what it did not use is free again."""
        with self._lock:
            account = self._accounts.pop(worker, None)
            if account is not None:
                self._reserved -= account.left

    def _noted(self, worker: str, written: int) -> _Account:
        account = self._accounts.setdefault(worker, _Account())
        left = account.left
        account.written = max(account.written, written)
        # What was written without being allowed is counted where the files are.
        account.granted = max(account.granted, account.written)
        self._reserved += account.left - left
        return account

    def _window(self, need: int, largest: int) -> int:
        """Bytes with which a worker can go on while its reports are on the way."""
        assert self.max_bytes is not None
        share = self.max_bytes // (8 * max(len(self._accounts), _FEWEST))
        return max(need, min(max(share, 2 * largest), self.max_bytes // 2))

    def _used(self) -> int:
        return sum(tenant.bytes for tenant in self._tenants)

    def _free(self) -> int:
        assert self.max_bytes is not None
        return self.max_bytes - self._used() - self._reserved

    def _to_evict(self, missing: int) -> list[tuple[Tenant, int]]:
        """Who has to let go of how much; nobody if all of it would not be enough."""
        if not 0 < missing <= self._used():
            return []
        leaving = []
        for tenant in sorted(self._tenants, key=lambda tenant: -tenant.bytes):
            n_bytes = min(missing, tenant.bytes)
            missing -= n_bytes
            if n_bytes:
                leaving.append((tenant, n_bytes))
        return leaving
