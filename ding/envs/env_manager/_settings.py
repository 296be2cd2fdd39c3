"""Reads what callers hand to env managers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.env_manager._env_types import GroupSettings
from ding.envs.seeds import env_seeds
from ding.utils.errors import ConfigError

_LIMITS = ("step_timeout", "reset_timeout")


def merged_config(defaults: EasyDict, cfg: Mapping[str, Any] | None, env_fn: Any) -> EasyDict:
    """`defaults` with `cfg` over them, checked.

    Raises:
        ConfigError: Names the key.
    """
    merged = EasyDict({**defaults, **(cfg or {})})
    if not isinstance(env_fn, Sequence) or not env_fn:
        raise ConfigError(
            f"env_fn is {env_fn!r}; expected a list with one function per environment"
        )
    for position, fn in enumerate(env_fn):
        if not callable(fn):
            raise ConfigError(
                f"env_fn[{position}] is {fn!r}; expected a function that makes an environment"
            )
    if merged.get("retry_type", "reset") not in ("reset", "renew"):
        raise ConfigError(
            f"env.manager.retry_type is {merged.retry_type!r}; expected 'reset' or 'renew'"
        )
    _require_number(merged, "max_retry", 1)
    _require_number(merged, "episode_num", 1)
    _require_number(merged, "retry_waiting_time", 0)
    for key in _LIMITS:
        if merged.get(key) is not None:
            _require_number(merged, key, 0)
    return merged


def group_settings(cfg: Mapping[str, Any]) -> GroupSettings:
    """The part of a merged config that groups of environments go by."""
    given = {name: cfg[name] for name in GroupSettings.__slots__ if name in cfg}
    for name in _LIMITS:
        if given.get(name) == float("inf"):
            given[name] = None
    return GroupSettings(**given)


def spread(reset_param: Mapping[int, Any] | None, env_num: int) -> dict[int, dict | None]:
    """Reset arguments by env id; of all environments if there are none.

    Raises:
        ConfigError: An id that no environment has.
    """
    if reset_param is None:
        return dict.fromkeys(range(env_num))
    for env_id in reset_param:
        _require_id(env_id, env_num, "reset_param")
    return {int(env_id): param for env_id, param in reset_param.items()}


def seeds_by_id(seed: Any, env_num: int, dynamic: bool | None = None) -> dict[int, int]:
    """One seed per environment from a number, a list or a dict.

    Args:
        dynamic: Fixed seeds (``False``) of a number are others than those that episodes vary.

    Raises:
        ConfigError: A list of another length, an id that no environment has, or no number.
    """
    if isinstance(seed, int | np.integer):
        role = "fixed" if dynamic is False else "varied"
        return dict(enumerate(env_seeds(int(seed), role, env_num)))
    if isinstance(seed, Mapping):
        for env_id in seed:
            _require_id(env_id, env_num, "seed")
        return {int(env_id): int(value) for env_id, value in seed.items()}
    if isinstance(seed, list | tuple | np.ndarray):
        if len(seed) != env_num:
            raise ConfigError(f"{len(seed)} seeds came for {env_num} environments")
        return {env_id: int(value) for env_id, value in enumerate(seed)}
    raise ConfigError(f"seed is {seed!r}; expected a number, a list or a dict by env id")


def replay_paths(path: Sequence[str] | str, env_num: int) -> dict[int, str]:
    """A folder per environment.

    Raises:
        ConfigError: A list of another length.
    """
    paths = [path] * env_num if isinstance(path, str) else list(path)
    if len(paths) != env_num:
        raise ConfigError(f"{len(paths)} replay paths came for {env_num} environments")
    return dict(enumerate(paths))


def named_method_names(cfg: Mapping[str, Any]) -> list[str]:
    """The methods of environments that managers call."""
    default = (
        *("reset", "step", "seed", "close", "render"),
        *("enable_save_replay", "enable_save_figure", "reward_shaping", "random_action"),
    )
    return list(cfg.get("method_name_list", default))


def fn_name(fn: Callable) -> str:
    """What messages call a function that makes an environment."""
    inner = getattr(fn, "func", fn)  # functools.partial
    return getattr(inner, "__name__", type(inner).__name__)


def _require_id(env_id: Any, env_num: int, where: str) -> None:
    if not isinstance(env_id, int | np.integer) or not 0 <= env_id < env_num:
        raise ConfigError(
            f"{where} names environment {env_id!r}; there are environments 0 to {env_num - 1}"
        )


def _require_number(cfg: Mapping[str, Any], key: str, least: float) -> None:
    value = cfg.get(key, least)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise ConfigError(f"env.manager.{key} is {value!r}; expected a number of at least {least}")
