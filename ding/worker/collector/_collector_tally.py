"""What a parallel collector counts, and the report that it ends with."""

import time
from typing import Any

import numpy as np

from ding.worker.collector.rollout import FinishedEpisode


class CollectorTally:
    """Counts of one task."""

    def __init__(self) -> None:
        self._start = time.time()
        self._stop: float | None = None
        self.steps = 0
        self.samples = 0
        self.episodes: list[FinishedEpisode] = []

    def stop(self) -> None:
        """The work has ended: from here on, time does not count."""
        if self._stop is None:
            self._stop = time.time()

    def progress(self) -> dict[str, Any]:
        return {
            "cur_episode": len(self.episodes),
            "cur_sample": self.samples,
            "cur_step": self.steps,
        }

    def finish_info(
        self, *, evaluate: bool, env_num: int, train_iter: int, done: bool, predefined: float
    ) -> dict[str, Any]:
        """The report, plain JSON.

        Args:
            predefined: Episodes that the task asks for; ``None`` in the report if there is no end.
        """
        now = self._stop if self._stop is not None else time.time()
        duration = max(now - self._start, 1e-8)
        episodes = len(self.episodes)
        returns = [float(episode.returns[0]) for episode in self.episodes]
        return {
            "eval_flag": evaluate,
            "env_num": env_num,
            "duration": duration,
            "train_iter": train_iter,
            "collector_done": done,
            "predefined_episode_count": int(predefined) if np.isfinite(predefined) else None,
            "real_episode_count": episodes,
            "step_count": self.steps,
            "sample_count": self.samples,
            "avg_time_per_episode": duration / max(1, episodes),
            "avg_time_per_step": duration / max(1, self.steps),
            "avg_time_per_train_sample": duration / max(1, self.samples),
            "avg_step_per_episode": self.steps / max(1, episodes),
            "avg_sample_per_episode": self.samples / max(1, episodes),
            "reward_mean": float(np.mean(returns)) if returns else 0.0,
            "reward_std": float(np.std(returns)) if returns else 0.0,
            "reward_raw": returns,
            "finish_time": now,
        }
