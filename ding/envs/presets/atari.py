"""Atari games of the Arcade Learning Environment."""

from collections.abc import Mapping
from typing import Any

from ding.envs.env._ids import ALE
from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.envs.env_wrappers import preset_wrappers
from ding.utils.registry_factory import ENV_REGISTRY


@ENV_REGISTRY.register("atari")
class AtariEnv(GymnasiumEnv):
    """A game as in Mnih et al. (2015): observations float32 ``[frame_stack, 84, 84]`` in [0, 1].

    Episodes start with up to 30 no-ops, an action is repeated for four frames, and the last two of
    them are shown as one grey picture. In collectors' environments an episode ends with a life and
    rewards are their signs; evaluations play whole games for the game's own score.

    Config keys:
        env_id: ``PongNoFrameskip-v4`` or ``ALE/Pong-v5``; here both show every frame.
        frame_stack: How many pictures are one observation. (``fram_stack``, as some configs have)
        clip_rewards: Whether collectors' rewards are their signs.
        env_wrapper: Takes the place of all of these wrappers but the stack.
    """

    example_id = "PongNoFrameskip-v4"
    needs = ALE
    config = {**GymnasiumEnv.config, "frame_stack": 4, "fram_stack": None, "clip_rewards": True}

    def __init__(self, cfg: dict) -> None:
        if cfg.get("fram_stack"):
            cfg = {**cfg, "frame_stack": cfg["fram_stack"]}
        super().__init__(cfg)

    @classmethod
    def make_kwargs(cls, cfg: Mapping[str, Any]) -> dict[str, Any]:
        # The skipping is the wrapper's, which sees all frames.
        skip = {"frameskip": 1} if cls.gymnasium_id(cfg).startswith("ALE/") else {}
        return skip if cfg.get("env_wrapper") else {**skip, "obs_type": "grayscale"}

    @classmethod
    def inner_wrappers(cls, cfg: Mapping[str, Any], caller: str) -> list[Any]:
        if cfg.get("env_wrapper"):
            return []
        left_out = ["frame_stack"] if cfg["clip_rewards"] else ["frame_stack", "clip_reward"]
        usual = preset_wrappers("atari_default", caller)
        return [wrapper for wrapper in usual if wrapper["type"] not in left_out]
