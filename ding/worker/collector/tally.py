"""What acting brought: steps, samples, episodes, and the seconds that they took."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ding.utils import allreduce_data
from ding.worker.collector.steps import Info, State

_COUNTS = ("envsteps", "samples", "episode_count", "dropped")


@dataclass(slots=True)
class Episode:
    """An episode that has ended.

    Attributes:
        env_id: Environment in which it ran.
        returns: Undiscounted return of each player.
        length: Environment steps.
        infos: Info dict of the last step, one per player.
    """

    env_id: int
    returns: list[float]
    length: int
    infos: Sequence[Info]

    def brief(self) -> "Episode":
        """The episode without its infos, which may hold pictures, but for ``result``."""
        slim = [{"result": info["result"]} if "result" in info else {} for info in self.infos]
        return replace(self, infos=slim)


class Tally:
    """Counts of a task, a call of ``collect``, an evaluation, or all since some moment.

    Args:
        keep: Episodes, and returns, to remember: the newest. By default all.
        infos: Whether episodes keep all that their infos hold, and not ``result`` alone.

    Attributes:
        envsteps: Environment steps that count (those that failed do not).
        samples: Training samples that somebody was given.
        dropped: Samples, and transitions of trajectories cut short, that nobody will learn from.
        episode_count: Episodes that ended, also those not remembered.
        seconds: Time that it took; whoever counts says so.
        returns: The first player's return of the newest episodes.
        episodes: The newest ones that were counted here, not added from elsewhere.
    """

    def __init__(self, keep: int | None = None, infos: bool = True) -> None:
        self.envsteps = 0
        self.samples = 0
        self.dropped = 0
        self.episode_count = 0
        self.seconds = 0.0
        self.returns: deque[float] = deque(maxlen=keep)
        self.episodes: deque[Episode] = deque(maxlen=keep)
        self._infos = infos

    # ------------------------------------------------------------------ counting

    def end_episodes(self, episodes: Sequence[Episode]) -> None:
        self.episode_count += len(episodes)
        self.returns.extend([episode.returns[0] for episode in episodes])
        self.episodes.extend(episodes if self._infos else [one.brief() for one in episodes])

    def add(self, other: "Tally") -> None:
        """Count what `other` has counted."""
        self.envsteps += other.envsteps
        self.samples += other.samples
        self.episode_count += other.episode_count
        self.dropped += other.dropped
        self.seconds += other.seconds
        self.returns.extend(other.returns)

    def sum_over_ranks(self) -> None:
        """Add the counts of all learners' ranks, and average the time; episodes stay one's own."""
        for name in _COUNTS:
            setattr(self, name, int(allreduce_data(getattr(self, name), "sum")))
        self.seconds = float(allreduce_data(self.seconds, "avg"))

    # ------------------------------------------------------------------ figures

    def row(self) -> dict[str, float]:
        """Figures, with those of at least one return, by the names of the scalars."""
        returns = list(self.returns)
        return {
            "episode_count": len(returns),
            "envstep_count": self.envsteps,
            "avg_envstep_per_episode": self.envsteps / len(returns),
            "avg_envstep_per_sec": self.envsteps / max(self.seconds, 1e-9),
            "reward_mean": float(np.mean(returns)),
            "reward_std": float(np.std(returns)),
            "reward_max": float(np.max(returns)),
            "reward_min": float(np.min(returns)),
        }

    def report(self, seconds: float) -> State:
        """Of a task that took so long: counts, and averages, ``None`` of nothing; in plain JSON."""
        returns, episodes = list(self.returns), self.episode_count
        return {
            "duration": seconds,
            "real_episode_count": episodes,
            "step_count": self.envsteps,
            "sample_count": self.samples,
            "avg_time_per_episode": _ratio(seconds, episodes),
            "avg_time_per_step": _ratio(seconds, self.envsteps),
            "avg_time_per_train_sample": _ratio(seconds, self.samples),
            "avg_step_per_episode": _ratio(self.envsteps, episodes),
            "avg_sample_per_episode": _ratio(self.samples, episodes),
            "reward_mean": float(np.mean(returns)) if returns else None,
            "reward_std": float(np.std(returns)) if returns else None,
            "reward_raw": returns,
        }

    # ------------------------------------------------------------------ state

    def state_dict(self) -> State:
        """Counts and returns, in plain numbers."""
        counts = {name: getattr(self, name) for name in (*_COUNTS, "seconds")}
        return {**counts, "returns": list(self.returns)}

    def load_state_dict(self, state: State) -> None:
        """Go on from what `state_dict` gave."""
        for name in (*_COUNTS, "seconds"):
            setattr(self, name, state[name])
        self.returns.clear()
        self.returns.extend(state["returns"])


def _ratio(amount: float, count: int) -> float | None:
    return amount / count if count else None
