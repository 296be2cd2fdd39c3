"""Gymnasium's own tasks: classic control, Box2D, and small grids."""

from collections.abc import Mapping
from typing import Any

from ding.envs.env._ids import BOX2D, newest_id
from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.utils.registry_factory import ENV_REGISTRY

_CLIPPED: dict[str, Any] = {**GymnasiumEnv.config, "clip_action": True}

# ---- classic control -----------------------------------------------------------------------------


@ENV_REGISTRY.register("cartpole")
class CartPoleEnv(GymnasiumEnv):
    """``CartPole-v1``; ``CartPole-v0`` ends after 200 steps instead of 500."""

    default_id = "CartPole-v1"


@ENV_REGISTRY.register("acrobot")
class AcrobotEnv(GymnasiumEnv):
    """``Acrobot-v1``: two links are to swing up."""

    default_id = "Acrobot-v1"


@ENV_REGISTRY.register("mountain_car")
class MountainCarEnv(GymnasiumEnv):
    """``MountainCar-v0``, or ``MountainCarContinuous-v0`` whose force is clipped to -1 to 1."""

    default_id = "MountainCar-v0"
    config = _CLIPPED


@ENV_REGISTRY.register("pendulum")
class PendulumEnv(GymnasiumEnv):
    """``Pendulum-v1``; torques beyond -2 to 2 are clipped.

    Config keys:
        continuous: If false, the action is one of 11 torques, evenly from -2 to 2.
    """

    default_id = "Pendulum-v1"
    config = {**_CLIPPED, "continuous": True}

    @classmethod
    def inner_wrappers(cls, cfg: Mapping[str, Any], caller: str) -> list[Any]:
        if cfg["continuous"]:
            return []
        return [{"type": "discretize_action", "kwargs": {"bins": 11, "branches": False}}]


# ---- Box2D ---------------------------------------------------------------------------------------


@ENV_REGISTRY.register("lunarlander")
class LunarLanderEnv(GymnasiumEnv):
    """``LunarLander-v3``, or ``LunarLanderContinuous-v3`` whose throttles are clipped.

    Config keys:
        continuous: Take throttles (two numbers) in place of four actions, whatever the id says.
    """

    default_id = "LunarLander-v3"
    needs = BOX2D
    config = {**_CLIPPED, "continuous": None}
    make_keys = ("continuous",)


@ENV_REGISTRY.register("bipedalwalker")
class BipedalWalkerEnv(GymnasiumEnv):
    """``BipedalWalker-v3`` or ``BipedalWalkerHardcore-v3``; torques are clipped to -1 to 1."""

    default_id = "BipedalWalker-v3"
    needs = BOX2D
    config = _CLIPPED


@ENV_REGISTRY.register("carracing")
class CarRacingEnv(GymnasiumEnv):
    """``CarRacing-v3``; pictures are float32 ``[3, 96, 96]`` in ``[0, 1]``.

    Config keys:
        continuous: Steering, gas and brake as numbers; if false, one of 5 actions.
    """

    default_id = "CarRacing-v3"
    needs = BOX2D
    config = {**_CLIPPED, "continuous": False}
    make_keys = ("continuous",)
    wrapped_by = ("channel_first", "scaled_float_frame")


# ---- grids, whose states networks read as features of 0 and 1 ------------------------------------


@ENV_REGISTRY.register("taxi")
class TaxiEnv(GymnasiumEnv):
    """``Taxi``; observations float32 ``[34]``: cell, passenger's place and goal, one-hot."""

    default_id = newest_id("Taxi")
    wrapped_by = ("taxi_obs",)


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
    make_keys = ("desc", "map_name", "is_slippery")
    wrapped_by = ("one_hot_obs",)


@ENV_REGISTRY.register("cliffwalking")
class CliffWalkingEnv(GymnasiumEnv):
    """``CliffWalking`` with a limit of 300 steps; observations float32 ``[48]``, one-hot."""

    default_id = newest_id("CliffWalking")
    config = {**GymnasiumEnv.config, "max_episode_steps": 300}
    wrapped_by = ("one_hot_obs",)
