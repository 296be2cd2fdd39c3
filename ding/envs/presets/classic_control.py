"""Gymnasium's classic control tasks."""

from collections.abc import Mapping
from typing import Any

from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.utils.registry_factory import ENV_REGISTRY


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
    config = {**GymnasiumEnv.config, "clip_action": True}


@ENV_REGISTRY.register("pendulum")
class PendulumEnv(GymnasiumEnv):
    """``Pendulum-v1``; torques beyond -2 to 2 are clipped.

    Config keys:
        continuous: If false, the action is one of 11 torques, evenly from -2 to 2.
    """

    default_id = "Pendulum-v1"
    config = {**GymnasiumEnv.config, "clip_action": True, "continuous": True}

    @classmethod
    def inner_wrappers(cls, cfg: Mapping[str, Any], caller: str) -> list[Any]:
        if cfg["continuous"]:
            return []
        return [{"type": "discretize_action", "kwargs": {"bins": 11, "branches": False}}]
