"""Builds a gymnasium environment from its id and says what is wrong when that fails."""

import copy
import functools
import importlib
import logging
import warnings
from typing import Any

import gymnasium
from gymnasium import spaces

from ding.utils.errors import ConfigError, EnvError

from ._ids import MUJOCO, current_id, simulator_of

_logger = logging.getLogger(__name__)


def make_gymnasium(env_id: str, **kwargs: Any) -> gymnasium.Env:
    """``gymnasium.make`` without the wrappers that only guard against misuse.

    An id that there is no more is taken for the one that came after it, and the package that
    makes an id known is imported. ``DingEnvWrapper`` resets before it steps and checks actions
    itself; gymnasium's own checks would cost a tenth of a CartPole step.

    Raises:
        ConfigError: gymnasium does not know the id, or the environment refuses its arguments.
        EnvError: A package that the environment needs is missing.
    """
    asked_for = env_id
    env_id, own_kwargs = current_id(env_id)
    kwargs = {**own_kwargs, **kwargs}
    spec: Any = env_id
    if env_id in gymnasium.registry:
        spec = copy.copy(gymnasium.registry[env_id])
        spec.order_enforce = False
    if simulator_of(env_id) is MUJOCO:
        _hear_mujoco()
    try:
        with warnings.catch_warnings():
            # Of an old version, which was asked for, or was chosen for an older one.
            warnings.filterwarnings("ignore", message=r".*is out of date")
            env = gymnasium.make(spec, disable_env_checker=True, **kwargs)
    except (gymnasium.error.Error, ModuleNotFoundError, TypeError) as error:
        raise _explained(asked_for, error) from error
    core = env.unwrapped
    if type(core.action_space) is spaces.Discrete:
        core.action_space = _QuickDiscrete.like(core.action_space)
    return env


class _QuickDiscrete(spaces.Discrete):
    """Tells at once whether it contains an int: environments ask at every step.

    gymnasium's own takes a third of CartPole's step, for its bounds are numpy's numbers.
    """

    _low: int
    _end: int

    @classmethod
    def like(cls, space: spaces.Discrete) -> "_QuickDiscrete":
        quick = cls(int(space.n), start=int(space.start))
        vars(quick).update(vars(space))
        quick._low, quick._end = int(space.start), int(space.start + space.n)
        return quick

    def contains(self, x: Any) -> bool:
        if type(x) is int:
            return self._low <= x < self._end
        return super().contains(x)


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


@functools.cache
def _hear_mujoco() -> None:
    """Log MuJoCo's warnings, each once, in place of a file in the folder that one is in."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
    except ImportError:
        return  # making the environment says so
    once = functools.cache(lambda text: _logger.info("MuJoCo: %s", text))
    if hasattr(mujoco, "set_mju_user_warning"):
        mujoco.set_mju_user_warning(lambda text: once(text.strip()))


def _explained(env_id: str, error: Exception) -> Exception:
    simulator = simulator_of(env_id)
    if simulator is not None and not simulator.is_installed:
        return EnvError(f"cannot make env {env_id!r}: {simulator.cure}")
    if isinstance(error, gymnasium.error.DependencyNotInstalled):
        return EnvError(f"cannot make env {env_id!r}: {error}")
    if isinstance(error, ModuleNotFoundError):
        return EnvError(
            f"cannot make env {env_id!r}: the package {error.name!r} is missing; install it, or "
            "correct env.env_id"
        )
    if isinstance(error, gymnasium.error.UnregisteredEnv | gymnasium.error.DeprecatedEnv):
        return ConfigError(f"env.env_id={env_id!r} is not known to gymnasium: {error}")
    if isinstance(error, TypeError):
        return ConfigError(f"env.kwargs do not suit env {env_id!r}: {error}")
    return ConfigError(f"env.env_id={env_id!r}: {error}")
