"""What env managers are given, checked: settings, seeds, functions that make environments."""

import enum
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace, as_gymnasium_space
from ding.envs.vector_step import AnyEnv, EnvFn, Info
from ding.utils.errors import ConfigError, DingError, EnvError, described
from ding.utils.types import Config, Settings

_logger = logging.getLogger(__name__)

#: A seed and its ``dynamic_seed``: whether every episode has another one, ``None`` for what the
#: environment does by default; or `PER_EPISODE`.
Seed = tuple[int, bool | str | None]
#: The manager seeds each episode, by its number since the last full reset.
PER_EPISODE = "per episode"

_LIMITS = ("step_timeout", "reset_timeout")
_LEAST = {"max_retry": 1, "episode_num": 1, "retry_waiting_time": 0, **dict.fromkeys(_LIMITS, 0)}


class EnvState(enum.IntEnum):
    """What an environment does in its manager."""

    VOID = 0
    INIT = 1
    RUN = 2
    RESET = 3
    DONE = 4
    ERROR = 5
    NEED_RESET = 6


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """When episodes follow each other and what is tried when an environment fails."""

    episode_num: float = float("inf")
    auto_reset: bool = True
    max_retry: int = 1
    retry_type: str = "reset"
    retry_waiting_time: float = 0.1
    step_timeout: float | None = None
    reset_timeout: float | None = None


@dataclass(frozen=True)
class GroupSpec:
    """What environments of one process start from, and what a group after them continues with.

    All dicts but `env_fns` are the manager's own, with all of its environments: a group that starts
    later reads their contents of then.

    Attributes:
        episode_count: Episodes of each since they were last counted from 0.
        renewals: How many groups before this one were lost.
    """

    env_fns: Mapping[int, EnvFn]
    settings: GroupSettings
    seeds: dict[int, Seed]
    replay_paths: dict[int, str]
    reset_kwargs: dict[int, Config] = field(default_factory=dict)
    episode_count: dict[int, int] = field(default_factory=dict)
    renewals: int = 0

    def __post_init__(self) -> None:
        for env_id in self.env_fns:
            self.episode_count.setdefault(env_id, 0)

    def has_played(self, env_id: int) -> bool:
        """Whether an environment has finished all its episodes."""
        return self.episode_count[env_id] >= self.settings.episode_num

    def note_restart(self, params: Mapping[int, Config | None], recount: bool) -> None:
        """See `EnvRunner.restart`."""
        for env_id, kwargs in params.items():
            if kwargs is not None:
                self.reset_kwargs[env_id] = dict(kwargs)
            if recount or self.has_played(env_id):
                self.episode_count[env_id] = 0


def env_error(env_id: int, name: str, what: str, cause: BaseException) -> EnvError:
    kind = type(cause) if isinstance(cause, EnvError) else EnvError
    did = "" if isinstance(cause, DingError) else f" {what}"
    return kind(f"env {env_id} ({name}){did}: {described(cause)}", env_id)


def close_quietly(env: AnyEnv, name: str) -> None:
    """Close an environment; a failure is logged."""
    try:
        env.close()
    except (Exception, SystemExit) as error:
        _logger.warning("env %s failed to close: %s", name, described(error))


def env_name(env: object) -> str:
    name = type(env).__name__
    text = str(env)
    return text if text.startswith(name) and len(text) < 80 else name


def is_abnormal(info: Info | Sequence[Info]) -> bool:
    """Whether an info, or one of a list of them, one per player, says that its step failed."""
    if isinstance(info, Mapping):
        return bool(info.get("abnormal", False))
    return any(bool(part.get("abnormal", False)) for part in info)


def offers(owner: object, quick: str, *plain: str) -> bool:
    """Whether `owner` has a quick way, and no subclass overrides one of the plain ways alone."""
    scopes = [vars(owner)] if hasattr(owner, "__dict__") else []
    for scope in (*scopes, *map(vars, type(owner).__mro__)):
        if quick in scope:
            return True
        if not scope.keys().isdisjoint(plain):
            break
    return False


def positional_count(fn: Callable[..., object]) -> int:
    """How many positional arguments a function takes."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return 0
    named = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return named + 9 * any(p.kind is p.VAR_POSITIONAL for p in parameters)


def find_space(env: AnyEnv, name: str) -> FoundSpace:
    """One of the three spaces of an environment, as gymnasium's; the reward's may be missing."""
    try:
        return as_gymnasium_space(getattr(env, name))
    except AttributeError:
        if name == "reward_space":
            return None
    env.reset()  # some environments know their spaces only then
    return as_gymnasium_space(getattr(env, name, None))


def merged_config(defaults: EasyDict, cfg: Settings | None, env_fn: object) -> EasyDict:
    """`defaults` with `cfg` over them, checked."""
    merged = EasyDict({**defaults, **(cfg or {})})
    if not isinstance(env_fn, Sequence) or not env_fn or not all(map(callable, env_fn)):
        raise ConfigError(
            f"env_fn is {env_fn!r}; expected a list with one function per environment, which "
            "makes it"
        )
    if merged.get("retry_type", "reset") not in ("reset", "renew"):
        raise ConfigError(
            f"env.manager.retry_type is {merged.retry_type!r}; expected 'reset' or 'renew'"
        )
    for key, least in _LEAST.items():
        value = merged.get(key, least)
        if value is None and key in _LIMITS:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise ConfigError(
                f"env.manager.{key} is {value!r}; expected a number of at least {least}"
            )
    return merged


def group_settings(cfg: Settings) -> GroupSettings:
    given = {name: cfg[name] for name in GroupSettings.__slots__ if name in cfg}
    for name in _LIMITS:
        if given.get(name) == float("inf"):
            given[name] = None
    return GroupSettings(**given)


def by_env_id(given: object, env_num: int, name: str) -> dict[int, Any]:
    """What a caller gave for all environments in order, or for some of them by id."""
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


def fn_name(fn: Callable[..., object]) -> str:
    inner = getattr(fn, "func", fn)  # functools.partial
    return getattr(inner, "__name__", type(inner).__name__)
