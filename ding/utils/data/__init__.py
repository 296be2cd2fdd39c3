"""Batches out of samples, and a loader that prepares them ahead."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
