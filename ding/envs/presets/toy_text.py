"""Gymnasium's tasks on small grids, whose states networks read as features of 0 and 1."""

from collections.abc import Mapping
from typing import Any

from ding.envs.env._ids import newest_id
from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.utils.registry_factory import ENV_REGISTRY


@ENV_REGISTRY.register("taxi")
class TaxiEnv(GymnasiumEnv):
    """``Taxi``; observations float32 ``[34]``: cell, passenger's place and goal, one-hot."""

    default_id = newest_id("Taxi")

    @classmethod
    def inner_wrappers(cls, cfg: Mapping[str, Any], caller: str) -> list[Any]:
        return [{"type": "taxi_obs"}]


@ENV_REGISTRY.register("frozen_lake")
class FrozenLakeEnv(GymnasiumEnv):
    """``FrozenLake-v1``; observations float32 ``[16]``, one-hot (8x8: ``[64]``).

    Config keys:
        desc: The map's rows, instead of `map_name`.
        map_name: ``4x4`` or ``8x8``.
        is_slippery: Whether a third of the steps each goes to the left or right of what was chosen.
    """

    default_id = "FrozenLake-v1"
    config = {**GymnasiumEnv.config, "desc": None, "map_name": None, "is_slippery": None}

    @classmethod
    def make_kwargs(cls, cfg: Mapping[str, Any]) -> dict[str, Any]:
        names = ("desc", "map_name", "is_slippery")
        return {name: cfg[name] for name in names if cfg[name] is not None}

    @classmethod
    def inner_wrappers(cls, cfg: Mapping[str, Any], caller: str) -> list[Any]:
        return [{"type": "one_hot_obs"}]


@ENV_REGISTRY.register("cliffwalking")
class CliffWalkingEnv(GymnasiumEnv):
    """``CliffWalking`` with a limit of 300 steps; observations float32 ``[48]``, one-hot."""

    default_id = newest_id("CliffWalking")
    config = {**GymnasiumEnv.config, "max_episode_steps": 300}

    @classmethod
    def inner_wrappers(cls, cfg: Mapping[str, Any], caller: str) -> list[Any]:
        return [{"type": "one_hot_obs"}]
