"""Aliases for types that have no class."""

from collections.abc import Mapping
from typing import Any, TypeAlias

#: A config, or a part of one, whose keys others define.
Config: TypeAlias = Mapping[str, Any]
#: The state from which a part of the coordinator is restored; plain data.
StateDict: TypeAlias = dict[str, Any]
