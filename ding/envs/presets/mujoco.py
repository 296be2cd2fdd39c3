"""MuJoCo's tasks, and those of data sets that were collected in them."""

from collections.abc import Mapping
from typing import Any

from ding.envs.env._ids import MUJOCO, simulator_of
from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import ENV_REGISTRY


@ENV_REGISTRY.register("mujoco")
class MujocoEnv(GymnasiumEnv):
    """``HalfCheetah-v5``, ``Hopper-v4``, ...; actions beyond the bounds are clipped.

    Versions 0 to 3 become version 4, which has their rewards and observations.
    """

    example_id = "HalfCheetah-v5"
    needs = MUJOCO
    config = {**GymnasiumEnv.config, "clip_action": True}

    @classmethod
    def gymnasium_id(cls, cfg: Mapping[str, Any]) -> str:
        env_id = super().gymnasium_id(cfg)
        if env_id.endswith(("BulletEnv-v0", "PyBulletEnv-v0")):
            raise ConfigError(
                f"env.env_id={env_id!r} is an environment of pybullet, which this package does not "
                f"have; the one of MuJoCo: {env_id.partition('Bullet')[0]}-v5"
            )
        return env_id


#: First word of a data set's name to the task that it was collected in.
_TASKS = {
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
    def gymnasium_id(cls, cfg: Mapping[str, Any]) -> str:
        name = super().gymnasium_id(cfg)
        task = _TASKS.get(name.partition("-")[0])
        if task is None and simulator_of(name) is not MUJOCO:
            raise ConfigError(
                f"env.env_id={name!r}: the task of this data set is not there; those of "
                f"{', '.join(_TASKS)} are. For another one, name its environment: "
                "create_config.env=dict(type='gymnasium') with main_config.env.env_id"
            )
        return task or name

    @classmethod
    def says(cls, cfg: Mapping[str, Any]) -> list[str]:
        if not cfg.get("env_id"):
            return []
        return [f"env.env_id={cfg.get('env_id')!r}: evaluations are in {cls.gymnasium_id(cfg)!r}"]
