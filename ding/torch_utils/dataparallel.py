"""One process, several CUDA devices."""

from typing import Any

import torch


class DataParallel(torch.nn.DataParallel):
    """``torch.nn.DataParallel`` through which the wrapped model's own attributes are reached."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)
