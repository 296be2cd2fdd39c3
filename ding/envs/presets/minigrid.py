"""Minigrid's tasks on grids that are seen in part."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from ding.envs.env._ids import MINIGRID
from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.utils.registry_factory import ENV_REGISTRY


@ENV_REGISTRY.register("minigrid")
class MiniGridEnv(GymnasiumEnv):
    """``MiniGrid-Empty-8x8-v0``, ...; the reward of success is 1, less by the time it took.

    Config keys:
        flat_obs: Observations float32 ``[2835]``, the cells in sight and the mission's letters
            one-hot; if false, the cells alone, float32 ``[3, 7, 7]``.
        max_step: A limit of steps, where it is less than the task's own.
    """

    example_id = "MiniGrid-Empty-8x8-v0"
    needs = MINIGRID
    config = {**GymnasiumEnv.config, "flat_obs": True}

    @classmethod
    def inner_wrappers(cls, cfg: Mapping[str, Any], caller: str) -> list[Any]:
        return [_flat] if cfg["flat_obs"] else [_cells, {"type": "channel_first"}]


def _flat(env: gymnasium.Env) -> gymnasium.Env:
    from minigrid.wrappers import FlatObsWrapper

    return gymnasium.wrappers.DtypeObservation(FlatObsWrapper(env), np.float32)


def _cells(env: gymnasium.Env) -> gymnasium.Env:
    from minigrid.wrappers import ImgObsWrapper

    return gymnasium.wrappers.DtypeObservation(ImgObsWrapper(env), np.float32)
