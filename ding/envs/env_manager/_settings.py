"""Reads what callers hand to env managers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.env_manager._env_types import GroupSettings
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


def by_env_id(given: Any, env_num: int, name: str) -> dict[int, Any]:
    """What a caller gave for each environment, or for some of them by id.

    Args:
        given: A sequence with one item for each, or a dict by env id.
        name: Of the argument.

    Raises:
        ConfigError: It is neither, has another length, or names an environment that is not there.
    """
    if isinstance(given, Mapping):
        for env_id in given:
            if not isinstance(env_id, int | np.integer) or not 0 <= env_id < env_num:
                raise ConfigError(
                    f"{name} is for environment {env_id!r}; there are environments 0 to "
                    f"{env_num - 1}"
                )
        return {int(env_id): value for env_id, value in given.items()}
    if not isinstance(given, list | tuple | np.ndarray):
        raise ConfigError(f"{name} is {given!r}; expected a list, or a dict by env id")
    if len(given) != env_num:
        raise ConfigError(f"{len(given)} {name}s came for {env_num} environments")
    return dict(enumerate(given))


def fn_name(fn: Callable) -> str:
    """What messages call a function that makes an environment."""
    inner = getattr(fn, "func", fn)  # functools.partial
    return getattr(inner, "__name__", type(inner).__name__)


def _require_number(cfg: Mapping[str, Any], key: str, least: float) -> None:
    value = cfg.get(key, least)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise ConfigError(f"env.manager.{key} is {value!r}; expected a number of at least {least}")
