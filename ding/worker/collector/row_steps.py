"""Acting on dicts of environments, for policies and managers that support no arrays."""

import contextlib
import copy
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ding.data import Columns, tree_map, tree_take
from ding.envs import BaseEnvTimestep, VectorStep, WholeAction
from ding.policy.common_utils import flatten_numbers
from ding.torch_utils import to_ndarray, to_tensor
from ding.utils.errors import DataError, EnvError
from ding.utils.types import Settings, Tree
from ding.worker.collector.base_serial_collector import to_tensor_transitions
from ding.worker.collector.step_log import Ended, StepLog
from ding.worker.collector.steps import (
    NO_SEED,
    Envs,
    Harvest,
    Info,
    OnTrajectories,
    Player,
    Samples,
)

#: Config keys that apply to single transitions: convert observations to tensors for the policy,
#: copy observations, and have the env manager rewrite the rewards of each finished trajectory.
ROW_OPTIONS = ("transform_obs", "deepcopy_obs", "reward_shaping")

#: By env id; observations are of one player, or of all.
ByEnv: TypeAlias = Mapping[int, Any]
#: For each player its observation, its output and the training iteration of its policy.
Acted: TypeAlias = Sequence[tuple[Tree, Info, int]]


class RowSteps:
    """Takes the steps of a `Rollout`; each player's transition is a dict in the column ``row``.

    See `Rollout` for the arguments.
    """

    def __init__(
        self,
        envs: Envs,
        players: Sequence[Player],
        battle: bool,
        keeps: bool,
        options: Settings,
        on_trajectories: OnTrajectories | None = None,
    ) -> None:
        self._envs, self._players = envs, players
        self._on_trajectories = on_trajectories
        self._battle, self._keeps = battle, keeps
        self._transforms, self._copies, self._shapes = map(options.get, ROW_OPTIONS)
        self._knows_seeds = False
        # By env id, until the environment returns its timestep.
        self._acted: dict[int, Acted] = {}

    def act(self, active: np.ndarray | None) -> tuple[VectorStep, list[dict[str, Tree]]]:
        """Act in the ready environments; the returned step has no observations or rewards."""
        # V2 managers return observations as one array and timesteps as a list, each with its
        # `env_id`; other managers return both by env id.
        obs: ByEnv = self._envs.ready_obs
        if not isinstance(obs, Mapping) or isinstance(next(iter(obs), 0), str):
            obs = {env_id: tree_take(obs, i) for i, env_id in enumerate(self._envs.ready_obs_id)}
        none_is_ready = not obs
        if active is not None:
            obs = {env_id: value for env_id, value in obs.items() if active[env_id]}
        if self._copies:
            obs = copy.deepcopy(obs)
        if self._transforms:
            obs = to_tensor(obs, dtype=None)
        timesteps = self._envs.step(self._actions(obs))
        if not isinstance(timesteps, Mapping):
            timesteps = {timestep.env_id: timestep for timestep in timesteps}
        if none_is_ready and not timesteps and not self._acted:
            raise EnvError("no environment waits for an action: all are done, or need a reset()")
        env_ids = np.fromiter(timesteps, np.int64)
        done, abnormal = np.zeros((2, len(env_ids)), bool)
        rows = np.empty((len(self._players), len(env_ids)), object)
        infos = {}
        for position, (env_id, timestep) in enumerate(timesteps.items()):
            acted = self._acted.pop(env_id, None)
            # Without `acted`, the timestep belongs to an action from before a reset.
            given = timestep.info
            infos_of = [given] if isinstance(given, Mapping) else given
            if acted is None or any(info.get("abnormal", False) for info in infos_of):
                abnormal[position] = True
                continue
            if np.all(timestep.done):
                done[position] = True
                infos[env_id] = given
            if self._keeps:
                for own, transition in zip(rows, self._transitions(env_id, timestep, acted)):
                    own[position] = transition
        nothing = np.zeros(0)
        failed = abnormal if abnormal.any() else None
        step = VectorStep(env_ids, {}, nothing, done, ~done, failed, infos)
        return step, [{"obs": {}, "row": own} for own in rows]

    def _actions(self, obs: ByEnv) -> ByEnv:
        seen = [obs]
        if self._battle:
            seen = [{i: o[k] for i, o in obs.items()} for k in range(len(self._players))]
        # If no environment is ready, `step` waits for the results of earlier actions.
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

    def _transitions(
        self, env_id: int, timestep: BaseEnvTimestep, acted: Acted
    ) -> list[dict[str, Tree]]:
        transitions = []
        for index, (player, (own, output, train_iter)) in enumerate(zip(self._players, acted)):
            own_timestep = _of_one(timestep, index) if self._battle else timestep
            transition = player.mode.process_transition(own, output, own_timestep)
            transition["collect_iter"] = train_iter
            if player.level_seeds is not None:
                self._knows_seeds = True
                transition["seed"] = player.level_seeds[env_id]
            transitions.append(transition)
        return transitions

    def samples(self, log: StepLog, index: int, ended: Ended, train_samples: bool) -> Harvest:
        """A player's transitions, or the training samples that its policy makes of them."""
        transitions = log.transitions(index, ended)["row"].tolist()
        mode, stop = self._players[index].mode, 0
        samples: Samples = []
        counts = []
        lengths = ended.lengths
        if self._on_trajectories is not None:
            columns = tree_map(to_ndarray, Columns.from_rows(transitions).columns)
            columns, lengths = self._on_trajectories(flatten_numbers(columns), lengths)
            columns["reward"] = columns["reward"][:, None]
            transitions = list(Columns(columns))
        if self._knows_seeds:
            for transition in transitions:
                transition.setdefault("seed", NO_SEED)
        at_once = getattr(mode, "get_train_samples", None)
        if train_samples and at_once is not None and not self._shapes:
            # If the keys of transitions differ, they may still agree within each trajectory below.
            with contextlib.suppress(DataError):
                made, of_each = at_once(transitions, lengths)
                return made, of_each.tolist()
        # Added trajectories are assigned to the environments in turn.
        env_ids = np.resize(ended.env_ids, len(lengths))
        for env_id, length in zip(env_ids.tolist(), lengths.tolist()):
            start, stop = stop, stop + length
            trajectory = transitions[start:stop]
            rows = to_tensor_transitions(trajectory, not self._copies)
            if self._shapes:
                rows = self._envs.reward_shaping(env_id, rows)
            if train_samples:
                rows = mode.get_train_sample(rows)
            samples.extend(rows)
            counts.append(len(rows))
        return samples, counts


def _of_one(timestep: BaseEnvTimestep, index: int) -> BaseEnvTimestep:
    """One player's part of a timestep."""
    obs, reward, done, info = timestep[:4]
    return BaseEnvTimestep(
        obs[index],
        np.asarray(reward[index]).reshape(-1),
        done if np.ndim(done) == 0 else done[index],
        info if isinstance(info, Mapping) else info[index],
    )


def _row_action(action: Tree) -> Tree:
    """A policy's action for one environment as arrays; an integer has the shape ``(1,)``."""
    array = to_ndarray(action)
    if isinstance(array, dict):
        return {name: _row_action(part) for name, part in array.items()}
    if getattr(array, "shape", None) in ((), (1,)) and array.dtype.kind in "iu":
        # Environments use it as an index or number; numpy 2.4 rejects arrays of shape (1,) there.
        return array.reshape(1).view(WholeAction)
    return array
