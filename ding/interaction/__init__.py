"""Masters that give tasks to slaves over HTTP, and the slaves that work on them.

Names are imported when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
