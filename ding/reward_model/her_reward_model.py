"""Hindsight experience replay (Andrychowicz et al. 2017)."""

from collections.abc import Sequence

import numpy as np

from ding.data import tree_join, tree_take
from ding.reward_model.base_reward_model import BaseRewardModel, Trajectories, Transitions
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.errors import ConfigError, DataError
from ding.utils.types import Config

_STRATEGIES = ("future", "final", "episode")


@REWARD_MODEL_REGISTRY.register("her")
class HerRewardModel(BaseRewardModel):
    """Hindsight Experience Replay: adds transitions with goals that the episode achieved.

    An observation is a vector that contains the achieved state and the goal. Each transition is
    added ``her_replay_k`` times, with the goal replaced by the state achieved at a step of the same
    episode: a later one ("future"), the last one ("final") or any ("episode"), as in section 3.3 of
    the paper. The transition succeeds, and ends its episode, if it achieves that goal.
    """

    config: Config = dict(
        her_strategy="future",
        her_replay_k=4,
        # Ranges [first, end) of the achieved state and the goal in an observation. By default its
        # first and second half.
        achieved=None,
        goal=None,
        # Rewards of added transitions, and the maximum distance per number for a success.
        success_reward=1.0,
        failure_reward=0.0,
        tolerance=1e-6,
    )
    needs_episodes = True
    needs_replay = True

    def build(self) -> None:
        cfg, size = self._cfg, self._shapes.obs_shape
        if cfg.her_strategy not in _STRATEGIES:
            raise ConfigError(
                f"reward_model.her_strategy must be one of {_STRATEGIES}, got {cfg.her_strategy!r}"
            )
        if not isinstance(size, int):
            raise ConfigError(
                "reward_model.type='her' needs observations that are vectors, with what is "
                f"achieved and the goal in them; got the shape {size}"
            )
        self._achieved = _section("achieved", cfg.achieved, [0, size // 2], size)
        self._goal = _section("goal", cfg.goal, [size - size // 2, size], size)
        lengths = [part.stop - part.start for part in (self._achieved, self._goal)]
        if lengths[0] != lengths[1]:
            raise ConfigError(
                f"reward_model.achieved has {lengths[0]} numbers and reward_model.goal "
                f"{lengths[1]}: they must have as many"
            )
        self._figures: dict[str, float] = {}

    def rewarded(self, transitions: Transitions, lengths: np.ndarray) -> Trajectories:
        if not isinstance(transitions["obs"], np.ndarray):
            raise DataError("reward_model.type='her' needs observations that are one vector")
        rows = np.repeat(np.arange(len(transitions["obs"])), self._cfg.her_replay_k)
        added = tree_take(transitions, rows)
        reached = added["next_obs"][:, self._achieved].copy()
        was_success = self._succeeds(reached, added["next_obs"][:, self._goal])
        goals = transitions["next_obs"][self._chosen(rows, lengths), self._achieved]
        for name in ("obs", "next_obs"):
            added[name][:, self._goal] = goals
        success = self._succeeds(reached, goals)
        reward = np.where(success, self._cfg.success_reward, self._cfg.failure_reward)
        added["reward"] = reward.astype(np.float32)
        # An episode that ended for a reason other than its own goal still ends.
        added["done"] = success | (added["done"] & ~was_success)
        self._figures = {
            "success": float(was_success.mean()) if len(rows) else 0.0,
            "relabelled_success": float(success.mean()) if len(rows) else 0.0,
        }
        joined = tree_join(np.concatenate, [transitions, added])
        # Goals differ from row to row, so each row is a separate trajectory.
        return joined, np.concatenate([lengths, np.ones(len(rows), np.int64)])

    def train(self, train_iter: int = 0, envstep: int = 0) -> None:
        self._log(self._figures, train_iter, envstep)

    def _succeeds(self, reached: np.ndarray, goals: np.ndarray) -> np.ndarray:
        near: np.ndarray = np.abs(reached - goals).max(axis=1) <= self._cfg.tolerance
        return near

    def _chosen(self, rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """For each row, the row whose achieved state becomes its goal."""
        ends = np.repeat(np.cumsum(lengths), lengths)[rows]
        if self._cfg.her_strategy == "final":
            return ends - 1
        starts = rows
        if self._cfg.her_strategy == "episode":
            starts = ends - np.repeat(lengths, lengths)[rows]
        return np.random.randint(starts, ends)


def _section(name: str, wanted: Sequence[int] | None, default: list[int], size: int) -> slice:
    first, end = default if wanted is None else wanted
    if not 0 <= first < end <= size:
        raise ConfigError(
            f"reward_model.{name} must be [first, end) within the {size} numbers of an "
            f"observation, got {[first, end]}"
        )
    return slice(first, end)
