"""The interface of a single environment, and how a config names one."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import gymnasium
import numpy as np

from ding.envs.vector_step import Action, Obs, Reward, Space, number_as_action
from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import ENV_REGISTRY
from ding.utils.types import Config, Settings

if TYPE_CHECKING:
    # `reset` and `step` have other results than gymnasium's: a checker would refuse each override.
    class _Env:
        @property
        def observation_space(self) -> Space: ...

        @property
        def action_space(self) -> Space: ...

        @property
        def reward_space(self) -> Space: ...

else:
    _Env = gymnasium.Env


class BaseEnvTimestep(NamedTuple):
    """Result of ``BaseEnv.step``: ``(obs, reward, done, info)``.

    Attributes:
        obs: The observation after it.
        reward: A number, or an array of shape ``(1,)``.
        done: Whether the episode has ended.
        info: At the end of an episode with ``eval_episode_return`` and ``truncated``. Games of
            several players have a list, one dict for each.

    Example:

        >>> from ding.envs import BaseEnvTimestep
        >>> info = {"eval_episode_return": 9.0, "truncated": False}
        >>> timestep = BaseEnvTimestep(obs=[0.5], reward=1.0, done=True, info=info)
        >>> obs, reward, done, info = timestep
    """

    obs: Obs
    reward: Reward
    done: Any
    info: Any


class BaseEnv(_Env, ABC):
    """Base class of environments: ``reset() -> obs``, ``step(action) -> BaseEnvTimestep``.

    An array handed out as observation may be the environment's own, reused by its next step: the
    env manager copies it. At the end of an episode ``info`` holds ``eval_episode_return`` (float)
    and ``truncated`` (bool), true when a limit cut an episode that could have gone on.

    Args:
        cfg: The environment's config, of ``create_collector_env_cfg``.

    Example:

        >>> import gymnasium, numpy as np
        >>> from ding.envs import BaseEnv, BaseEnvTimestep
        >>> class Coin(BaseEnv):
        ...     observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
        ...     action_space = gymnasium.spaces.Discrete(2)
        ...     reward_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
        ...     def __init__(self, cfg):
        ...         self.coin = np.random.default_rng(0)
        ...     def seed(self, seed, dynamic_seed=True):
        ...         self.coin = np.random.default_rng(seed)
        ...     def reset(self):
        ...         return np.zeros(1, np.float32)
        ...     def step(self, action):
        ...         reward = float(action == self.coin.integers(2))
        ...         info = {"eval_episode_return": reward, "truncated": False}
        ...         return BaseEnvTimestep(np.ones(1, np.float32), reward, True, info)
        ...     def close(self):
        ...         pass
        >>> env = Coin({})
        >>> env.reset(), env.step(env.random_action()).done
        (array([0.], dtype=float32), True)
    """

    timestep = BaseEnvTimestep

    @abstractmethod
    def __init__(self, cfg: Config) -> None:
        raise NotImplementedError

    @abstractmethod
    def reset(self) -> Obs:
        """Start an episode and return its first observation."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Free what the environment holds. May be called more than once."""
        raise NotImplementedError

    @abstractmethod
    def step(self, action: Action) -> BaseEnvTimestep:
        """Take one step.

        Args:
            action: An element of ``action_space``; numbers may be ints or arrays of shape ``(1,)``.

        Returns:
            ``obs`` of ``observation_space``, ``reward`` (float, or float32 ``[1]``), ``done`` and
            ``info``; see `BaseEnvTimestep`.

        Example:

            >>> from ding.envs import DingEnvWrapper
            >>> env = DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
            >>> obs = env.reset()
            >>> obs, reward, done, info = env.step(1)
            >>> obs.shape, reward.shape, done
            ((4,), (1,), False)
        """
        raise NotImplementedError

    @abstractmethod
    def seed(self, seed: int) -> None:
        """Set the seed that the next ``reset`` starts from."""
        raise NotImplementedError

    @staticmethod
    def create_collector_env_cfg(cfg: Config) -> list[Config]:
        """A config for each of ``cfg.collector_env_num`` environments."""
        return copy_env_cfg(cfg, "collector_env_num")

    @staticmethod
    def create_evaluator_env_cfg(cfg: Config) -> list[Config]:
        """A config for each of ``cfg.evaluator_env_num`` environments."""
        return copy_env_cfg(cfg, "evaluator_env_num")

    def enable_save_replay(self, replay_path: str) -> None:
        """Save a video of every episode from the next ``reset`` on in the folder `replay_path`."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot save replays: it does not override enable_save_replay"
        )

    def random_action(self) -> Action:
        """An action drawn from ``action_space``; a single number has shape ``(1,)``."""
        action = self.action_space.sample()
        return number_as_action(action) if isinstance(action, int | np.generic) else action


def copy_env_cfg(cfg: Config, count_key: str, **extra: object) -> list[Config]:
    """``cfg[count_key]`` deep copies of `cfg` without that key, each with `extra` set."""
    count = cfg.get(count_key)
    if not isinstance(count, (int, np.integer)) or count < 1:
        raise ConfigError(
            f"env.{count_key} is {count!r}; expected how many environments to make, 1 or more"
        )
    # An environment may change what it is given.
    copies = [copy.deepcopy(cfg) for _ in range(count)]
    for one in copies:
        one.pop(count_key)
        one.update(extra)
    return copies


def get_vec_env_setting(
    cfg: Config, collect: bool = True, eval_: bool = True
) -> tuple[type[BaseEnv], list[Config] | None, list[Config] | None]:
    """Look up the env class that `cfg` names, and make the configs of its environments.

    Args:
        cfg: The config's ``env`` section: ``type``, ``collector_env_num``, ``evaluator_env_num``.
        collect: Whether to make the collectors' configs.
        eval_: Whether to make the evaluators'.

    Returns:
        The class, the collectors' configs and the evaluators' configs, ``None`` without `collect`
        or `eval_`.

    Raises:
        ConfigError: No type, or no number of environments.

    Example:

        >>> from ding.envs import get_vec_env_setting
        >>> cfg = dict(type="gymnasium", env_id="CartPole-v1")
        >>> cfg.update(collector_env_num=2, evaluator_env_num=1)
        >>> env_cls, collector_cfgs, evaluator_cfgs = get_vec_env_setting(cfg)
        >>> env_cls.__name__, len(collector_cfgs), len(evaluator_cfgs)
        ('GymnasiumEnv', 2, 1)
    """
    env_cls = get_env_cls(cfg)
    collector_cfg = env_cls.create_collector_env_cfg(cfg) if collect else None
    evaluator_cfg = env_cls.create_evaluator_env_cfg(cfg) if eval_ else None
    return env_cls, collector_cfg, evaluator_cfg


def get_env_cls(cfg: Config) -> type[BaseEnv]:
    """The class registered as ``cfg.type``, after importing ``cfg.import_names``."""
    if not cfg.get("type"):
        raise ConfigError(
            "env.type is missing; name a registered env class (with env.import_names if it is "
            "yours), or use type='gymnasium' with env.env_id"
        )
    import_module(cfg.get("import_names", []))
    return cast(type[BaseEnv], ENV_REGISTRY.get(cfg["type"]))


def is_truncated(info: Settings | Sequence[Settings]) -> bool:
    """Whether the episode that ended with `info` was cut short, so that its value bootstraps.

    Knows ``truncated`` (with ``terminated``, which wins) and the old ``TimeLimit.truncated``.
    Players of one episode have an info each and end together.
    """
    if not isinstance(info, Mapping):
        return any(is_truncated(one) for one in info)
    if "truncated" in info:
        return bool(info["truncated"]) and not info.get("terminated", False)
    return bool(info.get("TimeLimit.truncated", False))
