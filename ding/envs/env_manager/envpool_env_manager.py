"""Environments that envpool steps in its threads."""

import importlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from easydict import EasyDict
from gymnasium import spaces

from ding.envs.env.gymnasium_env import GymnasiumEnv
from ding.envs.env_manager._runner import EnvRunner
from ding.envs.env_manager._vector_runner import Answers, VectorLibrary, VectorRunner
from ding.envs.env_manager.base_env_manager import BaseEnvManager
from ding.envs.vector_step import AnyEnv, EnvFn
from ding.utils import ENV_MANAGER_REGISTRY
from ding.utils.errors import ConfigError, EnvError
from ding.utils.types import Config, Settings

__all__ = ["PoolEnvManager"]

_POSITIONS = ("env_id", "players")  # whose answers a batch holds
_PER_GREY = np.float32(1 / 255)  # as the wrapper scaled_float_frame


@ENV_MANAGER_REGISTRY.register("env_pool")
class PoolEnvManager(BaseEnvManager):
    """Steps environments of ``envpool``, which is not installed with this package.

    With an env type over gymnasium (``atari``, ``mujoco``, ``gymnasium``, ...) the pool makes its
    ``env_id``: keys of ``atari`` set EnvPool's own preprocessing, observations are float32
    (pictures in [0, 1]), and actions are scaled and clipped as the type does. Wrappers of Python
    are refused.

    A step returns when `batch_size` environments have answered, which need not be those that got
    actions unless it is `env_num`; each starts its next episode by itself and sits out that step.
    A reset returns when as many batches have answered as the environments fill.

    Config keys:
        env_id: The task as EnvPool names it; ``None`` for that of `env_fn`.
        env_num: Number of environments.
        batch_size: How many answers a step waits for; ``None`` for those of all environments, which
            are collected in columns, and fastest where steps take equally long.
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
        if cfg.batch_size is None:
            cfg.batch_size = cfg.env_num
        elif env_fn is not None:
            cfg.batch_size = min(cfg.batch_size, cfg.env_num)
        if not 1 <= cfg.batch_size <= cfg.env_num:
            raise ConfigError(
                f"env.manager.batch_size is {cfg.batch_size}; expected 1 to env_num = {cfg.env_num}"
            )
        self._task = _task_of(cfg, env_fn)
        super().__init__([partial(self._make_library, 1, 1)] * cfg.env_num, cfg)
        self.in_lockstep = cfg.batch_size == cfg.env_num

    def seed(
        self, seed: dict[int, int] | list[int] | int, dynamic_seed: bool | None = None
    ) -> None:
        """Set the seed of the next launch: one number, of a list or dict the first."""
        first = next(iter(seed.values())) if isinstance(seed, Mapping) else seed
        first = first[0] if isinstance(first, Sequence) else first
        super().seed(int(first))

    def _make_runner(self) -> EnvRunner:
        cfg = self._cfg
        seed = {"seed": self._seeds[0][0]} if self._seeds else {}
        return VectorRunner(self._make_library(cfg.env_num, cfg.batch_size, **seed), self._settings)

    def _make_library(self, env_num: int, batch_size: int, **seed: int) -> "_Pool":
        pool = _make_pool(self._task.arguments, env_num, batch_size, **seed)
        return _Pool(pool, env_num, batch_size, self._task)


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


class _Pool(VectorLibrary):
    """EnvPool's API; the step after an episode's end only resets."""

    def __init__(self, library: AnyEnv, env_num: int, batch_size: int, task: _Task) -> None:
        super().__init__(library, env_num, batch_size)
        self._task, space = task, self.observation_space
        self._is_picture = isinstance(space, spaces.Box) and space.dtype == np.uint8
        if task.converts and isinstance(space, spaces.Box):
            low, high = space.low.astype(np.float32), space.high.astype(np.float32)
            scale = _PER_GREY if self._is_picture else np.float32(1)
            self.observation_space = spaces.Box(low * scale, high * scale, dtype=np.float32)
        self._own_actions = self.action_space
        if task.scales_actions and isinstance(self._own_actions, spaces.Box):
            self.action_space = spaces.Box(-1.0, 1.0, self._own_actions.shape, np.float32)

    def reset(self, options: Config) -> None:
        self.library.async_reset()

    def send(self, actions: np.ndarray, ids: np.ndarray) -> None:
        space = self._own_actions
        if isinstance(space, spaces.Box):
            if self._task.scales_actions:
                actions = space.low + (actions + 1) * (space.high - space.low) / 2
            if self._task.clips_actions:
                actions = actions.clip(space.low, space.high)
            actions = actions.astype(space.dtype, copy=False)
        self.library.send(actions, ids.astype(np.int32))

    def receive(self) -> Answers:
        obs, reward, terminated, truncated, infos = self.library.recv()
        others = {name: values for name, values in infos.items() if name not in _POSITIONS}
        if self._task.converts and isinstance(self.observation_space, spaces.Box):
            obs = obs.astype(np.float32)
            if self._is_picture:
                obs *= _PER_GREY
        return Answers(infos["env_id"], obs, reward, terminated, truncated, others)


def _make_pool(arguments: Config, env_num: int, batch_size: int, **seed: int) -> AnyEnv:
    what = f"cannot make the envpool of env_id={arguments['task_id']!r}"
    try:
        make = importlib.import_module("envpool").make
    except ImportError as error:
        raise EnvError(f"{what}: {error}; pip install 'ding[envpool]'") from error
    counts = {"num_envs": env_num, "batch_size": batch_size}
    try:
        return make(env_type="gymnasium", **counts, **{**seed, **arguments})
    except Exception as error:
        raise EnvError(f"{what}: {type(error).__name__}: {error}") from error
