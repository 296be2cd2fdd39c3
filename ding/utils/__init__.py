"""Registries, config merging, files, locks, timers and logging, used by every other package.

Names are imported when they are first used; importing this package loads neither torch nor a
logging backend.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
