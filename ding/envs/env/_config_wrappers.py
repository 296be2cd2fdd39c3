"""The wrappers that keys of a config ask for by what they do rather than by name."""

from collections.abc import Mapping
from typing import Any

from ding.envs.env_wrappers import preset_wrappers
from ding.utils.errors import ConfigError

#: Those keys, with their defaults.
WRAPPER_KEYS: dict[str, Any] = {
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


def config_wrappers(cfg: Mapping[str, Any], caller: str) -> list[Any]:
    """``env_wrapper`` and what other keys ask for around it, the innermost first.

    A key for which ``env_wrapper`` has a wrapper of its own adds none.

    - ``rew_clip``: collectors' rewards below -10 become -10.
    - ``delay_reward_step``: that many steps' rewards come at once.
    - ``norm_obs``: with ``use_norm``, observations are normalised by what all of the run's
      environments have seen; with ``offline_stats.use_offline_stats``, by its ``mean`` and ``std``.
    - ``norm_reward``: with ``use_norm``, collectors' rewards are normalised; returns are
      discounted by ``reward_discount``.
    - ``frame_stack``: that many observations in one.
    - ``obs_plus_prev_action_reward``: observations are dicts with the previous action and reward.
    - ``action_bins_per_branch``: each number of a continuous action is one of that many choices.

    Args:
        cfg: The environment's config.
        caller: ``collector`` or ``evaluator``.

    Raises:
        ConfigError: ``use_offline_stats`` without a mean and a standard deviation.
    """
    wrappers = given_wrappers(cfg, caller)
    named = {item.get("type") if isinstance(item, Mapping) else item for item in wrappers if item}
    return wrappers + [one for one in _asked_for(cfg, caller) if one["type"] not in named]


def given_wrappers(cfg: Mapping[str, Any], caller: str) -> list[Any]:
    """``env_wrapper`` as a list: a preset's name stands for its wrappers."""
    given = cfg.get("env_wrapper") or []
    return list(preset_wrappers(given, caller)) if isinstance(given, str) else list(given)


def _asked_for(cfg: Mapping[str, Any], caller: str) -> list[dict[str, Any]]:
    trains = caller == "collector"
    wrappers = []
    if bins := cfg.get("action_bins_per_branch"):
        wrappers.append(_wrapper("discretize_action", bins=bins))
    if cfg.get("rew_clip") and trains:
        wrappers.append(_wrapper("least_reward", least=_LEAST_REWARD))
    if (delay := cfg.get("delay_reward_step") or 0) > 1:
        wrappers.append(_wrapper("delay_reward", delay_reward_step=delay))
    wrappers += _observations(cfg.get("norm_obs") or {})
    reward = cfg.get("norm_reward") or {}
    if reward.get("use_norm") and trains:
        discount = {name: value for name, value in reward.items() if name == "reward_discount"}
        wrappers.append(_wrapper("reward_norm", **discount))
    if cfg.get("frame_stack"):
        wrappers.append(_wrapper("frame_stack", n_frames=cfg["frame_stack"]))
    if cfg.get("obs_plus_prev_action_reward"):
        wrappers.append(_wrapper("obs_plus_prev_action_reward"))
    return wrappers


_LEAST_REWARD = -10.0


def _observations(norm: Mapping[str, Any]) -> list[dict[str, Any]]:
    known = norm.get("offline_stats") or {}
    if known.get("use_offline_stats"):
        if known.get("mean") is None or known.get("std") is None:
            raise ConfigError(
                "env.norm_obs.offline_stats.use_offline_stats=True needs 'mean' and 'std' beside "
                f"it, arrays like an observation; got {dict(known)}"
            )
        return [_wrapper("static_obs_norm", mean=known["mean"], std=known["std"])]
    return [_wrapper("obs_norm")] if norm.get("use_norm") else []


def _wrapper(type_: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": type_, "kwargs": kwargs}
