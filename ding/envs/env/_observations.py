"""Fits observations to what networks read: float32, or uint8 for images."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.utils.errors import EnvError

_FLOAT32 = np.dtype(np.float32)
_UINT8 = np.dtype(np.uint8)


def observation_adapter(
    space: spaces.Space, env_name: str
) -> tuple[spaces.Space, Callable[[Any], Any]]:
    """The space of the observations handed out and the function that makes them.

    Boxes keep uint8 and become float32 otherwise; the index of a Discrete space becomes a float32
    array of shape (1,); MultiDiscrete and MultiBinary become float32; Dict and Tuple go through
    their members. An array that is right already is handed on as it is, not copied.
    """
    if isinstance(space, spaces.Dict):
        members = {k: observation_adapter(s, env_name) for k, s in space.spaces.items()}
        functions = {k: function for k, (_, function) in members.items()}
        return (
            spaces.Dict({k: s for k, (s, _) in members.items()}),
            lambda obs: {k: function(obs[k]) for k, function in functions.items()},
        )
    if isinstance(space, spaces.Tuple):
        parts = [observation_adapter(s, env_name) for s in space.spaces]
        return (
            spaces.Tuple([s for s, _ in parts]),
            lambda obs: tuple(f(item) for (_, f), item in zip(parts, obs)),
        )
    box = _as_box(space)
    if box is None:
        return space, lambda obs: obs
    return box, _array_function(box.dtype, box.shape, env_name)


def _as_box(space: spaces.Space) -> spaces.Box | None:
    if isinstance(space, spaces.Box):
        if space.dtype in (_FLOAT32, _UINT8):
            return space
        biggest = np.finfo(np.float32).max
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        # A finite float64 bound beyond float32 must not turn into infinity with a warning.
        low = np.where(np.isfinite(low), np.clip(low, -biggest, biggest), low)
        high = np.where(np.isfinite(high), np.clip(high, -biggest, biggest), high)
        return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return spaces.Box(start, start + int(space.n) - 1, shape=(1,), dtype=np.float32)
    if isinstance(space, spaces.MultiDiscrete):
        low = np.zeros(space.nvec.shape, np.float32) + getattr(space, "start", 0)
        return spaces.Box(low, low + space.nvec.astype(np.float32) - 1, dtype=np.float32)
    if isinstance(space, spaces.MultiBinary):
        return spaces.Box(0, 1, shape=space.shape, dtype=np.float32)
    return None


def _array_function(
    dtype: np.dtype, shape: tuple[int, ...], env_name: str
) -> Callable[[Any], np.ndarray]:
    def to_array(obs: Any) -> np.ndarray:
        if type(obs) is np.ndarray and obs.dtype is dtype and obs.shape == shape:
            return obs
        array = np.asarray(obs, dtype)
        if array.shape != shape:
            if array.size != 1 or shape != (1,):
                raise EnvError(
                    f"env {env_name!r} gave an observation of shape {array.shape}; its observation "
                    f"space says {shape}"
                )
            array = array.reshape(1)
        return array

    return to_array
