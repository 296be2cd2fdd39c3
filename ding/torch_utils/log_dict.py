"""A log entry that keeps no tensor, and so no graph, alive."""

from typing import Any

import torch

from ding.torch_utils._tree import map_leaves


class LogDict(dict):
    """A dict whose tensors become numbers (one element) or lists as they are put in."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(value) is not float:
            value = map_leaves(_detached, value)
        super().__setitem__(key, value)

    def update(self, data: dict) -> None:  # type: ignore[override]
        for key, value in data.items():
            self[key] = value


def build_log_buffer() -> LogDict:
    """An empty log entry."""
    return LogDict()


def _detached(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.item() if leaf.numel() == 1 else leaf.tolist()
    return leaf
