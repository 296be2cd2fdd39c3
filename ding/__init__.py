"""Reinforcement-learning training systems: collectors, learners, evaluators, buffers, pipelines."""

import importlib
from typing import Any

from ding import _alone as _alone  # refuses to be mixed with DI-engine

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # These are there after `import ding`, which costs nothing.
    if name == "plot":
        return importlib.import_module("ding.plot")
    if name == "load":
        return importlib.import_module("ding.entry.trained_policy").load
    if name == "RunCallback":
        return importlib.import_module("ding.utils.callbacks").RunCallback
    raise AttributeError(f"module 'ding' has no attribute {name!r}")
