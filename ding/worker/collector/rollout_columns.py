"""The collect loop on arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ding.data import Columns, tree_map, tree_take
from ding.envs import PlayerActions, VectorStep, composite_actions
from ding.policy import as_train_columns
from ding.utils.errors import DataError
from ding.worker.collector.rollout import NO_SEED, FinishedEpisode, Rollout, StepResult
from ding.worker.collector.transition_log import TransitionLog

#: Columns of the log that are about it, not about the transition.
_BOOKKEEPING = frozenset({"trajectory"})


class ColumnRollout(Rollout):
    """Transitions go, in time, into one log per player; trajectories are told apart by a number.

    A completed trajectory's number is put on a list, and ``harvest`` sorts the rows of all
    completed ones with a single gather per column.
    """

    def __init__(self, env: Any, policies: Sequence[Any], battle: bool, traj_len: float) -> None:
        super().__init__(env, policies, battle, traj_len)
        self._logs = [TransitionLog() for _ in policies]
        self._completed: list[list[np.ndarray]] = [[] for _ in policies]
        self._all_ids = np.arange(env.env_num)
        self._next_trajectory = env.env_num
        self._trajectory = np.arange(env.env_num)  # number of each env's running trajectory
        self._steps = np.zeros((2, env.env_num), np.int64)  # of trajectories and of episodes
        self._traj_steps, self._episode_steps = self._steps
        self._longest = 0  # no running trajectory has more steps

    def step(
        self,
        train_iters: Sequence[int],
        policy_kwargs: Sequence[dict[str, Any]],
        active: np.ndarray | None = None,
        level_seeds: Sequence[int] | None = None,
    ) -> StepResult:
        env_ids, obs = self._env.ready_columns()
        if active is not None and not active[env_ids].all():
            keep = active[env_ids]
            env_ids, obs = env_ids[keep], tree_take(obs, keep)
        actions = [
            self._act(player, env_ids, self._of_player(obs, player), policy_kwargs[player])
            for player in range(len(self._policies))
        ]
        step = self._env.step_columns(
            np.stack(actions, axis=1).view(PlayerActions) if self._battle else actions[0], env_ids
        )
        rows = self._rows(env_ids)
        terminated = step.done & ~step.truncated if step.infos else step.done
        for player, log in enumerate(self._logs):
            log.put("next_obs", self._of_player(step.obs, player))
            log.put("reward", step.reward[:, player] if self._battle else step.reward)
            log.put("done", terminated)
            log.put("trajectory", self._trajectory[rows])
            log.put("collect_iter", train_iters[player])
            if level_seeds is not None:
                log.put("seed", np.asarray(level_seeds)[env_ids], missing=NO_SEED)
            elif "seed" in log:
                log.put("seed", NO_SEED)
            log.commit()
        return self._account(step, rows)

    def _rows(self, env_ids: np.ndarray) -> Any:
        """How to index what is kept for each environment: a slice for all of them."""
        if env_ids is self._all_ids:
            return slice(None)
        if len(env_ids) == len(self._all_ids) and (env_ids == self._all_ids).all():
            if not env_ids.flags.writeable:
                self._all_ids = env_ids  # known again at a glance, for it cannot change
            return slice(None)
        return env_ids

    def _act(self, player: int, env_ids: np.ndarray, obs: Any, kwargs: dict[str, Any]) -> Any:
        """Log one player's observation and decision; returns its actions ``[n, ...]``."""
        batched = self._policies[player].batched
        if batched.recurrent:
            kwargs = {**kwargs, "env_ids": env_ids.tolist()}
        output = batched.forward(obs, **kwargs)
        action = tree_map(_array, output["action"])
        taken = composite_actions(action) if isinstance(action, dict) else action
        if len(taken) != len(env_ids):
            raise DataError(
                f"the policy returned {len(taken)} actions for {len(env_ids)} environments"
            )
        log = self._logs[player]
        log.open(len(env_ids))
        log.put("obs", obs)
        log.put("action", action)
        for name in batched.transition_outputs:
            log.put(name, tree_map(_array, output[name]))
        return taken

    def _of_player(self, tree: Any, player: int) -> Any:
        return tree_map(lambda leaf: leaf[:, player], tree) if self._battle else tree

    def _account(self, step: VectorStep, rows: Any) -> StepResult:
        env_ids = step.env_ids
        self._steps[:, rows] += 1
        self._longest += 1
        result = StepResult(len(env_ids), 0)
        if not step.infos and self._longest < self.traj_len:
            return result
        complete = step.done | (self._traj_steps[rows] >= self.traj_len)
        if step.abnormal is not None and step.abnormal.any():
            failed = env_ids[step.abnormal]
            result.envsteps -= len(failed)
            complete &= ~step.abnormal
            self._start_trajectories(failed)
            self._episode_steps[failed] = 0
            self._reset_policies(failed)
        if complete.any():
            completed = env_ids[complete]
            result.samples = int(self._traj_steps[completed].sum())
            for trajectories in self._completed:
                trajectories.append(self._trajectory[completed])
            self._start_trajectories(completed)
        self._longest = int(self._traj_steps.max())
        for env_id in env_ids[step.done].tolist():
            result.episodes.append(self._finish_episode(env_id, step.infos[env_id]))
        return result

    def _start_trajectories(self, env_ids: np.ndarray) -> None:
        start = self._next_trajectory
        self._next_trajectory += len(env_ids)
        self._trajectory[env_ids] = np.arange(start, self._next_trajectory)
        self._traj_steps[env_ids] = 0

    def _finish_episode(self, env_id: int, info: Any) -> FinishedEpisode:
        infos = list(info) if self._battle else [info]
        length = int(self._episode_steps[env_id])
        self._episode_steps[env_id] = 0
        self._reset_policies([env_id])
        returns = [float(i["eval_episode_return"]) for i in infos]
        return FinishedEpisode(env_id, returns, length, infos)

    def _reset_policies(self, env_ids: Any) -> None:
        for policy in self._policies:
            if policy.batched.resets:
                policy.reset([int(env_id) for env_id in env_ids])

    def harvest(self, player: int, train_samples: bool) -> tuple[Sequence[Any], list[int]]:
        completed, self._completed[player] = self._completed[player], []
        if not completed:
            return [], []
        log = self._logs[player]
        order = np.concatenate(completed)
        trajectory = log.column("trajectory")
        oldest = trajectory.min()
        # Place of each trajectory in the order of completion; -1 if it is not complete.
        rank = np.full(self._next_trajectory - oldest, -1)
        rank[order - oldest] = np.arange(len(order))
        running = np.zeros(len(rank), bool)
        running[self._trajectory[self._trajectory >= oldest] - oldest] = True
        number = trajectory - oldest
        row_rank = rank[number]
        index = np.argsort(row_rank, kind="stable")
        index = index[np.searchsorted(row_rank[index], 0) :]
        lengths = np.bincount(row_rank[index], minlength=len(order))
        names = [name for name in log.names() if name not in _BOOKKEEPING]
        columns = log.gather(index, names)
        log.keep(np.flatnonzero(running[number]))
        if not train_samples:
            columns["reward"] = columns["reward"][:, None]
            return Columns(as_train_columns(columns)), lengths.tolist()
        batched = self._policies[player].batched
        samples = Columns(as_train_columns(batched.get_train_columns(columns, lengths)))
        return samples, batched.count_samples(lengths).tolist()

    def drop_running(self) -> int:
        dropped = int(self._traj_steps.sum())
        self._start_trajectories(np.arange(self._env.env_num))
        self._completed = [[] for _ in self._policies]
        for log in self._logs:
            log.keep(np.zeros(0, np.int64))
        return dropped


def _array(value: Any) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else value.numpy()
