"""Training samples of one player that are complete and were not returned yet."""

from typing import TypeGuard

from ding.data import Columns
from ding.data.columns import packed, unpacked
from ding.worker.collector.steps import Samples, State


class SampleStock:
    """Samples of consecutive trajectories, the oldest first."""

    def __init__(self) -> None:
        self._samples: Samples | None = None

    def __len__(self) -> int:
        return 0 if self._samples is None else len(self._samples)

    def add(self, samples: Samples) -> None:
        """Append samples."""
        before = self._samples
        if before is None:
            self._samples = samples
        elif _is_columnar(before) and _is_columnar(samples):
            self._samples = Columns.concat([before, samples])
        else:
            self._samples = [*before, *samples]

    def take(self, n: int | None = None) -> Samples:
        """The n oldest samples, or all; the others stay."""
        taken = self._samples
        if taken is None:
            return []
        if n is None or n >= len(taken):
            self._samples = None
            return taken
        self._samples = taken[n:]
        if _is_columnar(taken):
            taken = taken.apart()  # they may be changed without those that stay
        return taken[:n]

    def state_dict(self) -> State | None:
        """The samples, if they are columnar; rows may hold what no file can."""
        return {"samples": packed(self._samples)} if _is_columnar(self._samples) else None

    def load_state_dict(self, state: State | None) -> None:
        self._samples = None if state is None else unpacked(state["samples"])


def _is_columnar(samples: Samples | None) -> TypeGuard[Columns]:
    return isinstance(samples, Columns) and samples.is_columnar
