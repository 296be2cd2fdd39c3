"""Single environments: their interface, gymnasium's behind it, and checks of users' own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
