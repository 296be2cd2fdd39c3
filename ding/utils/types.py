"""Types of values that all layers exchange and that depend on a user's config, model or file."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

#: A config, and one that is only read: its keys depend on the classes that it names.
Config: TypeAlias = dict[str, Any]
Settings: TypeAlias = Mapping[str, Any]
#: What ``state_dict`` returns, and what ``load_state_dict`` takes.
State: TypeAlias = dict[str, Any]
SavedState: TypeAlias = Mapping[str, Any]
#: A value of JSON, and an object of it, as read or to be written.
Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Json]
#: A leaf, or nested dicts, lists and tuples of leaves. A leaf is an array, a tensor, a number, a
#: text or None; only the caller knows the structure.
Tree: TypeAlias = Any
#: Shape of an array, or of the parts of an observation or action by name; one number is one axis.
Shape: TypeAlias = int | Sequence[int] | Mapping[str, "Shape"]
