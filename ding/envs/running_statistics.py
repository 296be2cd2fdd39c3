"""Moments of what environments see, which all of a run's environments share.

A wrapper that normalises has a `RunningStatistics`. Those of one process share one, and a
collector adds up what the processes have seen (``take``, `merged`) and sends it to all of them
(``load``); an evaluator's are frozen. By name of the wrapper, such a state is
``{name: {count, mean, m2}}``.
"""

from collections.abc import Iterable, Mapping

import gymnasium
import numpy as np
from gymnasium.wrappers import NormalizeObservation, NormalizeReward
from numpy.typing import ArrayLike

from ding.utils.types import SavedState, Settings, State

#: One state per normalising wrapper.
Statistics = dict[str, State]

#: With no more items the moments are too rough to divide by.
WARM_UP = 30
_LEAST_VARIANCE = 1e-8


class Moments:
    """Count, mean and sum of squared deviations, float64.

    One by one as in Welford (1962), merged as in Chan, Golub, LeVeque (1979): the order in which
    parts are put together changes the result by rounding alone.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = 0.0
        self.mean = np.zeros(shape)
        self.m2 = np.zeros(shape)

    def add(self, item: ArrayLike) -> None:
        """Take in one item."""
        item = np.asarray(item, np.float64)
        self.count += 1.0
        shift = item - self.mean
        # Not in place: states that were handed out share these arrays.
        self.mean = self.mean + shift / self.count
        self.m2 = self.m2 + shift * (item - self.mean)

    def merge(self, state: Settings) -> None:
        """Take in what others have seen."""
        count = float(state["count"])
        if count == 0.0:
            return
        total = self.count + count
        shift = np.asarray(state["mean"], np.float64) - self.mean
        self.m2 = self.m2 + np.asarray(state["m2"]) + shift**2 * (self.count * count / total)
        self.mean = self.mean + shift * (count / total)
        self.count = total

    def state_dict(self) -> State:
        return {"count": self.count, "mean": self.mean, "m2": self.m2}


class RunningStatistics(Moments):
    """The moments by which a wrapper normalises, and the part of them that is news to the run.

    Attributes:
        frozen: Whether nothing is taken in, as in evaluations.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        self.frozen = False
        self._news = Moments(shape)

    def add(self, item: ArrayLike) -> None:
        """Take in one item of the shape, unless frozen."""
        if not self.frozen:
            super().add(item)
            self._news.add(item)

    @property
    def var(self) -> np.ndarray:
        """Never below 1e-8; 1 before there are two items."""
        if self.count < 2:
            return np.ones_like(self.mean)
        return np.maximum(self.m2 / self.count, _LEAST_VARIANCE)

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(self.var)

    def update(self, batch: Iterable[ArrayLike]) -> None:
        """Take in a batch ``[n, *shape]``, unless frozen; gymnasium's wrappers call this."""
        for item in batch:
            self.add(item)

    def merge(self, state: Settings) -> None:
        """Take in what others have taken, unless frozen."""
        if not self.frozen:
            super().merge(state)
            self._news.merge(state)

    def take(self) -> State:
        """What was taken in since the last call."""
        news, self._news = self._news, Moments(np.shape(self.mean))
        return news.state_dict()

    def load(self, state: Settings | None, frozen: bool = False) -> None:
        """Replace what others have seen; with `frozen` nothing is taken in from now on.

        News that was not taken yet is kept, unless `frozen`.
        """
        self.frozen = frozen
        if frozen:
            self.take()
        Moments.__init__(self, np.shape(self.mean))
        for part in (state, self._news.state_dict()):
            if part is not None:
                super().merge(part)

    def load_state_dict(self, state: Settings) -> None:
        """Restore a saved state; what was seen so far is forgotten."""
        self.take()
        self.load(state, self.frozen)


def merged(parts: Iterable[Mapping[str, SavedState]]) -> Statistics:
    """The statistics of everything that the parts have seen.

    Raises:
        ValueError: Parts of different shapes.
    """
    sums: dict[str, Moments] = {}
    for part in parts:
        for name, state in part.items():
            sums.setdefault(name, Moments(np.shape(state["mean"]))).merge(state)
    return {name: moments.state_dict() for name, moments in sums.items()}


