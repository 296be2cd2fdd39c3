"""Builds a gymnasium environment from its id and says what is wrong when that fails."""

import copy
from typing import Any

import gymnasium

from ding.utils.errors import ConfigError, EnvError

# What an environment lacks -> the extra of this package that brings it.
_EXTRAS = {"box2d": "box2d"}


def make_gymnasium(env_id: str, **kwargs: Any) -> gymnasium.Env:
    """``gymnasium.make`` without the wrappers that only guard against misuse.

    ``DingEnvWrapper`` resets before it steps and checks actions itself; gymnasium's own checks
    would cost a tenth of a CartPole step.

    Raises:
        ConfigError: gymnasium does not know the id, or the environment refuses its arguments.
        EnvError: A package that the environment needs is missing.
    """
    spec: Any = env_id
    if env_id in gymnasium.registry:
        spec = copy.copy(gymnasium.registry[env_id])
        spec.order_enforce = False
    try:
        return gymnasium.make(spec, disable_env_checker=True, **kwargs)
    except gymnasium.error.DependencyNotInstalled as error:
        raise EnvError(f"cannot make env {env_id!r}: {error}{_cure(str(error))}") from error
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv) as error:
        raise ConfigError(f"env.env_id={env_id!r} is not known to gymnasium: {error}") from error
    except gymnasium.error.Error as error:
        raise ConfigError(f"env.env_id={env_id!r}: {error}") from error
    except ModuleNotFoundError as error:
        raise EnvError(
            f"cannot make env {env_id!r}: the package {error.name!r} is missing; install it, or "
            "correct env.env_id"
        ) from error
    except TypeError as error:
        raise ConfigError(f"env.kwargs do not suit env {env_id!r}: {error}") from error


def env_name(env: Any) -> str:
    """What messages call an environment: its id, else the class at its core."""
    while env is not None:
        spec = getattr(env, "spec", None)
        spec_id = getattr(spec, "id", None)
        if spec_id:
            return str(spec_id)
        inner = getattr(env, "env", None)
        if inner is None or inner is env:
            break
        env = inner
    return type(env).__name__


def _cure(text: str) -> str:
    for name, extra in _EXTRAS.items():
        if name in text.lower():
            return f' With this package: pip install "ding[{extra}]"'
    return ""
