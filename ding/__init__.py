"""Reinforcement-learning training systems: collectors, learners, evaluators, buffers, pipelines."""

import lazy_loader

from ding import _alone as _alone  # refuses to be mixed with DI-engine

__version__ = "0.1.0"

# Names that `import ding` offers, and imports only when they are used, are in `__init__.pyi`.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
