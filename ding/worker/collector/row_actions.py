"""Actions of the per-environment API as environments take them."""

from collections.abc import Callable
from typing import Any

from gymnasium import spaces

from ding.torch_utils import to_ndarray


def row_action(env: Any) -> Callable[[Any], Any]:
    """Makes arrays of the actions that policies return for single environments of a manager.

    A whole number comes as an array without dimensions, as it does in columns, and not ``(1,)``,
    which is how batches are taken apart; except where the action space is a vector of numbers.
    """
    vector = isinstance(
        getattr(env, "action_space", None), spaces.MultiDiscrete | spaces.MultiBinary
    )

    def convert(action: Any) -> Any:
        array = to_ndarray(action)
        if not vector and getattr(array, "shape", None) == (1,) and array.dtype.kind in "iu":
            return array.reshape(())
        return array

    return convert
