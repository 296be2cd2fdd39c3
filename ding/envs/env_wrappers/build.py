"""Puts wrappers around an environment as a config names them."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium

from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY


def create_env_wrapper(env: Any, env_wrapper_cfg: Mapping) -> gymnasium.Env:
    """Wrap `env` as ``{type, kwargs}`` says, after importing its ``import_names`` if given."""
    if not env_wrapper_cfg.get("type"):
        raise ConfigError(
            f"env.env_wrapper holds {dict(env_wrapper_cfg)!r}; expected a dict with 'type' and "
            "perhaps 'kwargs'"
        )
    import_module(env_wrapper_cfg.get("import_names", []))
    kwargs = env_wrapper_cfg.get("kwargs", {})
    return ENV_WRAPPER_REGISTRY.build(env_wrapper_cfg["type"], env, **kwargs)


def apply_env_wrappers(
    env: gymnasium.Env, wrappers: str | Sequence[str | Mapping | Callable], caller: str
) -> gymnasium.Env:
    """Wrap `env` with each of `wrappers`, the first innermost.

    Args:
        env: What to wrap.
        wrappers: A preset's name, or a list of registered names, ``{type, kwargs}`` and functions
            from env to env.
        caller: ``collector`` or ``evaluator``; presets differ.
    """
    if isinstance(wrappers, str):
        wrappers = preset_wrappers(wrappers, caller)
    for item in wrappers:
        if isinstance(item, str):
            env = create_env_wrapper(env, {"type": item})
        elif isinstance(item, Mapping):
            env = create_env_wrapper(env, item)
        elif callable(item):
            env = item(env)
        else:
            raise ConfigError(
                f"env.env_wrapper holds {item!r}; expected a registered name, a dict with 'type' "
                "or a function from env to env"
            )
    return env


def preset_wrappers(name: str, caller: str) -> list[dict[str, Any]]:
    """The wrappers of a preset, the innermost first.

    ``default`` and ``none`` have none. ``mujoco_default`` normalises observations and, for
    collectors, rewards. ``atari_default`` is Mnih et al. (2015); life-loss as episode end and
    clipped rewards are for collectors only.

    Raises:
        ConfigError: There is no such preset.
    """
    if name not in _PRESETS:
        close = difflib.get_close_matches(name, _PRESETS, n=1)
        hint = f", did you mean {close[0]!r}" if close else ""
        raise ConfigError(
            f"env.env_wrapper={name!r} is not a preset{hint}; presets are "
            f"{', '.join(_PRESETS)}, and registered wrappers go in a list"
        )
    chosen = []
    for type_, collector_only, kwargs in _PRESETS[name]:
        if caller == "collector" or not collector_only:
            chosen.append({"type": type_, "kwargs": dict(kwargs)})
    return chosen


# type, for collectors only, arguments
_PRESETS: dict[str, list[tuple[str, bool, dict[str, Any]]]] = {
    "default": [],
    "none": [],
    "mujoco_default": [
        ("eval_episode_return", False, {}),
        ("obs_norm", False, {}),
        ("reward_norm", True, {"reward_discount": 0.99}),
    ],
    "atari_default": [
        ("noop_reset", False, {"noop_max": 30}),
        ("max_and_skip", False, {"skip": 4}),
        ("episodic_life", True, {}),
        ("fire_reset", False, {}),
        ("eval_episode_return", False, {}),
        ("warp_frame", False, {"size": 84}),
        ("scaled_float_frame", False, {}),
        ("clip_reward", True, {}),
        ("frame_stack", False, {"n_frames": 4}),
    ],
}


def stateful_wrappers(env: Any) -> list[Any]:
    """The wrappers around an environment that have a ``state_dict``, the outermost first."""
    found = []
    while isinstance(env, gymnasium.Wrapper):
        if "state_dict" in dir(type(env)):
            found.append(env)
        env = env.env
    return found


def update_shape(
    obs_shape: Any, act_shape: Any, rew_shape: Any, wrapper_names: Sequence[str | type]
) -> tuple[Any, Any, Any]:
    """The shapes of observation, action and reward outside of the wrappers named."""
    for name in wrapper_names:
        wrapper = ENV_WRAPPER_REGISTRY.get(name) if isinstance(name, str) else name
        if hasattr(wrapper, "new_shape"):
            obs_shape, act_shape, rew_shape = wrapper.new_shape(obs_shape, act_shape, rew_shape)
    return obs_shape, act_shape, rew_shape
