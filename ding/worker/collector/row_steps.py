"""Acting on dicts of environments, for policies and managers that only know those."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ding.data import tree_take
from ding.envs import BaseEnvTimestep, VectorStep, WholeAction
from ding.torch_utils import to_ndarray, to_tensor
from ding.utils.errors import DataError
from ding.worker.collector.base_serial_collector import to_tensor_transitions
from ding.worker.collector.steps import (
    NO_SEED,
    Envs,
    Harvest,
    Info,
    Mode,
    Player,
    RowOptions,
    Samples,
    Tree,
)

Transition: TypeAlias = dict[str, Tree]
#: By env id; observations are of one player, or of all.
ByEnv: TypeAlias = Mapping[int, Any]
#: For each player what it saw, its output, and the iteration of its policy.
Acted: TypeAlias = Sequence[tuple[Tree, Info, int]]


class RowSteps:
    """`ColumnSteps` whose transitions go, as dicts, into one list per environment and player.

    Of the steps that it takes, ``obs`` and ``reward`` are empty.

    Args:
        options: What is done to transitions one by one.
    """

    def __init__(
        self,
        envs: Envs,
        players: Sequence[Player],
        battle: bool,
        keeps: bool,
        options: RowOptions,
    ) -> None:
        self._envs, self._players = envs, players
        self._battle, self._keeps = battle, keeps
        self._options = options
        self._knows_seeds = False
        # By env id, until the environment answers.
        self._acted: dict[int, Acted] = {}
        self._running = [self._new_trajectories() for _ in range(envs.env_num)]
        self._completed: list[list[Sequence[Transition]]] = [[] for _ in players]

    # ------------------------------------------------------------------ acting

    def take(self, active: np.ndarray | None) -> VectorStep:
        obs = _ready_rows(self._envs)
        if active is not None:
            obs = {env_id: value for env_id, value in obs.items() if active[env_id]}
        if self._options.deepcopy_obs or (
            self._keeps and getattr(self._envs, "ready_obs_changes", False)
        ):
            obs = copy.deepcopy(obs)
        if self._options.transform_obs:
            obs = to_tensor(obs, dtype=None)
        actions = self._act(obs)
        return self._vector_step(_step_rows(self._envs, actions))

    def _act(self, obs: ByEnv) -> ByEnv:
        seen = [self._of_player(obs, index) for index in range(len(self._players))]
        # None may be ready: then the answers to earlier actions are waited for.
        outputs = [
            player.mode.forward(own, **player.kwargs) if own else {}
            for player, own in zip(self._players, seen)
        ]
        for index, output in enumerate(outputs):
            missing = set(obs) - set(output)
            if missing:
                raise DataError(
                    f"policy {index} returned no output for the environments {sorted(missing)}"
                )
        for env_id in obs:
            self._acted[env_id] = [
                (own[env_id], output[env_id], player.train_iter)
                for own, output, player in zip(seen, outputs, self._players)
            ]
        if self._battle:
            return {i: [_row_action(output[i]["action"]) for output in outputs] for i in obs}
        return {i: _row_action(outputs[0][i]["action"]) for i in obs}

    def _vector_step(self, timesteps: ByEnv) -> VectorStep:
        """What `timesteps` say, in columns; transitions of those that count are kept."""
        env_ids = np.fromiter(timesteps, np.int64)
        done, abnormal = np.zeros((2, len(env_ids)), bool)
        infos = {}
        for position, (env_id, timestep) in enumerate(timesteps.items()):
            acted = self._acted.pop(env_id, None)
            # Without: the answer to an action from before a reset.
            abnormal[position] = acted is None or _is_abnormal(timestep)
            if acted is None or abnormal[position]:
                continue
            done[position] = np.all(timestep.done)
            if done[position]:
                infos[env_id] = timestep.info
            if self._keeps:
                self._keep(env_id, timestep, acted)
        nothing = np.zeros(0)
        failed = abnormal if abnormal.any() else None
        return VectorStep(env_ids, nothing, nothing, done, ~done, failed, infos)

    def _of_player(self, obs: ByEnv, index: int) -> ByEnv:
        return {i: value[index] for i, value in obs.items()} if self._battle else obs

    # ------------------------------------------------------------------ trajectories

    def _keep(self, env_id: int, timestep: BaseEnvTimestep, acted: Acted) -> None:
        for index, (player, (own, output, train_iter)) in enumerate(zip(self._players, acted)):
            own_timestep = _of_one(timestep, index) if self._battle else timestep
            transition = player.mode.process_transition(own, output, own_timestep)
            transition["collect_iter"] = train_iter
            if player.level_seeds is not None:
                self._knows_seeds = True
                transition["seed"] = player.level_seeds[env_id]
            self._running[env_id][index].append(transition)

    def complete(self, env_ids: np.ndarray, step: VectorStep, which: np.ndarray) -> None:
        for env_id in env_ids.tolist() if self._keeps else ():
            for completed, trajectory in zip(self._completed, self._running[env_id]):
                for transition in trajectory if self._knows_seeds else ():
                    transition.setdefault("seed", NO_SEED)
                rows = to_tensor_transitions(trajectory, not self._options.deepcopy_obs)
                if self._options.reward_shaping:
                    rows = self._envs.reward_shaping(env_id, rows)
                completed.append(rows)
            self._running[env_id] = self._new_trajectories()

    def forget(self, env_ids: Sequence[int] | np.ndarray) -> None:
        for env_id in env_ids:
            self._running[env_id] = self._new_trajectories()

    def _new_trajectories(self) -> list[list[Transition]]:
        return [[] for _ in self._players]

    def harvest(self, train_samples: bool) -> list[Harvest]:
        completed, self._completed = self._completed, [[] for _ in self._players]
        return [
            _joined(own, player.mode if train_samples else None) if player.wanted else ([], [])
            for player, own in zip(self._players, completed)
        ]


def _joined(trajectories: Sequence[Sequence[Transition]], mode: Mode | None) -> Harvest:
    """Transitions, or the training samples that a policy's mode makes of them."""
    samples: Samples = []
    lengths = []
    for trajectory in trajectories:
        rows = trajectory if mode is None else mode.get_train_sample(trajectory)
        samples.extend(rows)
        lengths.append(len(rows))
    return samples, lengths


