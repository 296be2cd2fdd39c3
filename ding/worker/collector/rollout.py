"""The acting loop: one for collectors and evaluators, serial or parallel, of any number of players.

A `Rollout` lets policies act and keeps account of trajectories and episodes. How a step is
taken and how transitions are kept is an adapter's job: `ColumnSteps` works on arrays, `RowSteps` on
dicts of environments, for policies and managers that only know those. Evaluation is a rollout that
keeps no transitions. What differs between collectors, when to stop and how trajectories are packed,
is theirs.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ding.envs import VectorStep
from ding.utils.errors import ConfigError
from ding.worker.collector.column_steps import ColumnSteps
from ding.worker.collector.row_steps import RowSteps
from ding.worker.collector.steps import Envs, Harvest, Info, Mode, Player, RowOptions
from ding.worker.collector.tally import Episode, Tally

INF = float("inf")


class Rollout:
    """Lets players act in one env manager.

    Args:
        envs: A launched env manager.
        players: One per player, in the order of the environments' observations.
        battle: Whether observations, rewards and infos have a leading dimension of players.
        traj_len: Transitions after which a trajectory is complete although its episode goes on;
            infinite for whole episodes.
        keeps: Whether transitions are kept, to be harvested; without, this is an evaluation.
        options: What asks for rows where both sides know columns.

    Attributes:
        waiting: Transitions of each player, in complete trajectories, that were not harvested.

    Raises:
        ConfigError: One policy with a memory plays several sides.
    """

    def __init__(
        self,
        envs: Envs,
        players: Sequence[Player],
        *,
        battle: bool = False,
        traj_len: float = INF,
        keeps: bool = True,
        options: RowOptions = RowOptions(),
    ) -> None:
        _refuse_shared_memory([player.mode for player in players])
        self.players = players
        self.traj_len = traj_len
        self.waiting = 0
        self._envs = envs
        # The batched core of an eval mode takes no arguments.
        takes_kwargs = keeps or not any(player.kwargs for player in players)
        in_columns = takes_kwargs and not options and _know_columns(envs, players)
        self._steps = (
            ColumnSteps(envs, players, battle, keeps)
            if in_columns
            else RowSteps(envs, players, battle, keeps, options)
        )
        self._to_reset = [p.mode for p in players if not in_columns or p.mode.batched.resets]
        self._resets = getattr(envs, "reset_count", 0)
        # Steps of each environment's running trajectory and of its episode.
        self._lengths = np.zeros((2, envs.env_num), np.int64)
        self._traj_lengths, self._episode_lengths = self._lengths
        self._longest = 0  # no running trajectory has more steps

    def step(self, tally: Tally, active: np.ndarray | None = None) -> list[Episode]:
        """Act once in all ready environments.

        Args:
            tally: Counts the steps and episodes.
            active: Which environments shall act, bool ``[env_num]``; all by default.

        Returns:
            The episodes that ended.
        """
        resets = getattr(self._envs, "reset_count", 0)
        if resets != self._resets:
            # Somebody has begun new episodes: what ran has no end that anybody knows.
            tally.dropped += self.drop_running() * len(self.players)
            self._resets = resets
        step = self._steps.take(active)
        env_ids = step.env_ids
        tally.envsteps += len(env_ids)
        all_env_ids = len(env_ids) == self._lengths.shape[1]
        self._lengths[:, slice(None) if all_env_ids else env_ids] += 1
        self._longest += 1
        if not step.infos and step.abnormal is None and self._longest < self.traj_len:
            return []
        return self._end_trajectories(tally, step)

    def _end_trajectories(self, tally: Tally, step: VectorStep) -> list[Episode]:
        env_ids, done = step.env_ids, step.done
        complete = done
        are_long = self._longest >= self.traj_len
        if are_long:
            complete = done | (self._traj_lengths[env_ids] >= self.traj_len)
        if step.abnormal is not None and step.abnormal.any():
            failed = env_ids[step.abnormal]
            complete, done = complete & ~step.abnormal, done & ~step.abnormal
            tally.envsteps -= len(failed)
            self._steps.forget(failed)
            self._lengths[:, failed] = 0
            self._reset_policies(failed.tolist())
        ids = env_ids[complete]
        if len(ids):
            self._steps.complete(ids, step, complete)
            self.waiting += int(self._traj_lengths[ids].sum())
            self._traj_lengths[ids] = 0
        if are_long:
            self._longest = int(self._traj_lengths.max())
        if not step.infos:
            return []
        return self._end_episodes(tally, ids if done is complete else env_ids[done], step.infos)

    def _end_episodes(
        self, tally: Tally, env_ids: np.ndarray, infos: Mapping[int, Info]
    ) -> list[Episode]:
        lengths = self._episode_lengths[env_ids].tolist()
        self._episode_lengths[env_ids] = 0
        ended = env_ids.tolist()
        episodes = [_episode(i, length, infos[i]) for i, length in zip(ended, lengths)]
        tally.end_episodes(episodes)
        self._reset_policies(ended)
        return episodes

    def _reset_policies(self, env_ids: list[int]) -> None:
        for mode in self._to_reset:
            for env_id in env_ids:
                mode.reset([env_id])

    def harvest(self, train_samples: bool) -> list[Harvest]:
        """Take the completed trajectories; of players whose data nobody wants there are none.

        Args:
            train_samples: Whether transitions are turned into training samples.

        Returns:
            For each player all transitions or samples in the order of completion, and how many of
            them belong to each trajectory.
        """
        self.waiting = 0
        return self._steps.harvest(train_samples)

    def drop_running(self) -> int:
        """Forget trajectories that are not complete; returns how many transitions of each player
        those were."""
        dropped = int(self._traj_lengths.sum())
        self._steps.forget(np.arange(len(self._traj_lengths)))
        self._traj_lengths[:] = 0
        self._longest = 0
        return dropped


def _episode(env_id: int, length: int, info: Info | Sequence[Info]) -> Episode:
    # `type` first: asking whether something is a mapping of any kind takes longer.
    infos = [info] if type(info) is dict or isinstance(info, Mapping) else list(info)
    values = [one["eval_episode_return"] for one in infos]
    returns = [value if type(value) is float else float(np.sum(value)) for value in values]
    return Episode(env_id, returns, length, infos)


def _know_columns(envs: Envs, players: Sequence[Player]) -> bool:
    # Where a step answers for others than it was given, rows pair what belongs together by id.
    return (
        getattr(envs, "in_lockstep", True)
        and getattr(envs, "supports_columns", False)
        and all(getattr(player.mode, "batched", None) is not None for player in players)
    )


def _refuse_shared_memory(modes: Sequence[Mode]) -> None:
    """Refuse a policy with a memory for several players: it keeps one for each environment."""
    with_memory = [m for m in modes if getattr(getattr(m, "batched", None), "recurrent", False)]
    owners = {id(getattr(mode.forward, "__self__", mode)) for mode in with_memory}
    if len(owners) < len(with_memory):
        raise ConfigError(
            "a policy with a memory cannot play several sides of a battle, which would share what "
            "they remember: give each player a policy of its own"
        )
