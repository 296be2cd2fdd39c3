"""Actions of the per-environment API as environments take them."""

from typing import Any

from ding.torch_utils import to_ndarray


def row_action(action: Any) -> Any:
    """The array of what a policy returns for one environment; a whole number has shape ``(1,)``."""
    array = to_ndarray(action)
    if getattr(array, "shape", None) == () and array.dtype.kind in "iu":
        return array.reshape(1)
    return array
