"""The acting loop of all collectors and evaluators, serial or parallel, for one or more players.

It works on arrays. For policies or env managers that only support dicts of environments,
`RowSteps` takes the steps, and a transition is an object in one column. An evaluation is a rollout
without a log.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from ding.data import tree_take
from ding.envs import PlayerActions, VectorStep, composite_actions
from ding.policy import sample_columns
from ding.utils.errors import ConfigError, DataError, EnvDataError
from ding.utils.types import Settings, Tree
from ding.worker.collector.row_steps import ROW_OPTIONS, RowSteps
from ding.worker.collector.step_log import Ended, StepLog
from ding.worker.collector.steps import (
    NO_SEED,
    Envs,
    Episode,
    Harvest,
    Info,
    Mode,
    OnTrajectories,
    Player,
    Tally,
    attribute,
)

INF = float("inf")


class Rollout:
    """Steps players in one env manager, and tracks trajectories and episodes.

    Args:
        envs: A launched env manager.
        players: In the order of the environments' observations; their arguments and iterations
            may change between steps.
        battle: Whether observations, rewards and infos have a leading dimension of players.
        traj_len: Number of transitions after which a trajectory is complete although its episode
            continues; infinite for whole episodes.
        keeps: Whether transitions are stored for `harvest`; false in an evaluation.
        options: Config of a collector; setting any of `ROW_OPTIONS` selects rows.
        on_trajectories: Rewrites trajectories before they become samples.

    Attributes:
        waiting: Samples of each player, int64 ``[env_num]``, in complete trajectories that were not
            harvested yet.

    Raises:
        ConfigError: A policy with a memory plays several sides.
    """

    def __init__(
        self,
        envs: Envs,
        players: Sequence[Player],
        *,
        battle: bool = False,
        traj_len: float = INF,
        keeps: bool = True,
        options: Settings = {},
        on_trajectories: OnTrajectories | None = None,
    ) -> None:
        modes = [player.mode for player in players]
        _refuse_shared_memory(modes)
        self.players = players
        self.traj_len = traj_len
        self.waiting = np.zeros(envs.env_num, np.int64)
        self._envs, self._battle = envs, battle
        self._on_trajectories = on_trajectories
        self._log = StepLog(envs.env_num, len(players)) if keeps else None
        self._has_seeds = False
        # The batched core of an eval mode takes no arguments.
        takes_kwargs = keeps or not any(player.kwargs for player in players)
        batched = [getattr(mode, "batched", None) for mode in modes]
        in_columns = (
            takes_kwargs
            and not any(map(options.get, ROW_OPTIONS))
            # Some managers return steps of other environments than were given; rows have ids.
            and getattr(envs, "in_lockstep", True)
            and getattr(envs, "supports_columns", False)
            and None not in batched
        )
        self._rows: RowSteps | None = None
        if not in_columns:
            self._rows = RowSteps(envs, players, battle, keeps, options, on_trajectories)
        self._sees_rewards = [
            sees for one in batched if (sees := getattr(one, "see_rewards", None)) is not None
        ]
        self._to_reset = [mode for mode in modes if not in_columns or mode.batched.resets]
        # Custom managers may not count how often environments are reset from outside.
        self._counts_resets = hasattr(envs, "reset_counts")
        self._resets = envs.reset_counts if self._counts_resets else self.waiting
        # Steps of each environment's running trajectory and of its episode, int64 [2, env_num].
        self._lengths = np.zeros((2, envs.env_num), np.int64)
        self._traj_lengths, self._episode_lengths = self._lengths
        self._longest = 0  # upper bound of the running trajectories' lengths

    def step(self, tally: Tally, active: np.ndarray | None = None) -> list[Episode]:
        """Act once in all ready environments, and return the episodes that ended.

        Args:
            tally: Counts the steps and episodes.
            active: Mask of the environments that act, bool ``[env_num]``; all by default.
        """
        # Before acting: an environment that was reset from outside is in another episode, and
        # n-step returns must not join the end of one trajectory with the start of the next.
        self._note_resets(tally)
        step, columns = self._act(active) if self._rows is None else self._rows.act(active)
        env_ids = step.env_ids
        for sees in self._sees_rewards:
            sees(env_ids, step.reward)
        if self._log is not None:
            self._log.append(env_ids, columns)
        tally.envsteps += len(env_ids)
        all_env_ids = len(env_ids) == self._lengths.shape[1]
        self._lengths[:, slice(None) if all_env_ids else env_ids] += 1
        # With this upper bound, most steps need not check the length of each trajectory.
        self._longest += 1
        if not step.infos and step.abnormal is None and self._longest < self.traj_len:
            return []
        return self._end_trajectories(tally, step)

    def _act(self, active: np.ndarray | None) -> tuple[VectorStep, list[dict[str, Tree]]]:
        """One call of each policy and of the env manager; returns each player's columns."""
        env_ids, obs = self._envs.ready_columns()
        if active is not None and not active[env_ids].all():
            acts = active[env_ids]
            env_ids, obs = env_ids[acts], tree_take(obs, acts)
        if not len(env_ids):  # the active environments begin an episode in this step
            return self._envs.step_columns(np.zeros(0), env_ids), []
        actions, kept = [], []
        for player, own in zip(self.players, self._of_players(obs)):
            batched, kwargs = player.mode.batched, player.kwargs
            if batched.recurrent:
                kwargs = {**kwargs, "env_ids": env_ids.tolist()}
            output = batched.forward(own, **kwargs)
            action = _arrays(output["action"])
            actions.append(composite_actions(action) if isinstance(action, dict) else action)
            if len(actions[-1]) != len(env_ids):
                raise DataError(
                    f"the policy returned {len(actions[-1])} actions for {len(env_ids)} "
                    "environments"
                )
            if self._log is not None:
                # Managers do not write to these arrays again.
                columns = {"action": action, "obs": own, "collect_iter": player.train_iter}
                for name in batched.transition_outputs:
                    columns[name] = _arrays(output[name])
                kept.append(columns)
        joined = np.stack(actions, axis=1).view(PlayerActions) if self._battle else actions[0]
        step: VectorStep = self._envs.step_columns(joined, env_ids)
        for index, columns in enumerate(kept):
            columns["reward"] = step.reward[:, index] if self._battle else step.reward
            # A time limit is not a terminal state: targets bootstrap from the next observation
            # (Pardo et al. 2018).
            columns["done"] = step.done & ~step.truncated if step.infos else step.done
            level_seeds = self.players[index].level_seeds
            if level_seeds is not None or self._has_seeds:
                columns["seed"] = self._seeds(step.env_ids, level_seeds)
        return step, kept

    def _seeds(self, env_ids: np.ndarray, level_seeds: Sequence[int] | None) -> Tree:
        if level_seeds is None:
            return NO_SEED
        seeds = np.asarray(level_seeds)[env_ids]
        if self._log is not None:
            self._log.add_missing("seed", seeds, NO_SEED)
        self._has_seeds = True
        return seeds

    def _of_players(self, tree: Tree) -> list[Tree]:
        """Each player's part, ``[n, ...]``; without a battle there is no player dimension."""
        if not self._battle:
            return [tree]
        return [tree_take(tree, (slice(None), i)) for i in range(len(self.players))]

    def _end_trajectories(self, tally: Tally, step: VectorStep) -> list[Episode]:
        env_ids, done = step.env_ids, step.done
        complete = done
        are_long = self._longest >= self.traj_len
        if are_long:
            complete = done | (self._traj_lengths[env_ids] >= self.traj_len)
        if step.abnormal is not None and step.abnormal.any():
            failed = env_ids[step.abnormal]
            # A failed step returns no observation that could end a trajectory.
            complete, done = complete & ~step.abnormal, done & ~step.abnormal
            tally.envsteps -= len(failed)
            self._lengths[:, failed] -= 1  # failed steps do not count as dropped
            self._drop(failed, tally)
        ids = env_ids[complete]
        if len(ids):
            self._complete(ids, tree_take(step.obs, complete))
        if are_long:
            self._longest = int(self._traj_lengths.max())
        if not step.infos:
            return []
        ids = env_ids[done]
        ended, lengths = ids.tolist(), self._episode_lengths[ids].tolist()
        self._episode_lengths[ids] = 0
        episodes = [_episode(i, length, step.infos[i]) for i, length in zip(ended, lengths)]
        tally.end_episodes(episodes)
        self._reset_policies(ended)
        return episodes

    def _complete(self, env_ids: np.ndarray, obs: Tree) -> None:
        """End trajectories with these observations."""
        if self._log is not None:
            self._log.end(env_ids, self._of_players(obs))
            self.waiting[env_ids] += self._sample_counts(self._traj_lengths[env_ids])
        self._traj_lengths[env_ids] = 0

    def _reset_policies(self, env_ids: list[int]) -> None:
        for mode, env_id in itertools.product(self._to_reset, env_ids):
            mode.reset([env_id])

    def _note_resets(self, tally: Tally) -> None:
        """Drop trajectories and episodes of environments that were reset from outside."""
        if self._counts_resets and self._envs.reset_counts is not self._resets:
            self._drop((self._envs.reset_counts != self._resets).nonzero()[0], tally)
            self._resets = self._envs.reset_counts

    def _drop(self, env_ids: np.ndarray, tally: Tally) -> None:
        """Drop the running trajectories, episodes and memories of environments."""
        wanted = sum(player.wanted for player in self.players)
        tally.dropped += int(self._traj_lengths[env_ids].sum()) * wanted
        if self._log is not None:
            self._log.forget(env_ids)
        self._lengths[:, env_ids] = 0
        self._reset_policies(env_ids.tolist())

    def cut(self, tally: Tally) -> None:
        """Complete all running trajectories here, although their episodes continue.

        ``tally`` counts the transitions lost in environments that were reset from outside.
        """
        self._note_resets(tally)
        ids = self._traj_lengths.nonzero()[0]
        if not len(ids):
            return
        obs: Tree = {}
        if self._rows is None:  # rows already contain `next_obs`
            ready, shown = self._envs.ready_columns()
            runs = np.isin(ready, ids)
            ids, obs = ready[runs], tree_take(shown, runs)
        self._complete(ids, obs)
        self._longest = 0

    def _sample_counts(self, lengths: np.ndarray) -> np.ndarray:
        """Samples that the trajectories yield, int64 ``[n]``: the fewest over wanted players.

        A policy with only ``get_train_sample`` is expected to make one sample of every
        ``unroll_len`` steps, and one of the remainder.
        """
        fewest: np.ndarray | None = None
        for player in self.players:
            if not player.wanted:
                continue
            if (batched := getattr(player.mode, "batched", None)) is not None:
                counts = np.asarray(batched.count_samples(lengths))
            else:
                counts = -(-lengths // (attribute(player.mode, "unroll_len") or 1))
            fewest = counts if fewest is None else np.minimum(fewest, counts)
        return lengths if fewest is None else fewest

    def taken(self) -> np.ndarray:
        """Complete samples of each environment that were not harvested yet, int64 ``[env_num]``.

        The last sample of a running trajectory is complete if another step would begin a new one.
        """
        taken: np.ndarray = self.waiting + self._sample_counts(self._traj_lengths + 1) - 1
        return taken

    def harvest(self, train_samples: bool) -> list[Harvest]:
        """Take the completed trajectories of each wanted player; other players get none.

        Args:
            train_samples: Whether transitions are turned into training samples.

        Returns:
            For each player all transitions or samples in the order of completion, and the number
            of them in each trajectory.
        """
        self.waiting[:] = 0
        ended = None if self._log is None else self._log.ended()
        if self._log is None or ended is None:
            return [([], []) for _ in self.players]
        take = self._samples if self._rows is None else self._rows.samples
        harvests = [
            take(self._log, index, ended, train_samples) if player.wanted else ([], [])
            for index, player in enumerate(self.players)
        ]
        self._log.drop_ended()
        return harvests

    def _samples(self, log: StepLog, index: int, ended: Ended, train_samples: bool) -> Harvest:
        batched = self.players[index].mode.batched
        lengths = ended.lengths
        rewrites = self._on_trajectories is not None
        # A method that computes with observations needs arrays; one that only passes them on can
        # take indices, which saves a copy.
        takes_indexed = not train_samples or batched.takes_indexed
        columns = log.transitions(index, ended, takes_indexed and not rewrites)
        if self._on_trajectories is not None:
            columns, lengths = self._on_trajectories(columns, lengths)
        if train_samples:
            columns = batched.get_train_columns(columns, lengths)
            lengths = batched.count_samples(lengths)
        else:
            # A transition's reward has the shape (1,), as environments return it.
            columns["reward"] = columns["reward"][:, None]
        return sample_columns(columns), lengths.tolist()


def _arrays(value: Tree) -> Tree:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {name: _arrays(part) for name, part in value.items()}
    return value.numpy()


def _episode(env_id: int, length: int, info: Info | Sequence[Info]) -> Episode:
    # `type` first: the check for any kind of mapping is slower.
    infos = [info] if type(info) is dict or isinstance(info, Mapping) else list(info)
    try:
        values = [one["eval_episode_return"] for one in infos]
        returns = [value if type(value) is float else float(np.sum(value)) for value in values]
    except (KeyError, TypeError, ValueError):
        raise EnvDataError(
            f"env {env_id} ended an episode with info {info!r:.200}, expected the sum of its "
            "rewards in info['eval_episode_return']: set it in step() where done is true",
            env_id,
        ) from None
    return Episode(env_id, returns, length, infos)


def _refuse_shared_memory(modes: Sequence[Mode]) -> None:
    """Reject a policy with a memory for several players: it keeps one memory per environment."""
    with_memory = [m for m in modes if getattr(getattr(m, "batched", None), "recurrent", False)]
    owners = {id(getattr(mode.forward, "__self__", mode)) for mode in with_memory}
    if len(owners) < len(with_memory):
        raise ConfigError(
            "a policy with a memory cannot play several sides of a battle, which would share it: "
            "give each player its own policy"
        )
