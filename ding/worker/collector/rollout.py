"""The collect loop: one for every serial collector, in rows or in columns.

A :class:`Rollout` lets policies act and keeps the running trajectories. What differs between
collectors is when to stop and how finished trajectories are packed; a single policy is a list of
one. :class:`ColumnRollout` (``rollout_columns``) and :class:`RowRollout` (``rollout_rows``) do the
same work on arrays and on dicts of environments; :func:`make_rollout` picks.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ding.utils.errors import ConfigError

#: The ``seed`` of a transition for which none was given, where others have one.
NO_SEED = -1


@dataclass(slots=True)
class FinishedEpisode:
    """An episode that ended in this step.

    Attributes:
        env_id: Environment in which it ran.
        returns: Undiscounted return of each player.
        length: Environment steps.
        infos: Info dict of the last step, one per player.
    """

    env_id: int
    returns: list[float]
    length: int
    infos: list[dict[str, Any]]


@dataclass(slots=True)
class StepResult:
    """What one vector step brought.

    Attributes:
        envsteps: Environment steps that count (abnormal ones do not).
        samples: Transitions of trajectories that were completed.
        episodes: Episodes that ended.
    """

    envsteps: int
    samples: int
    episodes: list[FinishedEpisode] = field(default_factory=list)


class Rollout(ABC):
    """Running trajectories of ``players`` policies in one env manager.

    Args:
        env: A launched env manager.
        policies: Collect modes, one per player.
        battle: Whether observations, rewards and infos have a leading dimension of players.
        traj_len: Transitions after which a trajectory is complete although its episode goes on;
            infinite for whole episodes.
    """

    def __init__(self, env: Any, policies: Sequence[Any], battle: bool, traj_len: float) -> None:
        self._env = env
        self._policies = policies
        self._battle = battle
        self.traj_len = traj_len

    @abstractmethod
    def step(
        self,
        train_iters: Sequence[int],
        policy_kwargs: Sequence[dict[str, Any]],
        active: np.ndarray | None = None,
        level_seeds: Sequence[int] | None = None,
    ) -> StepResult:
        """Act once in all ready environments.

        Args:
            train_iters: Training iteration of each player's policy.
            policy_kwargs: Keyword arguments of each player's ``forward``.
            active: Which environments shall act, bool ``[env_num]``; all by default.
            level_seeds: Seed of each environment's level.
        """

    @abstractmethod
    def harvest(self, player: int, train_samples: bool) -> tuple[Any, list[int]]:
        """Take the completed trajectories of one player.

        Args:
            player: Index of the policy.
            train_samples: Whether transitions are turned into training samples.

        Returns:
            All transitions or samples in the order of completion, and how many of them belong to
            each trajectory.
        """

    @abstractmethod
    def drop_running(self) -> int:
        """Forget trajectories that are not complete; returns how many transitions of each player
        those were."""


def refuse_shared_memory(policies: Sequence[Any]) -> None:
    """Refuse a policy with a memory for several players: it keeps one for each environment.

    Raises:
        ConfigError: One policy is there twice, and remembers.
    """
    modes = [p for p in policies if getattr(getattr(p, "batched", None), "recurrent", False)]
    owners = {id(getattr(mode.forward, "__self__", mode)) for mode in modes}
    if len(owners) < len(modes):
        raise ConfigError(
            "a policy with a memory cannot play several sides of a battle, which would share what "
            "they remember: give each player a policy of its own"
        )


def make_rollout(
    env: Any, policies: Sequence[Any], battle: bool, traj_len: float, **row_options: Any
) -> Rollout:
    """A columnar rollout where env manager and policies allow it; rows otherwise.

    Where a step answers for others than it was given, rows pair what belongs together by id.
    """
    from ding.worker.collector.rollout_columns import ColumnRollout
    from ding.worker.collector.rollout_rows import RowRollout

    refuse_shared_memory(policies)
    columnar = (
        not any(row_options.values())
        and getattr(env, "in_lockstep", True)
        and getattr(env, "supports_columns", False)
        and all(getattr(policy, "batched", None) is not None for policy in policies)
    )
    if columnar:
        return ColumnRollout(env, policies, battle, traj_len)
    return RowRollout(env, policies, battle, traj_len, **row_options)
