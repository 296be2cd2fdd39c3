"""Reinforcement-learning training systems: collectors, learners, evaluators, buffers, pipelines."""

import importlib
from types import ModuleType

__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    # `ding.plot` is there after `import ding`, which costs nothing.
    if name == "plot":
        return importlib.import_module("ding.plot")
    raise AttributeError(f"module 'ding' has no attribute {name!r}")
