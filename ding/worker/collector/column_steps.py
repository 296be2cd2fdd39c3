"""Acting on arrays: one call of each policy and one of the env manager for a step."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.data import Columns, tree_map, tree_take
from ding.envs import PlayerActions, VectorStep, composite_actions
from ding.policy import as_train_columns
from ding.utils.errors import DataError
from ding.worker.collector.steps import NO_SEED, Envs, Harvest, Player, Steps, Tree
from ding.worker.collector.transition_log import TransitionLog

#: The column that is about the log, not about the transition.
_TRAJECTORY = "trajectory"


class ColumnSteps(Steps):
    """Transitions go, in time, into one log per player; trajectories are told apart by a number.

    An observation is written once: a transition's ``next_obs`` is the ``obs`` of its trajectory's
    next row, but for the last one's, which is kept aside when the trajectory is complete.
    """

    def __init__(self, envs: Envs, players: Sequence[Player], battle: bool, keeps: bool) -> None:
        super().__init__(envs, players, battle, keeps)
        self._logs = [TransitionLog() for _ in players]
        self._trajectory = np.arange(envs.env_num)  # number of each env's running trajectory
        self._next_trajectory = envs.env_num
        self._completed: list[np.ndarray] = []  # numbers, in the order of completion
        self._finals: list[list[Tree]] = [[] for _ in players]  # last observations, likewise

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

    def complete(self, step: VectorStep, which: np.ndarray) -> None:
        if not self._keeps:
            return
        env_ids = step.env_ids[which]
        self._completed.append(self._trajectory[env_ids])
        for player, finals in enumerate(self._finals):
            finals.append(tree_take(self._of_player(step.obs, player), which))
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
        index, lengths, running = self._places()
        harvests: list[Harvest] = []
        for player, (log, finals) in enumerate(zip(self._logs, self._finals)):
            harvests.append(([], []))
            if wanted[player]:
                columns = _transitions(log.gather(index), finals, lengths)
                harvests[player] = self._packed(player, columns, lengths, train_samples)
            log.keep(running)
        self._completed, self._finals = [], [[] for _ in self._players]
        return harvests

    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of the log in complete trajectories, in the order of completion, and how many each
        has; and the rows in running ones, in time."""
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
        lengths = np.bincount(row_rank[index], minlength=len(order))
        return index, lengths, np.flatnonzero(is_running[number])

    def _packed(
        self, index: int, columns: dict[str, Tree], lengths: np.ndarray, train_samples: bool
    ) -> Harvest:
        if not train_samples:
            columns["reward"] = columns["reward"][:, None]
            return Columns(as_train_columns(columns)), lengths.tolist()
        batched = self._players[index].mode.batched
        samples = Columns(as_train_columns(batched.get_train_columns(columns, lengths)))
        return samples, batched.count_samples(lengths).tolist()


def _arrays(value: Any) -> Tree:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {name: _arrays(part) for name, part in value.items()}
    return value.numpy()


def _transitions(
    columns: dict[str, Tree], finals: Sequence[Tree], lengths: np.ndarray
) -> dict[str, Tree]:
    """Columns of complete trajectories, with ``next_obs``."""
    del columns[_TRAJECTORY]
    columns["next_obs"] = _next_obs(columns["obs"], finals, np.cumsum(lengths) - 1)
    return columns


def _next_obs(obs: Tree, finals: Sequence[Tree], ends: np.ndarray) -> Tree:
    """The observations one row later; at the `ends` of trajectories their last ones."""
    if isinstance(obs, Mapping):
        return {k: _next_obs(v, [final[k] for final in finals], ends) for k, v in obs.items()}
    last = finals[0] if len(finals) == 1 else np.concatenate(finals)
    following = np.empty(obs.shape, np.promote_types(obs.dtype, last.dtype))
    following[:-1] = obs[1:]
    following[ends] = last
    return following
