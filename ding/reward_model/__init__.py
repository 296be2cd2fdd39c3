"""Reward models, which replace or extend the rewards that a policy learns from."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
