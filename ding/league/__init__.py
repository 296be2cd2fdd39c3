"""Self-play leagues: players, who meets whom, what came of it, and how strong each is."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
