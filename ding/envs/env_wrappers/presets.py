"""Lists of wrappers under one name."""

import difflib
from typing import Any

from ding.utils.errors import ConfigError


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
