"""How many bytes each collector may write into a folder of bounded size."""

from dataclasses import dataclass

#: What an unlimited folder grants.
UNLIMITED = 1 << 62
#: Collectors among which space is shared out even before as many have come.
_FEWEST = 8


@dataclass(slots=True)
class _Account:
    granted: int = 0
    written: int = 0


class SpaceQuota:
    """Keeps the bytes that may be written, before they are reported, within bounds.

    All figures are sums since the collector came, so that an answer that is lost, or comes twice,
    does no harm.

    Args:
        max_bytes: Size of the folder; None for no limit.
    """

    def __init__(self, max_bytes: int | None) -> None:
        self.max_bytes = max_bytes
        self._accounts: dict[str, _Account] = {}

    @property
    def reserved(self) -> int:
        """Bytes that were granted and have not been reported as written."""
        return sum(a.granted - a.written for a in self._accounts.values())

    def note(self, worker: str, written: int) -> None:
        """`written` bytes of this worker have been reported so far."""
        account = self._accounts.setdefault(worker, _Account())
        account.written = max(account.written, written)
        # What was written without being allowed is counted where the files are.
        account.granted = max(account.granted, account.written)

    def take_back(self, worker: str) -> None:
        """A worker waits: what it was granted is too little, and would only keep others waiting."""
        account = self._accounts[worker]
        account.granted = account.written

    def wish(self, worker: str, need: int, largest: int) -> int:
        """Bytes to add, so that a worker can go on while its reports are on the way.

        Args:
            need: Size of a chunk that waits for space; 0 if none does.
            largest: Size of the largest chunk so far.
        """
        assert self.max_bytes is not None
        account = self._accounts[worker]
        share = self.max_bytes // (8 * max(len(self._accounts), _FEWEST))
        window = max(need, min(max(share, 2 * largest), self.max_bytes // 2))
        return max(window - (account.granted - account.written), 0)

    def extend(self, worker: str, more: int) -> int:
        """Grant `more` bytes; returns all that were granted so far."""
        account = self._accounts[worker]
        account.granted += max(more, 0)
        return account.granted

    def forget(self, worker: str) -> None:
        """A worker is gone; what it did not use is free again."""
        self._accounts.pop(worker, None)
