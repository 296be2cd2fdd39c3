"""Gymnasium's Box2D tasks."""

from collections.abc import Mapping
from typing import Any

from ding.envs.env._ids import BOX2D
from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.utils.registry_factory import ENV_REGISTRY


@ENV_REGISTRY.register("lunarlander")
class LunarLanderEnv(GymnasiumEnv):
    """``LunarLander-v3``, or ``LunarLanderContinuous-v3`` whose throttles are clipped.

    Config keys:
        continuous: Take throttles (two numbers) in place of four actions, whatever the id says.
    """

    default_id = "LunarLander-v3"
    needs = BOX2D
    config = {**GymnasiumEnv.config, "clip_action": True, "continuous": None}

    @classmethod
    def make_kwargs(cls, cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {} if cfg["continuous"] is None else {"continuous": bool(cfg["continuous"])}


@ENV_REGISTRY.register("bipedalwalker")
class BipedalWalkerEnv(GymnasiumEnv):
    """``BipedalWalker-v3`` or ``BipedalWalkerHardcore-v3``; torques are clipped to -1 to 1."""

    default_id = "BipedalWalker-v3"
    needs = BOX2D
    config = {**GymnasiumEnv.config, "clip_action": True}


@ENV_REGISTRY.register("carracing")
class CarRacingEnv(GymnasiumEnv):
    """``CarRacing-v3``; pictures are float32 ``[3, 96, 96]`` in ``[0, 1]``.

    Config keys:
        continuous: Steering, gas and brake as numbers; if false, one of 5 actions.
    """

    default_id = "CarRacing-v3"
    needs = BOX2D
    config = {**GymnasiumEnv.config, "clip_action": True, "continuous": False}

    @classmethod
    def make_kwargs(cls, cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {"continuous": bool(cfg["continuous"])}

    @classmethod
    def inner_wrappers(cls, cfg: Mapping[str, Any], caller: str) -> list[Any]:
        return [{"type": "channel_first"}, {"type": "scaled_float_frame"}]
