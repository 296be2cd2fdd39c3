"""Types of the acting loop: what collectors and evaluators take, count and store."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from ding.data import Columns
from ding.data.chunks import packed, unpacked
from ding.utils import allreduce_data
from ding.utils.types import State

#: A policy's collect or eval mode: a namedtuple of functions, or a custom object.
Mode: TypeAlias = Any
#: A `BaseEnvManager`, or a custom object with its methods.
Envs: TypeAlias = Any
#: Info dict of an environment's step.
Info: TypeAlias = Mapping[str, Any]
#: Keyword arguments of a policy's ``forward``.
Kwargs: TypeAlias = Mapping[str, Any]
#: `Columns` or a list of rows.
Samples: TypeAlias = list[dict[str, Any]]
#: Samples, and the number of them in each trajectory.
Harvest: TypeAlias = tuple[Samples, list[int]]
#: Result of an evaluation: a number, or the return value of a metric.
Result: TypeAlias = Any
#: Called at each episode's end with source, env id, return, length, envstep and train_iter.
OnEpisode: TypeAlias = Callable[[str, int, float, int, int, int], None]
#: Takes the transitions of trajectories by name, ``[N, ...]`` each, and the trajectories' lengths,
#: int64 ``[M]``; returns both, rewritten.
OnTrajectories: TypeAlias = Callable[
    [dict[str, Any], np.ndarray], tuple[dict[str, Any], np.ndarray]
]
#: Called with a file name when the result is the best so far.
SaveFn: TypeAlias = Callable[[str], object] | None
#: One dict for all players, or a list with one per player.
PlayersKwargs: TypeAlias = Kwargs | Sequence[Kwargs] | None

#: The ``seed`` of a transition without a level seed, where other transitions have one.
NO_SEED = -1


@dataclass
class Player:
    """One policy's part in a rollout.

    Attributes:
        mode: The policy's collect or eval mode.
        kwargs: Keyword arguments of its ``forward``.
        train_iter: Training iteration of its weights, stored in each transition.
        level_seeds: Seed of each environment's level, if transitions are to contain it.
        wanted: Whether its data is collected.
    """

    mode: Mode
    kwargs: Kwargs = field(default_factory=dict)
    train_iter: int = 0
    level_seeds: Sequence[int] | None = None
    wanted: bool = True


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


class Tally:
    """Counts of a task, a call of ``collect``, an evaluation, or a longer period.

    Args:
        keep: Maximum number of episodes and returns to store, newest first. By default all.
        infos: Whether to store whole infos of episodes, which may contain images; false: only
            ``result``.

    Attributes:
        envsteps: Environment steps, without failed ones.
        samples: Training samples that were returned or sent.
        dropped: Samples, and transitions of lost trajectories, that are not learned from.
        episode_count: Episodes that ended, including those not stored.
        seconds: Duration; set by the caller.
        returns: The first player's return of the newest episodes.
        episodes: The newest episodes counted here, without those of added tallies.
    """

    def __init__(self, keep: int | None = None, infos: bool = True) -> None:
        self.envsteps = self.samples = self.dropped = self.episode_count = 0
        self.seconds = 0.0
        self.returns: deque[float] = deque(maxlen=keep)
        self.episodes: deque[Episode] = deque(maxlen=keep)
        self._infos = infos

    def end_episodes(self, episodes: Sequence[Episode]) -> None:
        self.episode_count += len(episodes)
        for episode in episodes:
            self.returns.append(episode.returns[0])
            if not self._infos:
                slim = [{k: info[k] for k in ("result",) if k in info} for info in episode.infos]
                episode = replace(episode, infos=slim)
            self.episodes.append(episode)

    def add(self, other: "Tally") -> None:
        """Add the counts of `other`."""
        self.envsteps += other.envsteps
        self.samples += other.samples
        self.episode_count += other.episode_count
        self.dropped += other.dropped
        self.seconds += other.seconds
        self.returns.extend(other.returns)

    def sum_over_ranks(self) -> None:
        """Sum the counts over all ranks and average the time; episodes stay those of this rank."""
        for name in _COUNTS:
            setattr(self, name, int(allreduce_data(getattr(self, name), "sum")))
        self.seconds = float(allreduce_data(self.seconds, "avg"))

    def row(self) -> dict[str, float]:
        """Figures by scalar name; needs at least one episode."""
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
        """Counts and averages of a task, in plain JSON; an average of nothing is ``None``."""
        returns = list(self.returns)

        def per(count: int, amount: float) -> float | None:
            return amount / count if count else None

        return {
            "duration": seconds,
            "real_episode_count": self.episode_count,
            "step_count": self.envsteps,
            "sample_count": self.samples,
            "avg_time_per_episode": per(self.episode_count, seconds),
            "avg_time_per_step": per(self.envsteps, seconds),
            "avg_time_per_train_sample": per(self.samples, seconds),
            "avg_step_per_episode": per(self.episode_count, self.envsteps),
            "avg_sample_per_episode": per(self.episode_count, self.samples),
            "reward_mean": float(np.mean(returns)) if returns else None,
            "reward_std": float(np.std(returns)) if returns else None,
            "reward_raw": returns,
        }

    def state_dict(self) -> State:
        counts = {name: getattr(self, name) for name in (*_COUNTS, "seconds")}
        return {**counts, "returns": list(self.returns)}

    def load_state_dict(self, state: State) -> None:
        for name in (*_COUNTS, "seconds"):
            setattr(self, name, state[name])
        self.returns.clear()
        self.returns.extend(state["returns"])


class SampleStock:
    """A queue of samples of consecutive trajectories, oldest first."""

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
        """Remove and return the n oldest samples, or all."""
        taken = self._samples
        if taken is None:
            return []
        if n is None or n >= len(taken):
            self._samples = None
            return taken
        self._samples = taken[n:]
        if _is_columnar(taken):
            taken = taken.apart()  # changes to them must not affect the samples left in the stock
        return taken[:n]

    def state_dict(self) -> State | None:
        """The samples if they are columnar; rows may contain objects that cannot be saved."""
        return {"samples": packed(self._samples)} if _is_columnar(self._samples) else None

    def load_state_dict(self, state: State | None) -> None:
        self._samples = None if state is None else unpacked(state["samples"])


def _is_columnar(samples: Samples | None) -> TypeGuard[Columns]:
    return isinstance(samples, Columns) and samples.is_columnar


def attribute(mode: Mode, name: str) -> Result:
    """A policy's attribute; ``None`` if a custom policy does not have it."""
    try:
        return mode.get_attribute(name)
    except AttributeError:
        return None
