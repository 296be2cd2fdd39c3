"""Training samples of one player that are complete and were not returned yet."""

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
        self._samples = samples if self._samples is None else self._samples + samples

    def take(self, n: int | None = None) -> Samples:
        """The n oldest samples, or all; the others stay."""
        taken = self._samples
        if taken is None:
            return []
        if n is None or n >= len(taken):
            self._samples = None
            return taken
        self._samples = taken[n:]
        if isinstance(taken, Columns) and taken.is_columnar:
            taken = taken.apart()  # they may be changed without those that stay
        return taken[:n]

    def state_dict(self) -> State | None:
        """The samples, if they are columnar; rows may hold what no file can."""
        if not isinstance(self._samples, Columns) or not self._samples.is_columnar:
            return None
        return {"samples": packed(self._samples)}

    def load_state_dict(self, state: State | None) -> None:
        self._samples = None if state is None else unpacked(state["samples"])
