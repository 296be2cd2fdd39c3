"""The coordinator of a parallel run, and the commanders that create the tasks of its workers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
