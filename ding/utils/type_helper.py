"""Type variables for annotations."""

from typing import NamedTuple, TypeVar

#: A list, a tuple or a named tuple, such as the shape of an observation.
SequenceType = TypeVar("SequenceType", list, tuple, NamedTuple)  # type: ignore[type-var]
