"""What collectors count and log."""

import time
from collections import deque
from typing import Any

import numpy as np

from ding.utils import allreduce_data, get_world_size
from ding.worker.collector.rollout import FinishedEpisode, StepResult

#: Episodes whose mean return tells how the policy does now.
RECENT_EPISODES = 100


class CollectStats:
    """Totals since the last reset, what came since the last log row, and the last returns.

    Counts are summed over all learners' ranks where there are several.
    """

    _TOTALS = ("total_envstep", "total_sample", "total_episode", "total_duration", "total_dropped")
    _WINDOW = ("_envsteps", "_samples", "_duration", "_returns", "_dropped")

    def __init__(self) -> None:
        self.total_envstep = 0
        self.total_sample = 0
        self.total_episode = 0
        self.total_duration = 0.0
        self._recent: deque[float] = deque(maxlen=RECENT_EPISODES)
        self.total_dropped = 0
        self._forget_window()

    def _forget_window(self) -> None:
        self._envsteps = 0
        self._samples = 0
        self._duration = 0.0
        self._returns: list[float] = []
        self._dropped = 0

    @property
    def recent_return(self) -> float | None:
        """Mean return of the last ``RECENT_EPISODES`` episodes; ``None`` without any."""
        return float(np.mean(self._recent)) if self._recent else None

    def add(
        self, envsteps: int, samples: int, episodes: list[FinishedEpisode], since: float
    ) -> None:
        """Count one call of ``collect`` that began at ``time.perf_counter()`` value ``since``."""
        duration = time.perf_counter() - since
        counts: list[Any] = [envsteps, samples, len(episodes)]
        if get_world_size() > 1:
            counts = [int(allreduce_data(count, "sum")) for count in counts]
            duration = float(allreduce_data(duration, "avg"))
        self.total_envstep += counts[0]
        self.total_sample += counts[1]
        self.total_episode += counts[2]
        self.total_duration += duration
        self._envsteps += counts[0]
        self._samples += counts[1]
        self._duration += duration
        returns = [episode.returns[0] for episode in episodes]
        self._returns.extend(returns)
        self._recent.extend(returns)

    def note_dropped(self, samples: int) -> None:
        """Count samples, and transitions of trajectories cut short, that nobody will learn from."""
        if get_world_size() > 1:
            samples = int(allreduce_data(samples, "sum"))
        self.total_dropped += samples
        self._dropped += samples

    def log_row(self) -> dict[str, float] | None:
        """Figures since the last row, by the names of the TensorBoard scalars; ``None`` before
        the first finished episode."""
        if not self._returns:
            return None
        episodes = len(self._returns)
        duration = max(self._duration, 1e-9)
        row = {
            "episode_count": episodes,
            "envstep_count": self._envsteps,
            "train_sample_count": self._samples,
            "dropped_sample_count": self._dropped,
            "avg_envstep_per_episode": self._envsteps / episodes,
            "avg_sample_per_episode": self._samples / episodes,
            "avg_envstep_per_sec": self._envsteps / duration,
            "avg_train_sample_per_sec": self._samples / duration,
            "avg_episode_per_sec": episodes / duration,
            "reward_mean": float(np.mean(self._returns)),
            "reward_std": float(np.std(self._returns)),
            "reward_max": float(np.max(self._returns)),
            "reward_min": float(np.min(self._returns)),
            "total_envstep_count": self.total_envstep,
            "total_train_sample_count": self.total_sample,
            "total_dropped_sample_count": self.total_dropped,
            "total_episode_count": self.total_episode,
            "total_duration": self.total_duration,
        }
        self._forget_window()
        return row

    def state_dict(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in self._TOTALS + self._WINDOW}
        return {**state, "recent": list(self._recent)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in self._TOTALS + self._WINDOW:
            setattr(self, name, state[name])
        self._recent = deque(state["recent"], maxlen=RECENT_EPISODES)


class CollectTally:
    """Running sums of one call of ``collect``."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.envsteps = 0
        self.episodes: list[FinishedEpisode] = []

    def add(self, result: StepResult) -> None:
        self.envsteps += result.envsteps
        self.episodes.extend(result.episodes)
