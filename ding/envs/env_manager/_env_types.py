"""What an environment in a manager is, says and offers."""

import enum
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ding.envs.env_wrappers.gym_to_gymnasium import as_gymnasium_space
from ding.utils.errors import EnvError

_logger = logging.getLogger(__name__)


#: A seed and its ``dynamic_seed``: whether every episode has another one, ``None`` for what the
#: environment does by itself; or `PER_EPISODE`.
Seed = tuple[int, bool | str | None]
#: The manager seeds each episode anew, by its number since the last full reset.
PER_EPISODE = "per episode"


SPACES = ("observation_space", "action_space", "reward_space")


class EnvState(enum.IntEnum):
    """Where an environment stands in its manager."""

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
    """What environments of one process start from.

    The manager's own dicts, which hold more environments: who starts later finds what is in them
    then.

    Attributes:
        env_fns: By env id, of those that are the group's.
        settings: Episodes and retries.
        seeds: Of the first reset, by env id.
        replay_paths: Where videos are saved, by env id.
        reset_kwargs: For the environments' ``reset``, by env id.
        episode_count: Episodes that are played already, by env id.
        renewals: How many groups before this one were lost.
    """

    env_fns: Mapping[int, Callable]
    settings: GroupSettings
    seeds: Mapping[int, Seed]
    replay_paths: Mapping[int, str]
    reset_kwargs: dict[int, dict[str, Any]] = field(default_factory=dict)
    episode_count: dict[int, int] = field(default_factory=dict)
    renewals: int = 0


def env_error(env_id: int, name: str, what: str, cause: BaseException) -> EnvError:
    """The error that tells callers which environment failed, with what."""
    kind = type(cause) if isinstance(cause, EnvError) else EnvError
    return kind(f"env {env_id} ({name}) {what}: {type(cause).__name__}: {cause}", env_id)


def close_quietly(env: Any, name: str) -> None:
    """Close an environment; a failure is logged, for nothing hangs on it any more."""
    try:
        env.close()
    except Exception as error:
        _logger.warning("env %s failed to close: %s: %s", name, type(error).__name__, error)


def env_name(env: Any) -> str:
    name = type(env).__name__
    text = str(env)
    return text if text.startswith(name) and len(text) < 80 else name


def is_abnormal(info: Any) -> bool:
    """Whether an info, or one of a list of them, one per player, says that its step failed."""
    if isinstance(info, Mapping):
        return bool(info.get("abnormal", False))
    return any(bool(part.get("abnormal", False)) for part in info)


def offers(owner: Any, quick: str, *plain: str) -> bool:
    """Whether `owner` has a quick way, and no class below wrote over one of the plain ways only."""
    scopes = [vars(owner)] if hasattr(owner, "__dict__") else []
    for scope in (*scopes, *map(vars, type(owner).__mro__)):
        if quick in scope:
            return True
        if not scope.keys().isdisjoint(plain):
            break
    return False


def positional_count(fn: Callable) -> int:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return 0
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 9
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def find_space(env: Any, name: str) -> Any:
    """One of the three spaces of an environment; the reward's may be missing.

    Those of old gym come as gymnasium's: the former cannot be copied or sent to other processes.
    """
    try:
        return as_gymnasium_space(getattr(env, name))
    except AttributeError:
        if name == "reward_space":
            return None
    env.reset()  # some environments know their spaces only then
    return as_gymnasium_space(getattr(env, name, None))
