"""Actions of the per-environment API as environments take them."""

from typing import Any

from ding.envs import WholeAction
from ding.torch_utils import to_ndarray


def row_action(action: Any) -> Any:
    """The array of what a policy returns for one environment; a whole number has shape ``(1,)``."""
    array = to_ndarray(action)
    if getattr(array, "shape", None) in ((), (1,)) and array.dtype.kind in "iu":
        return array.reshape(1).view(WholeAction)
    return array
