"""Acting on arrays: one call of each policy and one of the env manager for a step."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ding.data import Columns, IndexedColumn, tree_map, tree_take
from ding.envs import PlayerActions, VectorStep, composite_actions
from ding.policy import as_train_columns
from ding.utils.errors import DataError
from ding.worker.collector._types import Envs, Harvest, Tree
from ding.worker.collector.steps import NO_SEED, Player, Steps
from ding.worker.collector.transition_log import TransitionLog

#: The column that is about the log, not about the transition.
_TRAJECTORY = "trajectory"


class ColumnSteps(Steps):
    """Transitions go, in time, into one log per player; trajectories are told apart by a number.

    An observation is written once: a transition's ``next_obs`` is the ``obs`` of its trajectory's
    next row. When a trajectory is complete, a row with its last observation ends it, which is no
    transition.
    """

    def __init__(self, envs: Envs, players: Sequence[Player], battle: bool, keeps: bool) -> None:
        super().__init__(envs, players, battle, keeps)
        self._logs = [TransitionLog() for _ in players]
        self._trajectory = np.arange(envs.env_num)  # number of each env's running trajectory
        self._next_trajectory = envs.env_num
        self._completed: list[np.ndarray] = []  # numbers, in the order of completion

    # ------------------------------------------------------------------ acting

    def take(self, active: np.ndarray | None, level_seeds: Sequence[int] | None) -> VectorStep:
        env_ids, obs = self._envs.ready_columns()
        if active is not None and not active[env_ids].all():
            keep = active[env_ids]
            env_ids, obs = env_ids[keep], tree_take(obs, keep)
        acted = [self._act(player, env_ids, obs) for player in range(len(self._players))]
        actions = [action for action, _ in acted]
        joined = np.stack(actions, axis=1).view(PlayerActions) if self._battle else actions[0]
        step: VectorStep = self._envs.step_columns(joined, env_ids)
        if self._keeps:
            for player, (_, columns) in enumerate(acted):
                # What the policies saw still holds: env managers write the next but one step there.
                self._log(player, self._of_player(obs, player), columns, step, level_seeds)
        return step

    def _act(
        self, index: int, env_ids: np.ndarray, obs: Tree
    ) -> tuple[np.ndarray, dict[str, Tree]]:
        """Actions of one player ``[n, ...]``, and its columns of the transitions."""
        player = self._players[index]
        batched, kwargs = player.mode.batched, player.kwargs
        if batched.recurrent:
            kwargs = {**kwargs, "env_ids": env_ids.tolist()}
        output = batched.forward(self._of_player(obs, index), **kwargs)
        action = _arrays(output["action"])
        taken = composite_actions(action) if isinstance(action, dict) else action
        if len(taken) != len(env_ids):
            raise DataError(
                f"the policy returned {len(taken)} actions for {len(env_ids)} environments"
            )
        columns = {"action": action}
        if self._keeps:
            for name in batched.transition_outputs:
                columns[name] = _arrays(output[name])
        return taken, columns

    def _log(
        self,
        index: int,
        obs: Tree,
        columns: dict[str, Tree],
        step: VectorStep,
        level_seeds: Sequence[int] | None,
    ) -> None:
        log = self._logs[index]
        count = len(step.env_ids)
        if level_seeds is not None:
            columns["seed"] = np.asarray(level_seeds)[step.env_ids]
            log.add_missing("seed", columns["seed"], NO_SEED)
        elif "seed" in log:
            columns["seed"] = NO_SEED
        log.append(
            count,
            {
                "obs": obs,
                **columns,
                "reward": step.reward[:, index] if self._battle else step.reward,
                "done": step.done & ~step.truncated if step.infos else step.done,
                "collect_iter": self._players[index].train_iter,
                _TRAJECTORY: self._trajectory[step.env_ids],
            },
        )

    def _of_player(self, tree: Tree, index: int) -> Tree:
        return tree_map(lambda leaf: leaf[:, index], tree) if self._battle else tree

    # ------------------------------------------------------------------ trajectories

    def complete(self, env_ids: np.ndarray, step: VectorStep, which: np.ndarray) -> None:
        if not self._keeps:
            return
        numbers = self._trajectory[env_ids]
        self._completed.append(numbers)
        for player, log in enumerate(self._logs):
            last = tree_take(self._of_player(step.obs, player), which)
            log.append_part(len(env_ids), {"obs": last, _TRAJECTORY: numbers})
        self.forget(env_ids)

    def forget(self, env_ids: Sequence[int] | np.ndarray) -> None:
        ids = np.asarray(env_ids, np.int64)
        start = self._next_trajectory
        self._next_trajectory += len(ids)
        self._trajectory[ids] = np.arange(start, self._next_trajectory)

    def reset_policies(self, env_ids: Sequence[int]) -> None:
        for player in self._players:
            for env_id in env_ids if player.mode.batched.resets else ():
                player.mode.reset([env_id])

    # ------------------------------------------------------------------ harvest

    def harvest(self, wanted: Sequence[bool], train_samples: bool) -> list[Harvest]:
        if not self._completed:
            return [([], []) for _ in self._players]
        rows = self._complete_rows()
        self._completed = []
        return [
            self._harvest_one(player, rows, train_samples)
            if is_wanted
            else self._discard(player, rows)
            for player, is_wanted in enumerate(wanted)
        ]

    def _complete_rows(self) -> "_Rows":
        order = np.concatenate(self._completed)
        number = self._logs[0].column(_TRAJECTORY)
        oldest = number.min()
        # Place of each trajectory in the order of completion; -1 if it is not complete.
        rank = np.full(self._next_trajectory - oldest, -1)
        rank[order - oldest] = np.arange(len(order))
        is_running = np.zeros(len(rank), bool)
        is_running[self._trajectory[self._trajectory >= oldest] - oldest] = True
        number = number - oldest
        row_rank = rank[number]
        index = np.argsort(row_rank, kind="stable")
        index = index[np.searchsorted(row_rank[index], 0) :]
        lengths = np.bincount(row_rank[index], minlength=len(order)) - 1
        is_transition = np.ones(len(index), bool)
        is_transition[np.cumsum(lengths + 1) - 1] = False
        following = index[1:][is_transition[:-1]]
        return _Rows(index[is_transition], following, lengths, np.flatnonzero(is_running[number]))

    def _discard(self, index: int, rows: "_Rows") -> Harvest:
        self._logs[index].keep(rows.running)
        return [], []

    def _harvest_one(self, index: int, rows: "_Rows", train_samples: bool) -> Harvest:
        log, batched = self._logs[index], self._players[index].mode.batched
        names = [name for name in log.names() if name not in ("obs", _TRAJECTORY)]
        columns = log.gather(rows.at, names)
        obs = log.whole("obs")
        indexed = not train_samples or batched.takes_indexed
        pick = IndexedColumn if indexed else _rows_at
        columns["obs"] = tree_map(lambda leaf: pick(leaf, rows.at), obs)
        columns["next_obs"] = tree_map(lambda leaf: pick(leaf, rows.following), obs)
        log.keep(rows.running, given=("obs",) if indexed else ())
        lengths = rows.lengths
        if not train_samples:
            columns["reward"] = columns["reward"][:, None]
            return Columns(as_train_columns(columns)), lengths.tolist()
        samples = Columns(as_train_columns(batched.get_train_columns(columns, lengths)))
        return samples, batched.count_samples(lengths).tolist()


class _Rows(NamedTuple):
    """Rows of the logs.

    Attributes:
        at: Transitions of complete trajectories, in the order of completion.
        following: The row after each of these in its trajectory.
        lengths: Transitions of each of the complete trajectories.
        running: All of the running ones, in time.
    """

    at: np.ndarray
    following: np.ndarray
    lengths: np.ndarray
    running: np.ndarray


def _rows_at(leaf: np.ndarray, index: np.ndarray) -> np.ndarray:
    return leaf.take(index, axis=0)


def _arrays(value: Tree) -> Tree:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {name: _arrays(part) for name, part in value.items()}
    return value.numpy()
