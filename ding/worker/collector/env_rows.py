"""The dict API of env managers, whichever of its forms a manager has.

Managers of the second version stack what others give by env id: observations come as one array, and
timesteps as a list in which each tells its ``env_id``.
"""

from collections.abc import Mapping
from typing import Any

from ding.data import tree_take


def ready_rows(env: Any) -> Mapping[int, Any]:
    """Observations of the environments that wait for an action, by env id."""
    obs = env.ready_obs
    if isinstance(obs, Mapping) and not isinstance(next(iter(obs), 0), str):
        return obs
    return {env_id: tree_take(obs, i) for i, env_id in enumerate(env.ready_obs_id)}


def step_rows(env: Any, actions: dict[int, Any]) -> Mapping[int, Any]:
    """Step environments; timesteps by env id."""
    timesteps = env.step(actions)
    if isinstance(timesteps, Mapping):
        return timesteps
    return {timestep.env_id: timestep for timestep in timesteps}
