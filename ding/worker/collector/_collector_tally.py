"""What a parallel collector counts, and the report that it ends with."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ding.worker.collector.rollout import FinishedEpisode

#: Episodes that the report tells of one by one: the last ones.
MAX_EPISODES = 1000


class CollectorTally:
    """Counts of one task.

    Args:
        episode_num: Episodes to remember, at least.
    """

    def __init__(self, episode_num: int = 0) -> None:
        self._start = time.monotonic()
        self._stop: float | None = None
        self.steps = 0
        self.samples = 0
        self._episode_count = 0
        #: The newest.
        self.episodes: deque[FinishedEpisode] = deque(maxlen=max(episode_num, MAX_EPISODES))

    def add_episodes(self, episodes: Iterable[FinishedEpisode]) -> None:
        for episode in episodes:
            self._episode_count += 1
            # Infos may hold pictures; what is of use at the task's end is little.
            episode.infos = [_slim(info) for info in episode.infos]
            self.episodes.append(episode)

    def stop(self) -> None:
        """The work has ended: from here on, time does not count."""
        if self._stop is None:
            self._stop = time.monotonic()

    def progress(self) -> dict[str, Any]:
        return {
            "cur_episode": self._episode_count,
            "cur_sample": self.samples,
            "cur_step": self.steps,
        }

    def episode_info(self) -> list[list[float]]:
        """Environment, return and length of each of the last episodes."""
        return [[e.env_id, float(e.returns[0]), e.length] for e in list(self.episodes)]

    def finish_info(
        self, *, evaluate: bool, env_num: int, train_iter: int, done: bool, predefined: float
    ) -> dict[str, Any]:
        """The report, plain JSON; what is an average of nothing is ``None``.

        Args:
            predefined: Episodes that the task asks for; ``None`` in the report if there is no end.
        """
        now = self._stop if self._stop is not None else time.monotonic()
        duration = max(now - self._start, 1e-8)
        episodes = self._episode_count
        returns = [float(episode.returns[0]) for episode in list(self.episodes)]
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
            "avg_time_per_episode": _ratio(duration, episodes),
            "avg_time_per_step": _ratio(duration, self.steps),
            "avg_time_per_train_sample": _ratio(duration, self.samples),
            "avg_step_per_episode": _ratio(self.steps, episodes),
            "avg_sample_per_episode": _ratio(self.samples, episodes),
            "reward_mean": float(np.mean(returns)) if returns else None,
            "reward_std": float(np.std(returns)) if returns else None,
            "reward_raw": returns,
            "finish_time": now,
        }


def _ratio(amount: float, count: int) -> float | None:
    return amount / count if count else None


def _slim(info: Mapping[str, Any]) -> dict[str, Any]:
    return {"result": info["result"]} if "result" in info else {}
