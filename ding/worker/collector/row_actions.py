"""Actions of the per-environment API as environments take them."""

from typing import Any

from ding.envs import WholeAction
from ding.torch_utils import to_ndarray


def row_action(action: Any) -> Any:
    """The array of what a policy returns for one environment; a whole number has shape ``(1,)``.

    An action of several parts is a dict of such.
    """
    array = to_ndarray(action)
    if isinstance(array, dict):
        return {name: row_action(part) for name, part in array.items()}
    if getattr(array, "shape", None) in ((), (1,)) and array.dtype.kind in "iu":
        return array.reshape(1).view(WholeAction)
    return array
