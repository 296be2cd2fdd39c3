"""Environments of gymnasium and of the packages that register theirs with it."""

import importlib
import math
import re
from functools import partial

import gymnasium
import numpy as np

from ding.envs.env._make import ALE, BOX2D, MINIGRID, MUJOCO, newest_id, simulator_of
from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.envs.env_wrappers import preset_wrappers
from ding.envs.env_wrappers.build import WrapperEntry
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import ENV_REGISTRY
from ding.utils.types import Config, Settings

_CLIPPED: Config = {**GymnasiumEnv.config, "clip_action": True}

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
    def inner_wrappers(cls, cfg: Settings, caller: str) -> list[WrapperEntry]:
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


# ---- MuJoCo ------------------------------------------------------------------------------------


@ENV_REGISTRY.register("mujoco")
class MujocoEnv(GymnasiumEnv):
    """``HalfCheetah-v5``, ``Hopper-v4``, ...; actions beyond the bounds are clipped.

    Versions 0 to 3 become version 4, which has their rewards and observations.
    """

    example_id = "HalfCheetah-v5"
    needs = MUJOCO
    config = _CLIPPED

    @classmethod
    def gymnasium_id(cls, cfg: Settings) -> str:
        env_id = super().gymnasium_id(cfg)
        if env_id.endswith(("BulletEnv-v0", "PyBulletEnv-v0")):
            raise ConfigError(
                f"env.env_id={env_id!r} is an environment of pybullet, which this package does not "
                f"have; the one of MuJoCo: {env_id.partition('Bullet')[0]}-v5"
            )
        return env_id


#: First word of a data set's name to the task that it was collected in.
_D4RL_TASKS = {
    "halfcheetah": "HalfCheetah-v4",
    "hopper": "Hopper-v4",
    "walker2d": "Walker2d-v4",
    "ant": "Ant-v3",  # with the observations of the version that D4RL used
}


@ENV_REGISTRY.register("d4rl")
class D4RLEnv(MujocoEnv):
    """The task that a D4RL data set of MuJoCo was collected in; for evaluations.

    Config keys:
        env_id: A data set's name, such as ``hopper-medium-expert-v2``, or an id of gymnasium.
    """

    example_id = "hopper-medium-v2"

    @classmethod
    def gymnasium_id(cls, cfg: Settings) -> str:
        name = super().gymnasium_id(cfg)
        task = _D4RL_TASKS.get(name.partition("-")[0])
        if task is None and simulator_of(name) is not MUJOCO:
            raise ConfigError(
                f"env.env_id={name!r}: the task of this data set is not there; those of "
                f"{', '.join(_D4RL_TASKS)} are. For another one, name its environment: "
                "create_config.env=dict(type='gymnasium') with main_config.env.env_id"
            )
        return task or name

    @classmethod
    def says(cls, cfg: Settings) -> list[str]:
        if not cfg.get("env_id"):
            return []
        return [f"env.env_id={cfg.get('env_id')!r}: evaluations are in {cls.gymnasium_id(cfg)!r}"]


# ---- MiniGrid ----------------------------------------------------------------------------------


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
    def inner_wrappers(cls, cfg: Settings, caller: str) -> list[WrapperEntry]:
        if cfg["flat_obs"]:
            return [partial(_seen_by, "FlatObsWrapper")]
        return [partial(_seen_by, "ImgObsWrapper"), {"type": "channel_first"}]


def _seen_by(wrapper: str, env: gymnasium.Env) -> gymnasium.Env:
    made = getattr(importlib.import_module("minigrid.wrappers"), wrapper)(env)
    return gymnasium.wrappers.DtypeObservation(made, np.float32)


# ---- Atari -------------------------------------------------------------------------------------


@ENV_REGISTRY.register("atari")
class AtariEnv(GymnasiumEnv):
    """A game as in Mnih et al. (2015): observations float32 ``[frame_stack, 84, 84]`` in [0, 1].

    Episodes start with up to 30 no-ops, an action is repeated for four frames, and the last two of
    them are shown as one grey picture. In collectors' environments an episode ends with a life and
    rewards are their signs; evaluations play whole games for the game's own score.

    Config keys:
        env_id: ``PongNoFrameskip-v4``, or ``ALE/Pong-v5`` (``Pong-v5``), which repeats the action
            before in a quarter of all frames; here both show every frame.
        frame_stack: How many pictures are one observation. (``fram_stack``, as some configs have)
        clip_rewards: Whether collectors' rewards are their signs.
        env_wrapper: Takes the place of all of these wrappers but the stack.
    """

    example_id = "PongNoFrameskip-v4"
    needs = ALE
    config = {**GymnasiumEnv.config, "frame_stack": 4, "fram_stack": None, "clip_rewards": True}

    def __init__(self, cfg: Config) -> None:
        if cfg.get("fram_stack"):
            cfg = {**cfg, "frame_stack": cfg["fram_stack"]}
        super().__init__(cfg)

    @classmethod
    def gymnasium_id(cls, cfg: Settings) -> str:
        env_id = super().gymnasium_id(cfg)
        return f"ALE/{env_id}" if env_id.endswith("-v5") and "/" not in env_id else env_id

    @classmethod
    def pool_kwargs(cls, cfg: Settings) -> Config:
        """EnvPool's own preprocessing, with the same frames, rewards and ends.

        Four differences: EnvPool fires within its no-ops, not after them; shows another picture
        where an episode ends before an action's fourth frame; where a life begins in a
        collector's game, keeps the pictures of the life before in the stack; and counts steps
        towards ``max_episode_steps`` from the no-ops on.
        """
        env_id, collects = cls.gymnasium_id(cfg), cls.caller_of(cfg) == "collector"
        is_usual = cfg["env_wrapper"] in (None, [], "atari_default")
        cls.refuse_wrappers({**cfg, "env_wrapper": [], "frame_stack": None} if is_usual else cfg)
        frames = cfg["max_episode_steps"] or cfg["max_step"]
        # EnvPool counts actions, of four frames each.
        limits = {"max_episode_steps": math.ceil(frames / 4)} if frames else {}
        return {
            "task_id": re.sub(r"^ALE/|NoFrameskip|-v\d+$", "", env_id) + "-v5",
            **limits,
            "stack_num": cfg["fram_stack"] or cfg["frame_stack"],
            "episodic_life": collects,
            "reward_clip": collects and cfg["clip_rewards"],
            "repeat_action_probability": 0.0 if env_id.endswith("-v4") else 0.25,
            **(cfg["kwargs"] or {}),
        }

    @classmethod
    def make_kwargs(cls, cfg: Settings) -> Config:
        # The skipping is the wrapper's, which sees all frames.
        skip = {"frameskip": 1} if cls.gymnasium_id(cfg).startswith("ALE/") else {}
        return skip if cfg.get("env_wrapper") else {**skip, "obs_type": "grayscale"}

    @classmethod
    def inner_wrappers(cls, cfg: Settings, caller: str) -> list[WrapperEntry]:
        if cfg.get("env_wrapper"):
            return []
        left_out = ["frame_stack"] if cfg["clip_rewards"] else ["frame_stack", "clip_reward"]
        usual = preset_wrappers("atari_default", caller)
        return [wrapper for wrapper in usual if wrapper["type"] not in left_out]
