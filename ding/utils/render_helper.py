"""Pictures of environments, and how fast they are to be shown."""

import inspect
from typing import Any

_DEFAULT_FPS = 30


def render(env: Any, render_mode: str | None = "rgb_array") -> Any:
    """A picture of an environment's current state, ``[H, W, 3]`` uint8.

    Args:
        env: An environment; one that wraps another and cannot draw itself has it drawn.
        render_mode: For environments of the old form, which take it with every call.
    """
    for one in _chain(env):
        if not hasattr(one, "render"):
            continue
        takes_mode = "mode" in inspect.signature(one.render).parameters
        # Environments of the newer form get it when they are made.
        return one.render(mode=render_mode) if takes_mode else one.render()
    raise AttributeError(f"{type(env).__name__} has no render(), nor has what it wraps")


def fps(env_manager: Any) -> int:
    """Frames per second at which an env manager's environments are to be shown; 30 if unknown."""
    env = getattr(env_manager, "env_ref", env_manager)
    getattr(env, "observation_space", None)  # makes those that are only made when they are needed
    for one in _chain(env):
        metadata = getattr(one, "metadata", None) or {}
        for key in ("render_fps", "video.frames_per_second"):
            if metadata.get(key):
                return int(metadata[key])
    return _DEFAULT_FPS


def _chain(env: Any) -> list[Any]:
    """An environment, what it wraps, and so on."""
    found: list[Any] = []
    while env is not None and not any(env is one for one in found):
        found.append(env)
        inner = getattr(env, "_env", None)
        env = getattr(env, "env", None) if inner is None else inner
    return found
