"""Types of values that depend on a user's config, model or file, for all layers."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

#: A config, and a read-only config; the keys depend on the classes in it.
Config: TypeAlias = dict[str, Any]
Settings: TypeAlias = Mapping[str, Any]
#: Result of ``state_dict``, and argument of ``load_state_dict``.
State: TypeAlias = dict[str, Any]
SavedState: TypeAlias = Mapping[str, Any]
#: A JSON value, and a JSON object.
Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Json]
#: A leaf, or nested dicts, lists and tuples of leaves. A leaf is an array, a tensor, a number, a
#: string or None; the structure depends on the caller.
Tree: TypeAlias = Any
#: Shape of an array, or shapes of the parts of an observation or action; a number is one axis.
Shape: TypeAlias = int | Sequence[int] | Mapping[str, "Shape"]
