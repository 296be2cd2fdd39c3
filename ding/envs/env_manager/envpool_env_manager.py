"""Environments that envpool steps in its threads."""

import importlib
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from easydict import EasyDict
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.envs.env_manager._runner import EnvRunner
from ding.envs.env_manager._vector_runner import VectorRunner
from ding.envs.env_manager.base_env_manager import BaseEnvManager
from ding.envs.vector_step import AnyEnv, EnvFn, Info, Obs
from ding.utils import ENV_MANAGER_REGISTRY
from ding.utils.errors import ConfigError, EnvError
from ding.utils.types import Config, Settings

__all__ = ["PoolEnvManager"]

_POSITIONS = ("env_id", "players")  # whose answers a batch holds


@ENV_MANAGER_REGISTRY.register("env_pool")
class PoolEnvManager(BaseEnvManager):
    """Steps environments of ``envpool``, which is not installed with this package.

    With an env type over gymnasium (``atari``, ``mujoco``, ``gymnasium``, ...) the pool makes its
    ``env_id``: keys of ``atari`` set EnvPool's own preprocessing, observations are float32
    (pictures in [0, 1]), and actions are scaled and clipped as the type does. Wrappers of Python
    are refused.

    All environments are stepped at once, and each starts its next episode by itself: it sits out
    the step after its episode's end. The pool takes the seed of environment 0.

    Config keys:
        env_id: The task as EnvPool names it; ``None`` for that of `env_fn`.
        env_num: Number of environments.
        batch_size: Accepted for old configs: a step waits for all environments.
        kwargs: Further arguments of ``envpool.make``.
        episode_num: Episodes that each environment plays before it is done for good.
    """

    config: Config = {
        "type": "env_pool",
        "env_id": None,
        "env_num": 8,
        "batch_size": None,
        "kwargs": {},
        "episode_num": float("inf"),
    }

    def __init__(self, cfg: EasyDict, env_fn: Sequence[EnvFn] | None = None) -> None:
        """
        Args:
            cfg: See the class.
            env_fn: Its length sets how many environments there are; envpool makes its own.
        """
        cfg = EasyDict({**self.default_config(), **cfg})
        if env_fn is not None:
            cfg.env_num = len(env_fn)
        self._task = _task_of(cfg, env_fn)
        super().__init__([partial(_make_pool, self._task, 1)] * cfg.env_num, cfg)

    def enable_save_replay(self, replay_path: list[str] | str) -> None:
        """Refused with an `EnvError`: envpool draws no pictures."""
        raise EnvError(
            "env_manager 'env_pool' saves no videos, as envpool draws no pictures: use env_manager "
            "'base' or 'subprocess' for them"
        )

    def _make_runner(self) -> EnvRunner:
        seed = {"seed": self._seeds[0][0]} if 0 in self._seeds else {}
        return VectorRunner(_make_pool(self._task, self._env_num, **seed), self._settings, {})


class _Task(NamedTuple):
    """What a pool makes, and how its numbers become those of an env type."""

    arguments: Config  # of envpool.make, `task_id` among them
    converts: bool = False  # to observations as `DingEnvWrapper` has them
    scales_actions: bool = False
    clips_actions: bool = False


def _task_of(cfg: Settings, env_fn: Sequence[EnvFn] | None) -> _Task:
    """From ``env.manager.env_id``, or from the type and config that `env_fn` makes."""
    if cfg["env_id"]:
        return _Task({"task_id": cfg["env_id"], **cfg["kwargs"]})
    made = env_fn[0] if env_fn else None
    if (
        not isinstance(made, partial)
        or not isinstance(made.func, type)
        or not issubclass(made.func, GymnasiumEnv)
    ):
        raise ConfigError(
            "env.manager.env_id is missing: name a task that envpool knows, or take an env type "
            f"over gymnasium, such as 'atari', instead of {made}"
        )
    kind: type[GymnasiumEnv] = made.func
    of_env = {**kind.config, **(made.keywords.get("cfg") or made.args[0])}
    return _Task(
        {**kind.pool_kwargs(of_env), **cfg["kwargs"]},
        converts=True,
        scales_actions=bool(of_env["act_scale"] or of_env["use_act_scale"]),
        clips_actions=bool(of_env["clip_action"] or of_env["action_clip"]),
    )


class _Pool(VectorEnv):
    """EnvPool as gymnasium's vector environment; the step after an episode's end only resets.

    Spaces are those of one member. It is seeded when it is made.
    """

    def __init__(self, pool: AnyEnv, env_num: int, task: _Task) -> None:
        self.num_envs = env_num
        self._pool, self._task, self._own_actions = pool, task, pool.action_space
        space, actions = pool.observation_space, pool.action_space
        self._factor = np.float32(1)
        if task.converts and isinstance(space, spaces.Box):
            if space.dtype == np.uint8:
                self._factor = np.float32(1 / 255)  # as the wrapper scaled_float_frame
            low, high = space.low.astype(np.float32), space.high.astype(np.float32)
            space = spaces.Box(low * self._factor, high * self._factor, dtype=np.float32)
        if task.scales_actions and isinstance(actions, spaces.Box):
            actions = spaces.Box(-1.0, 1.0, actions.shape, np.float32)
        self.observation_space = self.single_observation_space = space
        self.action_space = self.single_action_space = actions

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Config | None = None
    ) -> tuple[Obs, Info]:
        obs, _ = self._pool.reset()
        return self._converted(obs), {}

    def step(self, actions: np.ndarray) -> tuple[Obs, np.ndarray, np.ndarray, np.ndarray, Info]:
        space = self._own_actions
        if isinstance(space, spaces.Box):
            if self._task.scales_actions:
                actions = space.low + (actions + 1) * (space.high - space.low) / 2
            if self._task.clips_actions:
                actions = actions.clip(space.low, space.high)
            actions = actions.astype(space.dtype, copy=False)
        obs, *answer, infos = self._pool.step(actions)
        others = {name: values for name, values in infos.items() if name not in _POSITIONS}
        return self._converted(obs), *answer, others

    def _converted(self, obs: Obs) -> Obs:
        if self._task.converts and isinstance(self.observation_space, spaces.Box):
            obs = obs.astype(np.float32)
            obs *= self._factor
        return obs

    def close_extras(self, **kwargs: object) -> None:
        if hasattr(self._pool, "close"):
            self._pool.close()


def _make_pool(task: _Task, env_num: int, **seed: int) -> _Pool:
    what = f"cannot make the envpool of env_id={task.arguments['task_id']!r}"
    try:
        make = importlib.import_module("envpool").make
    except ImportError as error:
        raise EnvError(f"{what}: {error}; pip install 'ding[envpool]'") from error
    try:
        pool = make(env_type="gymnasium", num_envs=env_num, **{**seed, **task.arguments})
    except Exception as error:
        raise EnvError(f"{what}: {type(error).__name__}: {error}") from error
    return _Pool(pool, env_num, task)
