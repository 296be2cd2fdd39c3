"""Checks and fits an action to its space; what can be known beforehand is worked out once."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.utils.errors import ActionError, ConfigError

# Up to this many entries a loop over Python numbers beats numpy's cost per call.
_SMALL = 8
_TOLERANCE = 1e-5  # of the range: what rounding may add to an action at its bound


def action_adapter(
    space: spaces.Space, env_name: str, act_scale: bool = False, clip_action: bool = False
) -> Callable[[Any], Any]:
    """A function from a policy's action to the one that the environment's ``step`` takes.

    Args:
        space: The environment's action space.
        env_name: What errors call the environment.
        act_scale: Map ``[-1, 1]`` to the bounds (Boxes only); what lies beyond is clipped.
        clip_action: Clip to the bounds instead of refusing (Boxes only).

    Returns:
        The function. It raises ``ActionError`` for what the space does not contain.

    Raises:
        ConfigError: `act_scale` for a Box without finite bounds.
    """
    if isinstance(space, spaces.Discrete):
        return _Discrete(space, env_name)
    if isinstance(space, spaces.Box):
        if space.dtype.kind != "f":
            return _Whole(space, env_name, space.low, space.high)
        if act_scale:
            return _Scaled(space, env_name)
        return _Box(space, env_name, clip_action)
    if isinstance(space, spaces.MultiDiscrete):
        start = getattr(space, "start", 0)
        return _Whole(space, env_name, start + np.zeros_like(space.nvec), start + space.nvec - 1)
    if isinstance(space, spaces.MultiBinary):
        return _Whole(space, env_name, np.zeros(space.shape), np.ones(space.shape))
    if isinstance(space, spaces.Dict):
        return _Parts(space, env_name, act_scale, clip_action)
    return _Other(space, env_name)


def scaled_space(space: spaces.Space) -> spaces.Space:
    """The space of the actions that `act_scale` maps to `space`: its Boxes are ``[-1, 1]``."""
    if isinstance(space, spaces.Box):
        return spaces.Box(-1.0, 1.0, shape=space.shape, dtype=space.dtype.type)
    if isinstance(space, spaces.Dict):
        return spaces.Dict({name: scaled_space(part) for name, part in space.spaces.items()})
    return space


class _Adapter:
    def __init__(self, space: spaces.Space, env_name: str) -> None:
        self.space = space
        self.env_name = env_name

    def refuse(self, action: Any, why: str, cure: str = "") -> ActionError:
        got = repr(action)
        if len(got) > 200:
            got = got[:200] + "..."
        kind = type(action).__name__
        if isinstance(action, np.ndarray):
            kind = f"{action.dtype} array of shape {action.shape}"
        return ActionError(
            f"env {self.env_name!r} refuses the action {got} ({kind}): {why}; its action space is "
            f"{self.space}{cure}"
        )


class _Discrete(_Adapter):
    """Hands on a Python int, the quickest for an environment to check and compare."""

    def __init__(self, space: spaces.Discrete, env_name: str) -> None:
        super().__init__(space, env_name)
        self.low = int(space.start)
        self.end = self.low + int(space.n)

    def __call__(self, action: Any) -> int:
        value = action
        if type(value) is not int:
            if isinstance(value, (np.ndarray, np.integer)) or hasattr(value, "item"):
                try:
                    value = value.item()
                except (ValueError, RuntimeError):
                    raise self.refuse(action, "expected one integer") from None
            if type(value) is not int:
                raise self.refuse(action, "expected an integer")
        if self.low <= value < self.end:
            return value
        raise self.refuse(action, f"expected {self.low} to {self.end - 1}")


class _Box(_Adapter):
    """Float actions; a dtype of another precision is cast."""

    def __init__(self, space: spaces.Box, env_name: str, clip: bool = False) -> None:
        super().__init__(space, env_name)
        self.dtype = space.dtype
        self.shape = space.shape
        self.small = int(np.prod(space.shape)) <= _SMALL
        biggest = np.finfo(space.dtype.type).max  # type: ignore[type-var]
        # An infinite action is wrong even where the bounds are infinite.
        self.low = np.clip(space.low, -biggest, biggest)
        self.high = np.clip(space.high, -biggest, biggest)
        self.bounds = list(zip(self.low.ravel().tolist(), self.high.ravel().tolist()))
        self.clip = clip

    def __call__(self, action: Any) -> np.ndarray:
        array = self.as_array(action)
        if self.small:
            for value, (low, high) in zip(array.ravel().tolist(), self.bounds):
                if not low <= value <= high:  # not: NaN compares false
                    return self.mend(action, array)
        elif not ((array >= self.low).all() and (array <= self.high).all()):
            return self.mend(action, array)
        return array

    def as_array(self, action: Any) -> np.ndarray:
        if type(action) is np.ndarray and action.dtype is self.dtype and action.shape == self.shape:
            return action
        array = action if isinstance(action, np.ndarray) else np.asarray(action)
        given_as_numbers = isinstance(action, (list, tuple, int, float))
        if array.dtype.kind != "f" and not (given_as_numbers and array.dtype.kind == "i"):
            raise self.refuse(action, f"its dtype is {array.dtype}, expected {self.dtype}")
        if array.shape != self.shape:
            if array.size != 1 or self.small is False or len(self.bounds) != 1:
                raise self.refuse(action, f"its shape is {array.shape}, expected {self.shape}")
            array = array.reshape(self.shape)
        return array.astype(self.dtype)

    def mend(self, action: Any, array: np.ndarray) -> np.ndarray:
        """The action clipped to the bounds, if that is asked for or rounding led beyond them."""
        if np.isnan(array).any():
            raise self.refuse(action, "it holds NaN")
        if not self.clip:
            with np.errstate(over="ignore", invalid="ignore"):  # bounds that stand for infinity
                slack = _TOLERANCE * (self.high - self.low)
                beyond = (array < self.low - slack) | (array > self.high + slack)
            beyond |= np.isinf(array)
            if beyond.any():
                raise self.refuse(
                    action,
                    "it is beyond the bounds",
                    ". Set env.act_scale=True to map [-1, 1] to the bounds, "
                    "or env.clip_action=True to clip",
                )
        return np.clip(array, self.low, self.high)


class _Scaled(_Box):
    """Actions in ``[-1, 1]``, mapped to the bounds; what lies beyond is clipped."""

    def __init__(self, space: spaces.Box, env_name: str) -> None:
        if not space.is_bounded("both"):
            raise ConfigError(
                f"env.act_scale=True, but the action space of {env_name!r} has no finite bounds "
                f"({space}); leave env.act_scale out"
            )
        super().__init__(space, env_name, clip=True)
        self.middle = (self.low.astype(np.float64) + self.high) / 2
        self.half = (self.high.astype(np.float64) - self.low) / 2
        self.low, self.high = -np.ones_like(self.low), np.ones_like(self.high)
        self.bounds = [(-1.0, 1.0)] * self.low.size

    def __call__(self, action: Any) -> np.ndarray:
        return (self.middle + super().__call__(action) * self.half).astype(self.dtype)


class _Whole(_Adapter):
    """Arrays of whole numbers, each within its own limits (both included)."""

    def __init__(
        self, space: spaces.Space, env_name: str, low: np.ndarray, high: np.ndarray
    ) -> None:
        super().__init__(space, env_name)
        self.low = low
        self.high = high

    def __call__(self, action: Any) -> np.ndarray:
        array = np.asarray(action)
        if array.dtype.kind not in "iub":
            raise self.refuse(action, f"its dtype is {array.dtype}, expected {self.space.dtype}")
        if array.shape != self.space.shape:
            raise self.refuse(action, f"its shape is {array.shape}, expected {self.space.shape}")
        if not ((array >= self.low).all() and (array <= self.high).all()):
            raise self.refuse(action, "it is beyond the bounds")
        return array.astype(self.space.dtype, copy=False)


class _Parts(_Adapter):
    """Actions of several parts, such as a hybrid one's ``action_type`` and ``action_args``."""

    def __init__(
        self, space: spaces.Dict, env_name: str, act_scale: bool, clip_action: bool
    ) -> None:
        super().__init__(space, env_name)
        self.parts = {
            name: action_adapter(part, f"{env_name}, {name}", act_scale, clip_action)
            for name, part in space.spaces.items()
        }

    def __call__(self, action: Any) -> dict[str, Any]:
        if not isinstance(action, Mapping) or set(action) != set(self.parts):
            raise self.refuse(action, f"expected a dict of {', '.join(self.parts)}")
        return {name: part(action[name]) for name, part in self.parts.items()}


class _Other(_Adapter):
    """Composite spaces: their own check."""

    def __call__(self, action: Any) -> Any:
        if not self.space.contains(action):
            raise self.refuse(action, "the space does not contain it")
        return action
