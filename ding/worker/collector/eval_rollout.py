"""Greedy episodes: the evaluators' side of acting, on arrays or on dicts of environments."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.data import tree_map, tree_take
from ding.envs import PlayerActions, composite_actions
from ding.worker.collector.env_rows import ready_rows, step_rows
from ding.worker.collector.rollout import refuse_shared_memory
from ding.worker.collector.row_actions import row_action

#: By env id, the infos of an episode's last step, one per player.
Ended = dict[int, list[dict[str, Any]]]


class EvalRollout:
    """Lets policies act until environments have run their episodes.

    Args:
        env: A launched env manager.
        policies: Eval modes, one per player.
        battle: Whether observations and infos have a leading dimension of players.
    """

    def __init__(self, env: Any, policies: Sequence[Any], battle: bool) -> None:
        refuse_shared_memory(policies)
        self._env = env
        self._policies = policies
        self._battle = battle
        self._lengths = np.zeros(env.env_num, np.int64)
        self._columnar = (
            getattr(env, "in_lockstep", True)
            and getattr(env, "supports_columns", False)
            and all(getattr(policy, "batched", None) is not None for policy in policies)
        )

    def take_length(self, env_id: int) -> int:
        """Steps of an environment's episode that has just ended; those of the next count anew."""
        length, self._lengths[env_id] = int(self._lengths[env_id]), 0
        return length

    def step(
        self, active: np.ndarray, policy_kwargs: Sequence[Mapping[str, Any]]
    ) -> tuple[int, Ended]:
        """Act once in the environments that ``active`` (bool ``[env_num]``) names.

        Args:
            policy_kwargs: Keyword arguments of each player's ``forward``.

        Returns:
            The number of environment steps, and the episodes that ended.
        """
        if self._columnar and not any(policy_kwargs):
            return self._step_columns(active)
        return self._step_rows(active, policy_kwargs)

    def _step_columns(self, active: np.ndarray) -> tuple[int, Ended]:
        env_ids, obs = self._env.ready_columns()
        keep = active[env_ids]
        if not keep.all():
            env_ids, obs = env_ids[keep], tree_take(obs, keep)
        actions = []
        for player, policy in enumerate(self._policies):
            own = self._of_player(obs, player)
            kwargs = {"env_ids": env_ids.tolist()} if policy.batched.recurrent else {}
            action = policy.batched.forward(own, **kwargs)["action"]
            composite = isinstance(action, Mapping)
            actions.append(composite_actions(action) if composite else np.asarray(action))
        joined = np.stack(actions, axis=1).view(PlayerActions) if self._battle else actions[0]
        step = self._env.step_columns(joined, env_ids)
        ended = {i: self._infos(step.infos[i]) for i in env_ids[step.done].tolist()}
        failed = [] if step.abnormal is None else env_ids[step.abnormal].tolist()
        self._lengths[env_ids] += 1
        self._lengths[failed] = 0
        resets = [policy.batched.resets for policy in self._policies]
        self._reset_policies([*ended, *failed], resets)
        return len(env_ids) - len(failed), ended

    def _step_rows(
        self, active: np.ndarray, policy_kwargs: Sequence[Mapping[str, Any]]
    ) -> tuple[int, Ended]:
        obs = {i: value for i, value in ready_rows(self._env).items() if active[i]}
        outputs = []
        for player, policy in enumerate(self._policies):
            own = {i: value[player] for i, value in obs.items()} if self._battle else obs
            # None may be ready: then the answers to earlier actions are waited for.
            outputs.append(policy.forward(own, **policy_kwargs[player]) if own else {})
        actions = {i: [row_action(output[i]["action"]) for output in outputs] for i in obs}
        timesteps = step_rows(
            self._env,
            dict(actions) if self._battle else {i: action[0] for i, action in actions.items()},
        )
        ended, failed = {}, []
        for env_id, timestep in timesteps.items():
            infos = self._infos(timestep.info)
            self._lengths[env_id] += 1
            if any(info.get("abnormal", False) for info in infos):
                failed.append(env_id)
                self._lengths[env_id] = 0
            elif np.all(timestep.done):
                ended[env_id] = infos
        self._reset_policies([*ended, *failed], [True] * len(self._policies))
        return len(timesteps) - len(failed), ended

    def _of_player(self, obs: Any, player: int) -> Any:
        return tree_map(lambda leaf: leaf[:, player], obs) if self._battle else obs

    def _infos(self, info: Any) -> list[dict[str, Any]]:
        return [info] if isinstance(info, dict) else list(info)

    def _reset_policies(self, env_ids: list[int], resets: list[bool]) -> None:
        if env_ids:
            for policy, wanted in zip(self._policies, resets):
                if wanted:
                    policy.reset(env_ids)