def plain(statistics: Mapping[str, SavedState]) -> Statistics:
    """Statistics in numbers and lists, as JSON takes them."""
    return {
        name: {key: np.asarray(value, np.float64).tolist() for key, value in state.items()}
        for name, state in statistics.items()
    }


# ---- the wrappers that have some --------------------------------------------------------------


class Normaliser:
    """What wrappers that normalise have in common: their statistics are their state."""

    statistics: RunningStatistics

    @property
    def rms(self) -> RunningStatistics:
        """The statistics, under the name that other code knows."""
        return self.statistics

    def state_dict(self) -> State:
        return self.statistics.state_dict()

    def load_state_dict(self, state_dict: State) -> None:
        self.statistics.load_state_dict(state_dict)


#: Where gymnasium's own normalising wrappers keep their moments, of objects with `mean`, `var` and
#: `update`.
_FOREIGN = {NormalizeObservation: "obs_rms", NormalizeReward: "return_rms"}


class NormaliserGroup:
    """The statistics of the environments of one process.

    Attributes:
        statistics: By name of the wrapper.
    """

    def __init__(self) -> None:
        self.statistics: dict[str, RunningStatistics] = {}
        self._loaded: Mapping[str, SavedState] = {}
        self._frozen = False
        # What each environment wrapped when it was looked into: that takes as long as the reset of
        # a small one, and every reset asks, as it may wrap again.
        self._seen: dict[int, tuple[object, object]] = {}

    def adopt(self, env_id: int, env: object) -> bool:
        """Make the wrappers of environment `env_id` share the statistics of their namesakes.

        Returns:
            Whether one of them has worked without what others had seen until now.
        """
        inner = _inner(env)
        of, known = self._seen.get(env_id, (None, None))
        if of is env and known is inner is not None:
            return False
        self._seen[env_id] = env, inner
        changed = False
        for name, holder, attribute in _normalisers(env):
            own = getattr(holder, attribute)
            is_ours = isinstance(own, RunningStatistics)
            shared = self.statistics.get(name)
            if shared is None:
                shared = own if is_ours else RunningStatistics(np.shape(own.mean))
                self.statistics[name] = shared
                shared.load(self._loaded.get(name), self._frozen)
                changed = changed or name in self._loaded or self._frozen
            elif own is not shared:
                changed = changed or self._frozen or shared.count > WARM_UP
                if is_ours:
                    shared.merge(own.take())
            if own is not shared:
                setattr(holder, attribute, shared)
        return changed

    def take(self) -> Statistics | None:
        """What was seen since the last call; ``None`` if nothing is normalised here."""
        if not self.statistics:
            return None
        return {name: statistics.take() for name, statistics in self.statistics.items()}

    def load(self, state: Mapping[str, SavedState], frozen: bool) -> None:
        """Normalise by these statistics and, if not `frozen`, by what is seen from now on."""
        self._loaded, self._frozen = state, frozen
        for name, statistics in self.statistics.items():
            statistics.load(state.get(name), frozen)


def _normalisers(env: object) -> list[tuple[str, object, str]]:
    """Name, wrapper and attribute of all statistics around an environment, the outermost first."""
    found: list[tuple[str, object, str]] = []
    names: dict[str, int] = {}
    seen: set[int] = set()
    while env is not None and id(env) not in seen:
        seen.add(id(env))
        attribute = next((name for kind, name in _FOREIGN.items() if isinstance(env, kind)), None)
        if isinstance(vars(env).get("statistics"), RunningStatistics):
            attribute = "statistics"
        if attribute is not None:
            kind_name = type(env).__name__
            names[kind_name] = names.get(kind_name, 0) + 1
            name = kind_name if names[kind_name] == 1 else f"{kind_name} {names[kind_name]}"
            found.append((name, env, attribute))
        env = _inner(env)
    return found


def _inner(env: object) -> object:
    own = vars(env)
    for name in ("env", "_env"):
        if name in own and hasattr(own[name], "__dict__"):
            return own[name]
    return next((value for value in own.values() if isinstance(value, gymnasium.Env)), None)
