"""Fits observations to what networks read, and actions to what environments take."""

from collections.abc import Callable, Mapping

import numpy as np
from gymnasium import spaces

from ding.envs.vector_step import Action, Obs, Space
from ding.utils.errors import ActionError, ConfigError, EnvError

from .answers import brief, obs_fault

_FLOAT32 = np.dtype(np.float32)
_UINT8 = np.dtype(np.uint8)

# ---- observations --------------------------------------------------------------------------------


def observation_adapter(space: Space, env_name: str) -> tuple[Space, Callable[[Obs], Obs]]:
    """The space of the observations that a `DingEnvWrapper` returns, and what makes them.

    Boxes keep uint8 and become float32 otherwise; the index of a Discrete space becomes a float32
    array of shape (1,); MultiDiscrete and MultiBinary become float32; Dict and Tuple go through
    their members. An array that is right already is passed on, not copied.
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
    dtype, shape = box.dtype, box.shape

    def to_array(obs: Obs) -> np.ndarray:
        if type(obs) is np.ndarray and obs.dtype is dtype and obs.shape == shape:
            return obs
        try:
            given = np.asarray(obs)
            array = given.astype(dtype)
        except (TypeError, ValueError):
            given = array = np.empty((0, 0))
        if array.shape != shape and (array.size != 1 or shape != (1,)):
            raise EnvError(obs_fault(obs, space, env_name))
        if dtype.kind in "iu" and not (array == given).all():
            raise EnvError(
                f"the observation of env {env_name!r}, {brief(given)}, has numbers that are no "
                f"{dtype}, but the observation space is {space}: declare Box(low, high, {shape}, "
                "np.float32)"
            )
        return array.reshape(shape)

    return box, to_array


def _as_box(space: Space) -> spaces.Box | None:
    if isinstance(space, spaces.Box):
        if space.dtype in (_FLOAT32, _UINT8) and space.shape:
            return space
        # Networks take no 0-d observations.
        low, high = (_float32(np.atleast_1d(bound)) for bound in (space.low, space.high))
        return spaces.Box(low, high, dtype=np.float32)
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return spaces.Box(start, start + int(space.n) - 1, shape=(1,), dtype=np.float32)
    if isinstance(space, spaces.MultiDiscrete):
        low = np.zeros(space.nvec.shape, np.float32) + np.float32(getattr(space, "start", 0))
        return spaces.Box(low, low + space.nvec.astype(np.float32) - 1, dtype=np.float32)
    if isinstance(space, spaces.MultiBinary):
        return spaces.Box(0, 1, shape=space.shape, dtype=np.float32)
    return None


def _float32(bound: np.ndarray) -> np.ndarray:
    """A finite float64 bound beyond float32 must not turn into infinity with a warning."""
    biggest = np.finfo(np.float32).max
    clipped = np.clip(bound.astype(np.float64), -biggest, biggest)
    return np.where(np.isfinite(bound), clipped, bound).astype(np.float32)


# ---- actions -------------------------------------------------------------------------------------

# Up to this many entries a loop over Python numbers beats numpy's cost per call.
_SMALL = 8
_TOLERANCE = 1e-5  # of the range: what rounding may add to an action at its bound


def action_adapter(
    space: Space, env_name: str, act_scale: bool = False, clip_action: bool = False
) -> Callable[[Action], Action]:
    """A function from a policy's action to the one that the environment's ``step`` takes.

    It raises ``ActionError`` for what the space does not contain. In Boxes `act_scale` maps
    ``[-1, 1]`` to the bounds, and `clip_action` clips to them.
    """
    if isinstance(space, spaces.Discrete):
        return _Discrete(space, env_name)
    if isinstance(space, spaces.Box):
        if space.dtype.kind != "f":
            return _Whole(space, env_name, space.low, space.high)
        return _Box(space, env_name, act_scale, clip_action)
    if isinstance(space, spaces.MultiDiscrete):
        start = getattr(space, "start", 0)
        return _Whole(space, env_name, start + np.zeros_like(space.nvec), start + space.nvec - 1)
    if isinstance(space, spaces.MultiBinary):
        return _Whole(space, env_name, np.zeros(space.shape), np.ones(space.shape))
    if isinstance(space, spaces.Dict):
        return _Parts(space, env_name, act_scale, clip_action)
    return _Other(space, env_name)


def scaled_space(space: Space) -> Space:
    """The space of the actions that `act_scale` maps to `space`: its Boxes are ``[-1, 1]``."""
    if isinstance(space, spaces.Box):
        return spaces.Box(-1.0, 1.0, shape=space.shape, dtype=space.dtype.type)
    if isinstance(space, spaces.Dict):
        return spaces.Dict({name: scaled_space(part) for name, part in space.spaces.items()})
    return space


class _Other:
    """Composite spaces: their own check."""

    def __init__(self, space: Space, env_name: str) -> None:
        self.space, self.env_name = space, env_name

    def __call__(self, action: Action) -> Action:
        if not self.space.contains(action):
            cure = ". Set env.env_wrapper=['flatten_action'], if it is of choices alone"
            raise self.refuse(action, "the space does not contain it", cure)
        return action

    def refuse(self, action: Action, why: str, cure: str = "") -> ActionError:
        got, kind = repr(action), type(action).__name__
        if len(got) > 200:
            got = got[:200] + "..."
        if isinstance(action, np.ndarray):
            kind = f"{action.dtype} array of shape {action.shape}"
        return ActionError(
            f"env {self.env_name!r} refuses the action {got} ({kind}): {why}; its action space is "
            f"{self.space}{cure}"
        )


class _Discrete(_Other):
    """Passes on a Python int, the quickest for an environment to check and compare."""

    def __init__(self, space: spaces.Discrete, env_name: str) -> None:
        super().__init__(space, env_name)
        self.low = int(space.start)
        self.end = self.low + int(space.n)

    def __call__(self, action: Action) -> int:
        value = action
        if type(value) is not int:
            try:
                value = value.item()
            except (ValueError, RuntimeError):
                raise self.refuse(action, "expected one integer") from None
            except AttributeError:
                pass
            if type(value) is not int:
                raise self.refuse(action, "expected an integer")
        if self.low <= value < self.end:
            return value
        raise self.refuse(action, f"expected {self.low} to {self.end - 1}")


class _Box(_Other):
    """Float actions; a dtype of another precision is cast."""

    def __init__(
        self, space: spaces.Box, env_name: str, act_scale: bool = False, clip: bool = False
    ) -> None:
        super().__init__(space, env_name)
        if act_scale and not space.is_bounded("both"):
            raise ConfigError(
                f"env.act_scale=True, but the action space of {env_name!r} has no finite bounds "
                f"({space}); leave env.act_scale out"
            )
        self.dtype, self.shape = space.dtype, space.shape
        self.scales, self.clips = act_scale, act_scale or clip
        biggest = np.finfo(space.dtype.type).max  # type: ignore[type-var]
        # An infinite action is wrong even where the bounds are infinite.
        self.low = np.clip(space.low, -biggest, biggest)
        self.high = np.clip(space.high, -biggest, biggest)
        if act_scale:
            # Float32 cannot hold the sum of its largest numbers, and rounds what it can.
            self.middle = (self.low.astype(np.float64) + self.high) / 2
            self.half = (self.high.astype(np.float64) - self.low) / 2
            self.low, self.high = -np.ones_like(self.low), np.ones_like(self.high)
        self.bounds = list(zip(self.low.ravel().tolist(), self.high.ravel().tolist()))

    def __call__(self, action: Action) -> np.ndarray:
        array = self.as_array(action)
        if len(self.bounds) <= _SMALL:
            for value, (low, high) in zip(array.ravel().tolist(), self.bounds):
                if not low <= value <= high:  # not: NaN compares false
                    array = self.clipped(action, array)
                    break
        elif not ((array >= self.low).all() and (array <= self.high).all()):
            array = self.clipped(action, array)
        if self.scales:
            # Not RescaleAction of gymnasium: rounding in float32, it differs in the last bits.
            return (self.middle + array * self.half).astype(self.dtype)
        return array

    def as_array(self, action: Action) -> np.ndarray:
        if type(action) is np.ndarray and action.dtype is self.dtype and action.shape == self.shape:
            return action
        array = action if isinstance(action, np.ndarray) else np.asarray(action)
        given_as_numbers = isinstance(action, (list, tuple, int, float))
        if array.dtype.kind != "f" and not (given_as_numbers and array.dtype.kind == "i"):
            raise self.refuse(action, f"its dtype is {array.dtype}, expected {self.dtype}")
        if array.shape != self.shape and not array.size == len(self.bounds) == 1:
            raise self.refuse(action, f"its shape is {array.shape}, expected {self.shape}")
        return array.reshape(self.shape).astype(self.dtype)

    def clipped(self, action: Action, array: np.ndarray) -> np.ndarray:
        """The action clipped to the bounds, if `clips` is set or rounding exceeded them."""
        if np.isnan(array).any():
            raise self.refuse(action, "it holds NaN")
        if not self.clips:
            with np.errstate(over="ignore", invalid="ignore"):  # bounds that represent infinity
                slack = _TOLERANCE * (self.high - self.low)
                beyond = (array < self.low - slack) | (array > self.high + slack)
            if (beyond | np.isinf(array)).any():
                raise self.refuse(
                    action,
                    "it is beyond the bounds",
                    ". Set env.act_scale=True to map [-1, 1] to the bounds, "
                    "or env.clip_action=True to clip",
                )
        return np.clip(array, self.low, self.high)


class _Whole(_Other):
    """Arrays of whole numbers, each within its own limits (both included)."""

    def __init__(self, space: Space, env_name: str, low: np.ndarray, high: np.ndarray) -> None:
        super().__init__(space, env_name)
        self.low, self.high = low, high

    def __call__(self, action: Action) -> np.ndarray:
        array = np.asarray(action)
        if array.dtype.kind not in "iub":
            raise self.refuse(action, f"its dtype is {array.dtype}, expected {self.space.dtype}")
        if array.shape != self.space.shape:
            raise self.refuse(action, f"its shape is {array.shape}, expected {self.space.shape}")
        if not ((array >= self.low).all() and (array <= self.high).all()):
            raise self.refuse(action, "it is beyond the bounds")
        return array.astype(self.space.dtype, copy=False)


class _Parts(_Other):
    """Actions of several parts, such as a hybrid one's ``action_type`` and ``action_args``."""

    def __init__(
        self, space: spaces.Dict, env_name: str, act_scale: bool, clip_action: bool
    ) -> None:
        super().__init__(space, env_name)
        self.parts = {
            name: action_adapter(part, f"{env_name}, {name}", act_scale, clip_action)
            for name, part in space.spaces.items()
        }

    def __call__(self, action: Action) -> dict[str, Action]:
        if not isinstance(action, Mapping) or set(action) != set(self.parts):
            raise self.refuse(action, f"expected a dict of {', '.join(self.parts)}")
        return {name: part(action[name]) for name, part in self.parts.items()}
