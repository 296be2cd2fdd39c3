"""Environments that envpool steps in threads of its own."""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.env.base_env import BaseEnvTimestep
from ding.envs.seeds import env_seeds
from ding.utils import ENV_MANAGER_REGISTRY
from ding.utils.class_config import class_config
from ding.utils.errors import ConfigError, EnvError

__all__ = ["PoolEnvManager"]


@ENV_MANAGER_REGISTRY.register("env_pool")
class PoolEnvManager:
    """The dict API of env managers over an ``envpool`` (which is not installed with this package).

    A step returns when `batch_size` environments have answered, which need not be those that got
    actions; each starts its next episode by itself.

    Config keys:
        env_id: The task that envpool makes.
        env_num: Number of environments.
        batch_size: How many answers a step waits for.
        kwargs: Further arguments of ``envpool.make``.
        episode_num: Episodes that each environment plays before it is done for good.
    """

    config: dict[str, Any] = {
        "type": "env_pool",
        "env_num": 8,
        "batch_size": 8,
        "kwargs": {},
        "episode_num": float("inf"),
    }

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class."""
        return class_config(cls)

    def __init__(self, cfg: EasyDict) -> None:
        """
        Raises:
            ConfigError: No ``env_id``, or more answers to wait for than there are environments.
        """
        self._cfg = EasyDict({**self.default_config(), **cfg})
        if not self._cfg.get("env_id"):
            raise ConfigError("env.manager.env_id is missing: name a task that envpool knows")
        self._env_num, self._batch_size = int(self._cfg.env_num), int(self._cfg.batch_size)
        if not 1 <= self._batch_size <= self._env_num:
            raise ConfigError(
                f"env.manager.batch_size is {self._batch_size}; expected 1 to env_num = "
                f"{self._env_num}"
            )
        self._seed: int | None = None
        self._envs: Any = None
        self._ready: dict[int, Any] = {}
        self._forget()

    def _forget(self) -> None:
        self._ready.clear()
        self._returns = np.zeros(self._env_num)
        self._episodes = np.zeros(self._env_num, np.int64)
        self._begins = np.zeros(self._env_num, bool)  # its next answer is a first observation

    # ---- life ---------------------------------------------------------------------------------

    def launch(self) -> None:
        """Make the environments and reset them.

        Raises:
            EnvError: envpool is missing, or cannot make the task.
        """
        if not self.closed:
            raise EnvError("the env manager is launched already; close() it before another launch")
        seed = {} if self._seed is None else {"seed": self._seed}
        try:
            envpool = importlib.import_module("envpool")
            self._envs = envpool.make(
                task_id=self._cfg.env_id,
                env_type="gymnasium",
                num_envs=self._env_num,
                batch_size=self._batch_size,
                **{**seed, **self._cfg.kwargs},
            )
        except ImportError as error:
            text = f"cannot make the envpool of {self._cfg.env_id!r}: {error}; pip install envpool"
            raise EnvError(text) from error
        self.reset()

    def reset(self) -> None:
        """Start new episodes in all environments, and count them anew."""
        self._require_launched()
        self._forget()
        self._envs.async_reset()
        while len(self._ready) < self._env_num:
            obs, *_, info = self._envs.recv()
            self._take_obs(obs, info["env_id"])

    def close(self) -> None:
        """Close the environments. May be called more than once."""
        envs, self._envs = self._envs, None
        self._ready.clear()
        if envs is not None and hasattr(envs, "close"):
            envs.close()

    @property
    def closed(self) -> bool:
        return self._envs is None

    def seed(
        self, seed: int | list[int] | dict[int, int], dynamic_seed: bool | None = None
    ) -> None:
        """Set the seed of the next launch.

        Args:
            seed: envpool takes one number and spawns its environments' from it; of a list or dict
                that is the first.
            dynamic_seed: envpool's episodes always differ.
        """
        if isinstance(seed, Mapping):
            seed = list(seed.values())
        first = seed[0] if isinstance(seed, list) else seed
        self._seed = env_seeds(int(first), "envpool", 1)[0]

    # ---- steps --------------------------------------------------------------------------------

    @property
    def env_num(self) -> int:
        return self._env_num

    @property
    def ready_obs(self) -> dict[int, Any]:
        """Env id to observation of the environments that wait for an action."""
        return {i: o for i, o in self._ready.items() if self._episodes[i] < self._cfg.episode_num}

    @property
    def ready_obs_id(self) -> list[int]:
        return list(self.ready_obs)

    @property
    def done(self) -> bool:
        """Whether all environments have played their ``episode_num`` episodes."""
        return bool((self._episodes >= self._cfg.episode_num).all())

    def step(self, actions: dict[int, Any]) -> dict[int, BaseEnvTimestep]:
        """Step environments that wait for an action; returns timesteps of those that answered.

        Raises:
            EnvError: An environment does not wait for an action.
        """
        self._require_launched()
        for env_id in actions:
            if env_id not in self._ready:
                raise EnvError(f"env {env_id} does not wait for an action", env_id)
        timesteps: dict[int, BaseEnvTimestep] = {}
        self._send(actions)
        while not timesteps:
            timesteps = self._received(*self._envs.recv())
        return timesteps

    def _send(self, actions: Mapping[int, Any]) -> None:
        ids = np.array(list(actions), np.int32)
        for env_id in actions:
            del self._ready[env_id]
        space = self._envs.action_space
        batch = np.array(list(actions.values())).reshape(len(ids), *space.shape)
        if len(ids):
            self._envs.send(batch.astype(space.dtype, copy=False), ids)

    def _received(
        self, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any
    ) -> dict[int, BaseEnvTimestep]:
        timesteps = {}
        ids = np.asarray(info["env_id"])
        first = {int(i): obs[p] for p, i in enumerate(ids) if self._begins[i]}
        for position, env_id in enumerate(ids.tolist()):
            if env_id in first:  # the answer to the step that only reset it
                self._begins[env_id] = False
                continue
            self._returns[env_id] += reward[position]
            done = bool(terminated[position] or truncated[position])
            own: dict[str, Any] = {}
            if done:
                own = {
                    "eval_episode_return": float(self._returns[env_id]),
                    "terminated": bool(terminated[position]),
                    "truncated": not terminated[position],
                }
                self._returns[env_id] = 0.0
                self._episodes[env_id] += 1
                self._begins[env_id] = True
            value = np.array([reward[position]], np.float32)
            timesteps[env_id] = BaseEnvTimestep(np.array(obs[position]), value, done, own)
        self._take_obs(obs, ids)
        ended = {
            i: np.zeros(self._envs.action_space.shape) for i in ids.tolist() if self._begins[i]
        }
        self._send(ended)  # envpool resets in the step after an episode's end
        return timesteps

    def _take_obs(self, obs: Any, ids: Any) -> None:
        self._ready.update({int(env_id): np.array(obs[p]) for p, env_id in enumerate(ids)})

    def _require_launched(self) -> None:
        if self.closed:
            raise EnvError("the env manager is closed or was not launched yet; call launch() first")

    # ---- spaces -------------------------------------------------------------------------------

    @property
    def observation_space(self) -> Any:
        self._require_launched()
        return self._envs.observation_space

    @property
    def action_space(self) -> Any:
        self._require_launched()
        return self._envs.action_space
