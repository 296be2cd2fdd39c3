"""Training samples of one player that are complete and were not returned yet."""

import numpy as np

from ding.data import Columns
from ding.data.columns import packed, unpacked
from ding.worker.collector.steps import Samples, State, Tree


class SampleStock:
    """Samples of consecutive trajectories, the oldest first."""

    def __init__(self) -> None:
        self._samples: Samples | None = None
        self._lengths: list[int] = []

    def __len__(self) -> int:
        return 0 if self._samples is None else len(self._samples)

    def add(self, samples: Samples, lengths: list[int]) -> None:
        """Append samples, of which ``lengths`` belong to each trajectory."""
        self._samples = samples if self._samples is None else self._samples + samples
        self._lengths += lengths

    def take(self, n: int | None = None) -> Samples:
        """The n oldest samples, or all; the others stay."""
        taken = self._samples
        if taken is None:
            return []
        if n is None or n >= len(taken):
            self._samples, self._lengths = None, []
            return taken
        left = taken[n:]
        if isinstance(taken, Columns) and taken.is_columnar:
            taken = taken.apart()  # they may be changed without those that stay
        ends = np.maximum(np.cumsum(self._lengths) - n, 0)
        self._samples, self._lengths = left, [i for i in np.diff(ends, prepend=0).tolist() if i]
        return taken[:n]

    def take_fairly(self, n: int, turn: int) -> Samples:
        """At most n samples, as equally many of each trajectory as possible; none stay.

        ``turn`` rotates which trajectories keep one more. Where a trajectory is cut, its new last
        sample has ``traj_flag``, if samples have that.
        """
        lengths, samples = np.array(self._lengths), self.take()
        if len(samples) <= n:
            return samples
        kept = _fair_shares(lengths, n, turn)
        starts = np.cumsum(lengths) - lengths
        stops = np.cumsum(kept)
        index = np.arange(n) + np.repeat(starts - stops + kept, kept)
        ends = (stops - 1)[kept > 0]
        if isinstance(samples, Columns) and samples.is_columnar:
            samples = samples.take(index)
            flag: Tree = samples.columns.get("traj_flag")
            if flag is not None:
                flag[ends] = True
            return samples
        samples = [samples[i] for i in index.tolist()]
        for end in ends.tolist():
            if "traj_flag" in samples[end]:
                samples[end]["traj_flag"] = True
        return samples

    def state_dict(self) -> State | None:
        """The samples, if they are columnar; rows may hold what no file can."""
        if not isinstance(self._samples, Columns) or not self._samples.is_columnar:
            return None
        return {"samples": packed(self._samples), "lengths": list(self._lengths)}

    def load_state_dict(self, state: State | None) -> None:
        self._samples = None if state is None else unpacked(state["samples"])
        self._lengths = [] if state is None else list(state["lengths"])


def _fair_shares(lengths: np.ndarray, n: int, turn: int) -> np.ndarray:
    # The most that every trajectory may keep is where the shares still fit into n.
    shares = np.minimum.outer(np.arange(lengths.max() + 1), lengths)
    most = int(np.searchsorted(shares.sum(1), n, side="right")) - 1
    kept: np.ndarray = shares[most]
    longer = np.flatnonzero(lengths > most)
    kept[np.roll(longer, -turn)[: n - kept.sum()]] += 1
    return kept
