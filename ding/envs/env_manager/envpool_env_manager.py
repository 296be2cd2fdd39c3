"""Environments that envpool steps in its threads."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.env_manager._runner import EnvRunner
from ding.envs.env_manager._vector_runner import Answers, VectorLibrary, VectorRunner
from ding.envs.env_manager.base_env_manager import BaseEnvManager
from ding.envs.vector_step import Config, Settings
from ding.utils import ENV_MANAGER_REGISTRY
from ding.utils.errors import ConfigError, EnvError

__all__ = ["PoolEnvManager"]

_POSITIONS = ("env_id", "players")  # whose answers a batch holds


@ENV_MANAGER_REGISTRY.register("env_pool")
class PoolEnvManager(BaseEnvManager):
    """Steps environments of ``envpool``, which is not installed with this package.

    A step returns when `batch_size` environments have answered, which need not be those that got
    actions unless it is `env_num`; each starts its next episode by itself and sits out that step.
    A reset returns when as many batches have answered as the environments fill.

    Config keys:
        env_id: The task that envpool makes.
        env_num: Number of environments.
        batch_size: How many answers a step waits for.
        kwargs: Further arguments of ``envpool.make``.
        episode_num: Episodes that each environment plays before it is done for good.
    """

    config: Config = {
        "type": "env_pool",
        "env_id": None,
        "env_num": 8,
        "batch_size": 8,
        "kwargs": {},
        "episode_num": float("inf"),
    }

    def __init__(self, cfg: EasyDict, env_fn: Sequence[Callable[..., Any]] | None = None) -> None:
        """
        Args:
            cfg: See the class.
            env_fn: Its length sets how many environments there are; envpool makes its own.
        """
        cfg = EasyDict({**self.default_config(), **cfg})
        if not cfg.get("env_id"):
            raise ConfigError("env.manager.env_id is missing: name a task that envpool knows")
        if env_fn is not None:
            cfg.env_num = len(env_fn)
            cfg.batch_size = min(cfg.batch_size, cfg.env_num)
        if not 1 <= cfg.batch_size <= cfg.env_num:
            raise ConfigError(
                f"env.manager.batch_size is {cfg.batch_size}; expected 1 to env_num = {cfg.env_num}"
            )
        super().__init__([partial(_make_pool, cfg, 1, 1)] * cfg.env_num, cfg)
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
        pool = _make_pool(cfg, cfg.env_num, cfg.batch_size, **seed)
        return VectorRunner(_Pool(pool, cfg.env_num, cfg.batch_size), self._settings)


class _Pool(VectorLibrary):
    """EnvPool's API; the step after an episode's end only resets."""

    def reset(self, options: Config) -> None:
        self.library.async_reset()

    def send(self, actions: np.ndarray, ids: np.ndarray) -> None:
        self.library.send(actions, ids.astype(np.int32))

    def receive(self) -> Answers:
        obs, reward, terminated, truncated, infos = self.library.recv()
        others = {name: values for name, values in infos.items() if name not in _POSITIONS}
        return Answers(infos["env_id"], obs, reward, terminated, truncated, others)


def _make_pool(cfg: Settings, env_num: int, batch_size: int, **seed: int) -> Any:
    what = f"cannot make the envpool of env.manager.env_id={cfg['env_id']!r}"
    try:
        make = importlib.import_module("envpool").make
    except ImportError as error:
        raise EnvError(f"{what}: {error}; pip install 'ding[envpool]'") from error
    try:
        return make(
            task_id=cfg["env_id"],
            env_type="gymnasium",
            num_envs=env_num,
            batch_size=batch_size,
            **{**seed, **cfg["kwargs"]},
        )
    except Exception as error:
        raise EnvError(f"{what}: {type(error).__name__}: {error}") from error
