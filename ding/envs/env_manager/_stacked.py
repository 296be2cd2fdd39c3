"""The stacked form of the dict API, for the managers of the second version."""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

from ding.envs.env_manager._obs_store import stack
from ding.utils.errors import DataError

EnvIdTimestep = namedtuple("EnvIdTimestep", ["obs", "reward", "done", "info", "env_id"])


def stacked_ready_obs(obs: Mapping[int, Any]) -> Any:
    """Observations by env id as one array (or dict of arrays) in the order of the ids."""
    return stack(list(obs.values()))


def actions_by_id(actions: Any, ready_ids: Sequence[int]) -> dict[int, Any]:
    """Actions in the order of `ready_ids`, by id; a dict is taken as it is.

    Raises:
        DataError: Not one action for each ready environment.
    """
    if isinstance(actions, Mapping):
        return dict(actions)
    if len(actions) != len(ready_ids):
        raise DataError(
            f"{len(actions)} actions came for the {len(ready_ids)} ready environments {ready_ids}"
        )
    return dict(zip(ready_ids, actions))


def with_env_ids(timesteps: Mapping[int, Any]) -> list[EnvIdTimestep]:
    return [EnvIdTimestep(t.obs, t.reward, t.done, t.info, i) for i, t in timesteps.items()]