def _of_one(timestep: BaseEnvTimestep, index: int) -> BaseEnvTimestep:
    """What one of several players is told."""
    obs, reward, done, info = timestep[:4]
    return BaseEnvTimestep(
        obs[index],
        np.asarray(reward[index]).reshape(-1),
        done if np.ndim(done) == 0 else done[index],
        info if isinstance(info, Mapping) else info[index],
    )


def _is_abnormal(timestep: BaseEnvTimestep) -> bool:
    infos = [timestep.info] if isinstance(timestep.info, Mapping) else timestep.info
    return any(bool(info.get("abnormal", False)) for info in infos)


def _row_action(action: Tree) -> Tree:
    """The array of what a policy returns for one environment; a whole number has shape ``(1,)``.

    An action of several parts is a dict of such.
    """
    array = to_ndarray(action)
    if isinstance(array, dict):
        return {name: _row_action(part) for name, part in array.items()}
    if getattr(array, "shape", None) in ((), (1,)) and array.dtype.kind in "iu":
        return array.reshape(1).view(WholeAction)
    return array


# Managers of the second version stack what others give by env id: observations come as one array,
# and timesteps as a list in which each tells its `env_id`.


def _ready_rows(envs: Envs) -> ByEnv:
    """Observations of the environments that wait for an action."""
    obs = envs.ready_obs
    if isinstance(obs, Mapping) and not isinstance(next(iter(obs), 0), str):
        return obs
    return {env_id: tree_take(obs, i) for i, env_id in enumerate(envs.ready_obs_id)}


def _step_rows(envs: Envs, actions: ByEnv) -> ByEnv:
    """Step environments; timesteps."""
    timesteps = envs.step(actions)
    if isinstance(timesteps, Mapping):
        return timesteps
    return {timestep.env_id: timestep for timestep in timesteps}
