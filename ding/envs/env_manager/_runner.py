"""What an env manager calls to run its environments, the answers, and vector steps of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ding.envs.env.answers import reward_fault
from ding.envs.env.base_env import is_truncated
from ding.envs.env_manager._env_types import EnvState
from ding.envs.env_manager._obs_store import nan_position, sum_of_squares
from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace
from ding.envs.vector_step import Actions, Info, Obs, Reward, VectorStep
from ding.utils.errors import DataError, DingError, EnvDataError
from ding.utils.types import Config, Settings, State

#: What a method of `EnvGroup` returns; its caller names the method.
Answer: TypeAlias = Any


@dataclass(slots=True)
class GroupStep:
    """What some environments answered to a step or to resets.

    Attributes:
        ids: Which they are, in the order of the columns that follow.
        obs: One by one, perhaps the environments' own arrays, good until their next ``step``; or
            columns, which the runner has copied.
        rewards: As the environments gave them; ``None`` of those that failed.
        infos: As the environments gave them.
        ended: Ids of those whose episode ended.
        abnormal: Ids of those that failed and have begun a new episode.
        first: By id, the first observations of episodes, and others that the step does not report.
        cut: Ids of those that were not asked for anything and begin a new episode all the same.
        error: What kept some environments from being reset, or has cost them an episode.
    """

    ids: Sequence[int] = ()
    obs: Obs = ()
    rewards: list[Reward] | np.ndarray = field(default_factory=list)
    infos: list[Info] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    abnormal: Sequence[int] = ()
    first: dict[int, Obs] = field(default_factory=dict)
    cut: Sequence[int] = ()
    error: DingError | None = None


class EnvRunner:
    """Runs environments from a manager's launch to its end.

    `EnvGroup` steps them in this process, `WorkerPool` has groups in others, and `VectorRunner`
    hands whole batches to a library.

    Attributes:
        states: By env id.
        steps_all: Whether environments that a step has no action for are stepped, too.
    """

    states: dict[int, EnvState]
    steps_all = False

    def start(self) -> dict[str, FoundSpace]:
        """Make the environments; their spaces by name, as far as they are known."""
        raise NotImplementedError

    def stop(self, wait: bool) -> None:
        """Close them; without `wait`, those that are at work are left behind."""
        raise NotImplementedError

    def restart(self, params: Mapping[int, Config | None], recount: bool) -> GroupStep:
        """Reset environments because the caller asks for it.

        Args:
            params: Keyword arguments of their ``reset`` from now on; ``None`` leaves what is set.
            recount: Whether the episodes so far are forgotten; always for one that was done.
        """
        raise NotImplementedError

    def step(self, ids: Sequence[int], actions: Actions, rows: bool = False) -> GroupStep:
        """Step `ids` and start the next episodes that are due.

        Args:
            ids: Those that get actions.
            actions: In the order of `ids`.
            rows: Whether rewards have to be arrays, as ``step`` of the dict API returns them.
        """
        raise NotImplementedError

    def ready(self) -> list[int]:
        """Ids of the environments that wait for an action."""
        return [env_id for env_id, state in self.states.items() if state == EnvState.RUN]

    @property
    def in_flight(self) -> Sequence[int]:
        """Environments that a step without actions continues."""
        return ()

    def ask(self, method: str, env_id: int, *args: object) -> Answer:
        """Call a method of the `EnvGroup` that an environment is in."""
        return getattr(self, method)(env_id, *args)

    def ask_all(self, method: str, *args: object) -> list[Answer]:
        """Call it in all groups."""
        return [getattr(self, method)(*args)]

    def state_dict(self) -> State:
        """What the next episodes depend on."""
        states = self.env_states()
        return {"envs": [states[env_id] for env_id in sorted(states)]}

    def env_states(self) -> Mapping[int, State]:
        """The same by env id."""
        raise NotImplementedError

    def load_state_dict(self, state: Settings) -> None:
        """Restore what `state_dict` returned; reset the environments afterwards."""
        if state["envs"]:
            self.ask_all("load_env_states", state["envs"])


# ---- vector steps -------------------------------------------------------------------------------


def vector_step(obs: Obs, step: GroupStep, count: int, strict: bool = True) -> VectorStep:
    """Columns of a group's step.

    Args:
        obs: The observations as columns.
        step: Everything else.
        count: The number of the manager's step, for the message of an error.
        strict: Whether rewards have to be numbers or arrays of one shape.

    Raises:
        EnvDataError: NaN or infinity in rewards, NaN in observations; names the environment.
    """
    reward, nan_at = reward_column(step.ids, step.rewards, strict), nan_position(obs)
    if nan_at is not None or not math.isfinite(sum_of_squares(reward)):
        _refuse_numbers(step.ids, reward, nan_at, count)
    done, truncated = np.zeros(len(step.ids), bool), np.zeros(len(step.ids), bool)
    infos = {}
    for env_id in (*step.ended, *step.abnormal):
        at = step.ids.index(env_id)
        infos[env_id] = info = step.infos[at]
        if env_id in step.ended:
            done[at] = True
            truncated[at] = is_truncated(info if isinstance(info, Mapping) else info[0])
    env_ids = np.array(step.ids, np.int64)
    abnormal = np.isin(env_ids, step.abnormal) if step.abnormal else None
    return VectorStep(env_ids, obs, reward, done, truncated, abnormal, infos)


def _refuse_numbers(
    env_ids: Sequence[int], reward: np.ndarray, nan_at: int | None, count: int
) -> None:
    """Raise for the first reward that is not finite, or the observation with NaN."""
    finite = np.isfinite(reward).reshape(len(env_ids), -1).all(axis=1)
    if not finite.all():
        nan_at = int(finite.argmin())
        is_nan = np.isnan(reward[nan_at]).any()
        what = f"reward {reward[nan_at]}" + " (NaN or None)" * bool(is_nan)
    elif nan_at is None:
        return  # the squares of finite rewards have overflowed
    else:
        what = "an observation with NaN"
    raise EnvDataError(
        f"env {env_ids[nan_at]} gave {what} at the env manager's step {count}; nothing can be "
        "learned from it: look into the environment and its wrappers",
        env_ids[nan_at],
    )


def reward_column(
    env_ids: Sequence[int], rewards: Sequence[Reward] | np.ndarray, strict: bool = True
) -> np.ndarray:
    """float32 ``[n]`` or ``[n, players]``; zeros, unless `strict`, if there are other rewards.

    Raises:
        EnvDataError: A reward is no number; names the environment.
    """
    try:
        column = np.array(rewards, np.float32)
    except (TypeError, ValueError) as error:
        faults = list(map(reward_fault, rewards))
        if not any(faults) and all(np.size(reward) == 1 for reward in rewards):
            # some numbers, some arrays
            return np.array([np.ravel(reward)[0] for reward in rewards], np.float32)
        if not strict:
            return np.zeros(len(rewards), np.float32)
        for env_id, fault in zip(env_ids, faults):
            if fault is not None:
                raise EnvDataError(f"env {env_id}: {fault}", env_id) from None
        shapes = [np.shape(reward) for reward in rewards]
        raise DataError(
            f"rewards of shapes {shapes} do not make a column: each has to be a number, or an "
            "array of one number per player"
        ) from error
    if column.ndim > 1 and column.shape[-1] == 1:
        return column[..., 0]
    return column
