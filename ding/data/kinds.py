"""Words for what buffers hold and hand out."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from ding.data.id_column import IdColumn

#: What users store: mappings mostly, but whatever they like.
Item: TypeAlias = Any
#: Items as they leave: ``Columns`` if they are columnar, otherwise a plain list.
Items: TypeAlias = list[Item]
#: One transition, or what else has names.
Row: TypeAlias = dict[str, Any]
#: Plain data: numbers, texts, arrays, and lists and dicts of them.
State: TypeAlias = dict[str, Any]
#: An array of one value per row.
Leaf: TypeAlias = np.ndarray | torch.Tensor | IdColumn
#: An array of one value per row, or a nested mapping of them.
Column: TypeAlias = Leaf | Mapping[str, Any]
#: Which rows: numbers, flags or a slice.
Index: TypeAlias = np.ndarray | torch.Tensor | list[int] | slice
