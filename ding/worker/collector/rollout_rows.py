"""The collect loop on dicts of environments, for policies and managers that only know those."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs import BaseEnvTimestep
from ding.torch_utils import to_tensor
from ding.utils.errors import DataError
from ding.worker.collector.base_serial_collector import to_tensor_transitions
from ding.worker.collector.env_rows import ready_rows, step_rows
from ding.worker.collector.rollout import NO_SEED, FinishedEpisode, Rollout, StepResult
from ding.worker.collector.row_actions import row_action


class RowRollout(Rollout):
    """Transitions go, as dicts, into one list per environment and player.

    Args:
        transform_obs: Make tensors of observations before the policy sees them.
        deepcopy_obs: Copy observations when they come from the environments.
        reward_shaping: Let the env manager rewrite the rewards of each finished trajectory.
    """

    def __init__(
        self,
        env: Any,
        policies: Sequence[Any],
        battle: bool,
        traj_len: float,
        transform_obs: bool = False,
        deepcopy_obs: bool = False,
        reward_shaping: bool = False,
    ) -> None:
        super().__init__(env, policies, battle, traj_len)
        self._transform_obs = transform_obs
        self._deepcopy_obs = deepcopy_obs
        self._reward_shaping = reward_shaping
        self._completed: list[list[Sequence[dict[str, Any]]]] = [[] for _ in policies]
        self._knows_seeds = False
        self._episode_steps = np.zeros(env.env_num, np.int64)
        # By env id, for each player what it saw, its output, and the iteration of its policy, until
        # the environment answers.
        self._acted: dict[int, list[tuple[Any, Any, int]]] = {}
        self._running = [self._new_trajectories() for _ in range(env.env_num)]

    def step(
        self,
        train_iters: Sequence[int],
        policy_kwargs: Sequence[dict[str, Any]],
        active: np.ndarray | None = None,
        level_seeds: Sequence[int] | None = None,
    ) -> StepResult:
        obs = ready_rows(self._env)
        if active is not None:
            obs = {env_id: value for env_id, value in obs.items() if active[env_id]}
        if self._deepcopy_obs or getattr(self._env, "ready_obs_changes", False):
            obs = copy.deepcopy(obs)
        if self._transform_obs:
            obs = to_tensor(obs, dtype=None)
        seen = [self._of_player(obs, player) for player in range(len(self._policies))]
        # None may be ready: then the answers to earlier actions are waited for.
        outputs = [
            policy.forward(own, **kwargs) if own else {}
            for policy, own, kwargs in zip(self._policies, seen, policy_kwargs)
        ]
        actions = self._actions(obs, outputs)
        for env_id in obs:
            self._acted[env_id] = [
                (own[env_id], out[env_id], train_iter)
                for own, out, train_iter in zip(seen, outputs, train_iters)
            ]
        timesteps = step_rows(self._env, actions)
        if level_seeds is not None and not self._knows_seeds:
            self._mark_seedless()
        result = StepResult(0, 0)
        for env_id, timestep in timesteps.items():
            acted = self._acted.pop(env_id, None)
            # Without: the answer to an action from before a reset.
            if acted is None or _is_abnormal(timestep):
                self._drop_env(env_id)
                continue
            extra = {}
            if self._knows_seeds:
                extra["seed"] = NO_SEED if level_seeds is None else level_seeds[env_id]
            for player, policy in enumerate(self._policies):
                own, output, train_iter = acted[player]
                transition = policy.process_transition(
                    own, output, self._player_timestep(timestep, player)
                )
                transition.update(extra, collect_iter=train_iter)
                self._running[env_id][player].append(transition)
            self._account(env_id, timestep, result)
        return result

    def _mark_seedless(self) -> None:
        """From here on transitions have a ``seed``; those so far were made without."""
        self._knows_seeds = True
        for trajectories in self._running:
            for trajectory in trajectories:
                for transition in trajectory:
                    transition["seed"] = NO_SEED

    def _actions(self, obs: Mapping[int, Any], outputs: list[Any]) -> dict[int, Any]:
        for player, output in enumerate(outputs):
            missing = set(obs) - set(output)
            if missing:
                raise DataError(
                    f"policy {player} returned no output for the environments {sorted(missing)}"
                )
        if self._battle:
            return {i: [row_action(output[i]["action"]) for output in outputs] for i in obs}
        return {i: row_action(outputs[0][i]["action"]) for i in obs}

    def _of_player(self, obs: Mapping[int, Any], player: int) -> Mapping[int, Any]:
        return {i: value[player] for i, value in obs.items()} if self._battle else obs

    def _player_timestep(self, timestep: Any, player: int) -> Any:
        if not self._battle:
            return timestep
        obs, reward, done, info = timestep[:4]
        return BaseEnvTimestep(
            obs[player],
            np.asarray(reward[player]).reshape(-1),
            done if np.ndim(done) == 0 else done[player],
            info if isinstance(info, Mapping) else info[player],
        )

    def _account(self, env_id: int, timestep: Any, result: StepResult) -> None:
        done = bool(np.all(timestep.done))
        result.envsteps += 1
        self._episode_steps[env_id] += 1
        trajectories = self._running[env_id]
        if done or len(trajectories[0]) >= self.traj_len:
            result.samples += len(trajectories[0])
            for player, trajectory in enumerate(trajectories):
                rows = to_tensor_transitions(trajectory, not self._deepcopy_obs)
                if self._reward_shaping:
                    rows = self._env.reward_shaping(env_id, rows)
                self._completed[player].append(rows)
            self._running[env_id] = self._new_trajectories()
        if done:
            infos: list[Any] = (
                [timestep.info] if isinstance(timestep.info, Mapping) else list(timestep.info)
            )
            returns = [float(np.sum(info["eval_episode_return"])) for info in infos]
            length, self._episode_steps[env_id] = int(self._episode_steps[env_id]), 0
            result.episodes.append(FinishedEpisode(env_id, returns, length, infos))
            self._reset_policies(env_id)

    def _drop_env(self, env_id: int) -> None:
        self._running[env_id] = self._new_trajectories()
        self._episode_steps[env_id] = 0
        self._reset_policies(env_id)

    def _reset_policies(self, env_id: int) -> None:
        for policy in self._policies:
            policy.reset([env_id])

    def _new_trajectories(self) -> list[list[dict[str, Any]]]:
        return [[] for _ in self._policies]

    def harvest(self, player: int, train_samples: bool) -> tuple[Any, list[int]]:
        completed, self._completed[player] = self._completed[player], []
        samples: list[Any] = []
        lengths = []
        for trajectory in completed:
            rows = (
                self._policies[player].get_train_sample(trajectory) if train_samples else trajectory
            )
            samples.extend(rows)
            lengths.append(len(rows))
        return samples, lengths

    def drop_running(self) -> int:
        dropped = sum(len(trajectories[0]) for trajectories in self._running)
        self._running = [self._new_trajectories() for _ in range(self._env.env_num)]
        self._completed = [[] for _ in self._policies]
        return dropped


def _is_abnormal(timestep: Any) -> bool:
    infos = [timestep.info] if isinstance(timestep.info, Mapping) else timestep.info
    return any(bool(info.get("abnormal", False)) for info in infos)
