"""Replay buffers: one ring of columns, and ways to draw from it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
