"""Puts wrappers around an environment as a config names them."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import gymnasium

from ding.envs.vector_step import AnyEnv
from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY
from ding.utils.types import Config, Settings, Shape

#: A registered name, ``{type, kwargs}``, or a function from an environment to its wrapper.
WrapperEntry: TypeAlias = str | Settings | Callable[[gymnasium.Env], gymnasium.Env]


def create_env_wrapper(env: AnyEnv, env_wrapper_cfg: Settings) -> gymnasium.Env:
    """Wrap `env` by ``{type, kwargs}``, after importing its ``import_names`` if given."""
    if not env_wrapper_cfg.get("type"):
        raise ConfigError(
            f"env.env_wrapper holds {dict(env_wrapper_cfg)!r}; expected a dict with 'type' and "
            "perhaps 'kwargs'"
        )
    import_module(env_wrapper_cfg.get("import_names", []))
    kwargs = env_wrapper_cfg.get("kwargs", {})
    return ENV_WRAPPER_REGISTRY.build(env_wrapper_cfg["type"], env, **kwargs)


def apply_env_wrappers(env: gymnasium.Env, wrappers: Sequence[WrapperEntry]) -> gymnasium.Env:
    """Wrap `env`: registered names, ``{type, kwargs}`` or functions, the first innermost."""
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


def preset_wrappers(name: str, caller: str) -> list[Config]:
    """The wrappers of a preset, the innermost first.

    ``default`` and ``none`` have none. ``mujoco_default`` normalises observations and, for
    collectors, rewards. ``atari_default`` is Mnih et al. (2015); life-loss as episode end and
    clipped rewards are for collectors only.
    """
    if name not in _PRESETS:
        close = difflib.get_close_matches(name, _PRESETS, n=1)
        hint = f", did you mean {close[0]!r}" if close else ""
        raise ConfigError(
            f"env.env_wrapper={name!r} is not a preset{hint}; presets are "
            f"{', '.join(_PRESETS)}, and registered wrappers go in a list"
        )
    return [
        {"type": type_, "kwargs": dict(kwargs)}
        for type_, collector_only, kwargs in _PRESETS[name]
        if caller == "collector" or not collector_only
    ]


# type, for collectors only, arguments
_PRESETS: dict[str, list[tuple[str, bool, Config]]] = {
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


# ---- wrappers that keys of a config ask for ----------------------------------------------------

#: Keys of a config that ask for wrappers by what they do, with their defaults.
WRAPPER_KEYS: Config = {
    "norm_obs": {
        "use_norm": False,
        "offline_stats": {"use_offline_stats": False, "mean": None, "std": None},
    },
    "norm_reward": {"use_norm": False, "reward_discount": 0.99},
    "delay_reward_step": 0,
    "rew_clip": False,
    "frame_stack": None,
    "obs_plus_prev_action_reward": False,
    "action_bins_per_branch": None,
}


def config_wrappers(cfg: Settings, caller: str) -> list[WrapperEntry]:
    """``env_wrapper`` and what other keys ask for around it, the innermost first.

    A key adds no wrapper if ``env_wrapper`` already has one for it.

    - ``rew_clip``: collectors' rewards below -10 become -10.
    - ``delay_reward_step``: that many steps' rewards come at once.
    - ``norm_obs``: with ``use_norm``, observations are normalised by what all of the run's
      environments have seen; with ``offline_stats.use_offline_stats``, by its ``mean`` and ``std``.
    - ``norm_reward``: with ``use_norm``, collectors' rewards are normalised; returns are
      discounted by ``reward_discount``.
    - ``frame_stack``: that many observations in one.
    - ``obs_plus_prev_action_reward``: observations are dicts with the previous action and reward.
    - ``action_bins_per_branch``: each number of a continuous action is one of that many choices.
    """
    wrappers = given_wrappers(cfg, caller)
    named = {item.get("type") if isinstance(item, Mapping) else item for item in wrappers if item}
    return wrappers + [one for one in _asked_for(cfg, caller) if one["type"] not in named]


def given_wrappers(cfg: Settings, caller: str) -> list[WrapperEntry]:
    """``env_wrapper`` as a list; for a preset's name, its wrappers."""
    given = cfg.get("env_wrapper") or []
    return list(preset_wrappers(given, caller)) if isinstance(given, str) else list(given)


def _asked_for(cfg: Settings, caller: str) -> list[Config]:
    wrappers: list[Config] = []

    def add(type_: str, **kwargs: object) -> None:
        wrappers.append({"type": type_, "kwargs": kwargs})

    if bins := cfg.get("action_bins_per_branch"):
        add("discretize_action", bins=bins)
    if cfg.get("rew_clip") and caller == "collector":
        add("least_reward", least=-10.0)
    if (delay := cfg.get("delay_reward_step") or 0) > 1:
        add("delay_reward", delay_reward_step=delay)
    norm = cfg.get("norm_obs") or {}
    known = norm.get("offline_stats") or {}
    if known.get("use_offline_stats"):
        if known.get("mean") is None or known.get("std") is None:
            raise ConfigError(
                "env.norm_obs.offline_stats.use_offline_stats=True also needs 'mean' and 'std', "
                f"arrays like an observation; got {dict(known)}"
            )
        add("static_obs_norm", mean=known["mean"], std=known["std"])
    elif norm.get("use_norm"):
        add("obs_norm")
    reward = cfg.get("norm_reward") or {}
    if reward.get("use_norm") and caller == "collector":
        add("reward_norm", reward_discount=reward.get("reward_discount", 0.99))
    if cfg.get("frame_stack"):
        add("frame_stack", n_frames=cfg["frame_stack"])
    if cfg.get("obs_plus_prev_action_reward"):
        add("obs_plus_prev_action_reward")
    return wrappers


# ---- what wrappers are there ---------------------------------------------------------------------


def stateful_wrappers(env: object) -> list[AnyEnv]:
    """The wrappers around an environment that have a ``state_dict``, the outermost first."""
    found = []
    while isinstance(env, gymnasium.Wrapper):
        if "state_dict" in dir(type(env)):
            found.append(env)
        env = env.env
    return found


def update_shape(
    obs_shape: Shape, act_shape: Shape, rew_shape: Shape, wrapper_names: Sequence[str | type]
) -> tuple[Shape, Shape, Shape]:
    """The shapes of observation, action and reward outside of the wrappers named."""
    for name in wrapper_names:
        wrapper = ENV_WRAPPER_REGISTRY.get(name) if isinstance(name, str) else name
        if hasattr(wrapper, "new_shape"):
            obs_shape, act_shape, rew_shape = wrapper.new_shape(obs_shape, act_shape, rew_shape)
    return obs_shape, act_shape, rew_shape
