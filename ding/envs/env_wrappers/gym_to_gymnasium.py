"""Environments with the old gym API as gymnasium environments.

They are recognised by their methods, not by their class: gym need not be installed.
"""

import inspect
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.core import RenderFrame

from ding.envs.vector_step import Action, AnyEnv, EnvReset, EnvStep, Space
from ding.utils.errors import EnvError
from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY
from ding.utils.types import Config

#: A space of gymnasium, or what an environment or another library has in its place.
FoundSpace: TypeAlias = Any


def as_gymnasium(env: AnyEnv) -> gymnasium.Env:
    """`env` itself if it is a gymnasium environment, else an adapter around it."""
    return env if isinstance(env, gymnasium.Env) else GymToGymnasiumWrapper(env)


def convert_space(space: FoundSpace) -> Space:
    """The gymnasium space with the same meaning as a space of another library."""
    if isinstance(space, spaces.Space):
        return space
    kind = type(space).__name__
    if hasattr(space, "spaces"):
        if hasattr(space.spaces, "items"):
            return spaces.Dict({name: convert_space(s) for name, s in space.spaces.items()})
        return spaces.Tuple([convert_space(s) for s in space.spaces])
    if hasattr(space, "low") and hasattr(space, "high"):
        low, high = np.asarray(space.low), np.asarray(space.high)
        return spaces.Box(low, high, shape=space.shape, dtype=space.dtype)
    if hasattr(space, "nvec"):
        return spaces.MultiDiscrete(np.asarray(space.nvec))
    if hasattr(space, "n"):
        if kind == "MultiBinary":
            return spaces.MultiBinary(space.n)
        return spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))
    raise EnvError(
        f"cannot convert the space {space!r} ({kind}); expected a Box, Discrete, MultiDiscrete, "
        "MultiBinary, Dict or Tuple"
    )


def as_gymnasium_space(space: FoundSpace) -> FoundSpace:
    """The gymnasium space with the same meaning; what has none, as it is."""
    try:
        return convert_space(space)
    except EnvError:
        return space


@ENV_WRAPPER_REGISTRY.register("gym_to_gymnasium")
class GymToGymnasiumWrapper(gymnasium.Env):
    """Gives an old environment ``reset(seed=) -> (obs, info)`` and the five-tuple ``step``.

    The old ``done`` becomes ``truncated`` where ``info['TimeLimit.truncated']`` says so, else
    ``terminated``. Environments half-way between (gym 0.22 to 0.26) are understood as well.
    """

    def __init__(self, env: AnyEnv) -> None:
        missing = [n for n in ("reset", "step", "action_space") if not hasattr(env, n)]
        if missing:
            raise EnvError(f"{env!r} is not an environment: it has no {', '.join(missing)}")
        self.env = env
        self.observation_space = convert_space(env.observation_space)
        self.action_space = convert_space(env.action_space)
        self.metadata = getattr(env, "metadata", None) or {}
        self.render_mode = getattr(env, "render_mode", None)
        # Old wrappers take any keyword in `reset` and pass it to environments that do not, so
        # `seed` is looked for first.
        self._seed_method = getattr(env, "seed", None)
        self._seed_in_reset = not callable(self._seed_method) and _takes_seed(env)

    def reset(self, *, seed: int | None = None, options: Config | None = None) -> EnvReset:
        kwargs: Config = {}
        if seed is not None:
            if callable(self._seed_method):
                self._seed_method(seed)
            elif self._seed_in_reset:
                kwargs["seed"] = seed
        if options is not None:
            kwargs["options"] = options
        result = self.env.reset(**kwargs)
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
            return result
        return result, {}

    def step(self, action: Action) -> EnvStep:
        result = self.env.step(action)
        if len(result) == 5:
            return result
        obs, reward, done, info = result
        truncated = bool(done) and bool(info.get("TimeLimit.truncated", False))
        return obs, reward, bool(done) and not truncated, truncated, info

    def render(self) -> RenderFrame | list[RenderFrame] | None:
        if self.render_mode is not None:
            return self.env.render()
        return self.env.render(mode="rgb_array")

    def close(self) -> None:
        close = getattr(self.env, "close", None)
        if callable(close):
            close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.env, name)


def _takes_seed(env: AnyEnv) -> bool:
    try:
        params = inspect.signature(env.reset).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "seed" or p.kind is p.VAR_KEYWORD for p in params)
